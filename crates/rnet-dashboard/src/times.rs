//! Documents in the format of pages: with times in s since 1970, and with names of other hosts as seen from
//! here.

use rnet::state::Entry;
use rnet_monitor::documents;
use serde_json::{Value as Json, json};

/// Now, in s since 1970.
pub fn unix_now_s() -> f64 {
    unix_s(rnet::now_ns(), rnet::wall_offset().offset_ns)
}

/// Converts a timestamp of this host to s since 1970; `offset_ns` is the offset of the wall clock.
pub fn unix_s(stamp_ns: u64, offset_ns: i64) -> f64 {
    let ns = i64::try_from(stamp_ns).unwrap_or(i64::MAX).saturating_add(offset_ns);
    ns as f64 / 1e9
}

/// An entry in the format of pages: with times in s.
pub fn document(entry: &Entry) -> Json {
    in_seconds(documents::entry(entry))
}

/// Adds the host to names of another host: keys and nodes begin with it.
pub fn of_host(host: &str, mut document: Json) -> Json {
    for field in ["key", "node", "set_by"] {
        let name = document[field].as_str().filter(|name| name.starts_with('/'));
        if let Some(name) = name.map(|name| format!("@{host}{name}")) {
            document[field] = json!(name);
        }
    }
    document
}

/// Replaces `written_unix_ns` with `written_s`.
pub fn in_seconds(mut document: Json) -> Json {
    let written = document.as_object_mut().and_then(|fields| fields.remove("written_unix_ns"));
    if let Some(ns) = written.and_then(|ns| ns.as_f64()) {
        document["written_s"] = (ns / 1e9).into();
    }
    document
}
