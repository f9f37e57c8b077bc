//! A key as JSON, and its times.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::value::to_json;
use rnet::state::{Entry, LastWill};
use serde_json::{Value as Json, json};

/// A key with all that belongs to it.
pub fn of(entry: &Entry) -> Json {
    let will = entry.last_will.as_ref().map(|will| match will {
        LastWill::Becomes(value) => json!({"type": value.type_name(), "value": to_json(value)}),
        LastWill::Delete => json!("delete"),
    });
    json!({
        "key": entry.key,
        "type": entry.value.type_name(),
        "value": to_json(&entry.value),
        "revision": entry.revision,
        "version": entry.version,
        "node": entry.owner.node,
        "written_unix_ns": entry.owner.written_unix_ns,
        "durable": entry.durable,
        "ttl_s": entry.ttl_left().map(|left| left.as_secs_f64()),
        "last_will": will,
    })
}

/// Now, in ns since 1970: the clock of what is written, for people.
pub fn unix_now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// How long ago this was, by the wall clock as it is set now.
pub fn ago(unix_ns: u64) -> Duration {
    Duration::from_nanos(unix_now_ns().saturating_sub(unix_ns))
}
