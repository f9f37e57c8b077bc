//! Documents as pages get them: with times in s since 1970, and names of other hosts as they are seen from here.

use rnet::state::Entry;
use rnet_monitor::documents;
use serde_json::{Value as Json, json};

/// Now, in s since 1970.
pub fn unix_now_s() -> f64 {
    unix_s(rnet::now_ns(), rnet::wall_offset().offset_ns)
}

/// A stamp of this host as s since 1970, by what the wall clock is ahead of it.
pub fn unix_s(stamp_ns: u64, offset_ns: i64) -> f64 {
    let ns = i64::try_from(stamp_ns).unwrap_or(i64::MAX).saturating_add(offset_ns);
    ns as f64 / 1e9
}

/// An entry as pages get it: with times in s.
pub fn document(entry: &Entry) -> Json {
    in_seconds(documents::entry(entry))
}

/// With names of another host as they are seen from here: those of keys and nodes begin with the host.
pub fn of_host(host: &str, mut document: Json) -> Json {
    for field in ["key", "node", "set_by"] {
        let name = document[field].as_str().filter(|name| name.starts_with('/'));
        if let Some(name) = name.map(|name| format!("@{host}{name}")) {
            document[field] = json!(name);
        }
    }
    document
}

/// With `written_s` in place of `written_unix_ns`.
pub fn in_seconds(mut document: Json) -> Json {
    let written = document.as_object_mut().and_then(|fields| fields.remove("written_unix_ns"));
    if let Some(ns) = written.and_then(|ns| ns.as_f64()) {
        document["written_s"] = (ns / 1e9).into();
    }
    document
}
