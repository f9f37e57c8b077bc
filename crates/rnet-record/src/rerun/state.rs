//! Restores the recorded state in the domain of a re-run: the values at the first input, then each change at
//! its time.
//!
//! The node writes its own keys itself, so its recorded changes are skipped. Values that it had written
//! before the first input are set, since it may have been started long before.

use std::collections::{BTreeMap, BTreeSet};

use rnet::Node;
use rnet::state::Value;
use rnet_format::float_from_json;
use rnet_format::value::{from_base64, from_json};
use serde_json::Value as Json;

use super::error::RerunError;
use crate::names;
use crate::read::{Recording, Select};

/// Prefix of the library's keys: records of links, leases.
const INTERNAL_KEYS: &str = "/_rnet/";

/// A recorded state of a key.
pub struct StateChange {
    key: String,
    /// `None` if the key was deleted.
    value: Option<Value>,
    /// The writing node.
    pub node: String,
    /// Write time, in ns since 1970 UTC.
    written_ns: u64,
    is_initial: bool,
}

impl StateChange {
    /// `None` if it cannot be set: a message, whose type is not recorded, or a value that could not be read.
    pub fn read(text: &[u8]) -> Option<StateChange> {
        let change: Json = serde_json::from_slice(text).ok()?;
        let key = change["key"].as_str().filter(|key| !key.starts_with(INTERNAL_KEYS))?.to_owned();
        let is_deleted = change["deleted"] == true;
        let value = if is_deleted { None } else { Some(value(&change["kind"], &change["value"])?) };
        Some(StateChange {
            key,
            value,
            node: change["node"].as_str().unwrap_or_default().to_owned(),
            written_ns: change["written_unix_ns"].as_u64().unwrap_or(u64::MAX),
            is_initial: change["initial"] == true,
        })
    }

    /// Sets or deletes the key.
    pub fn set(&self, node: &Node) -> Result<(), RerunError> {
        let state = node.state()?;
        match &self.value {
            Some(value) => drop(state.set(&self.key, value.clone())?),
            None => drop(state.delete(&self.key)?),
        }
        Ok(())
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    /// Whether it was written before this time.
    pub fn is_before(&self, ns: u64) -> bool {
        self.is_initial || self.written_ns <= ns
    }
}

fn value(kind: &Json, of: &Json) -> Option<Value> {
    Some(match kind.as_str()? {
        "bool" => Value::Bool(of.as_bool()?),
        "int" => Value::Int(of.as_i64()?),
        "float" => Value::Float(float_from_json(of).ok()?),
        "str" => Value::Str(of.as_str()?.to_owned()),
        "bytes" => Value::Bytes(from_base64(of.as_str()?).ok()?),
        "json" => Value::json(of.as_str()?).ok()?,
        "list" => Value::List(elements(of)?),
        "set" => Value::set(elements(of)?),
        _ => return None,
    })
}

/// The elements of a recorded list or set. Their types are not recorded, so bytes are read as text.
fn elements(of: &Json) -> Option<Vec<Value>> {
    of.as_array()?.iter().map(|element| from_json(element).ok()).collect()
}

/// Sets the state as it was at `start_ns`, and returns the number of keys. A truncated end of the file is
/// ignored.
pub fn restore(recording: &Recording, node: &Node, start_ns: u64) -> Result<u64, RerunError> {
    let there = keys_at(recording, start_ns);
    there.values().try_for_each(|change| change.set(node))?;
    Ok(there.len() as u64)
}

/// The keys as they were at `start_ns`.
fn keys_at(recording: &Recording, start_ns: u64) -> BTreeMap<String, StateChange> {
    let (mut keys, mut seen_keys) = (BTreeMap::new(), BTreeSet::new());
    let select = Select { topics: vec![names::STATE_TOPIC.to_owned()], ..Select::default() };
    for message in recording.messages(select).flatten() {
        let Some(change) = StateChange::read(message.data()) else { continue };
        let is_first = seen_keys.insert(change.key.clone());
        let was_seen = message.log_ns() <= start_ns;
        let is_so = match change.value {
            // The deletion time is unknown; the recorder's observation time is used.
            None => was_seen,
            // The start of a later part repeats earlier changes, and a merged file contains such repetitions.
            Some(_) if change.is_initial => is_first || was_seen,
            Some(_) => change.is_before(start_ns),
        };
        if is_so {
            keys.insert(change.key.clone(), change);
        }
    }
    keys.retain(|_, change| change.value.is_some());
    keys
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use mcap::records::MessageHeader;
    use serde_json::json;

    use super::*;

    /// The keys at `start_ns` in a file with these changes at these times.
    fn keys(change: &[(u64, Json)], start_ns: u64) -> Vec<(String, Value)> {
        let mut writer = mcap::Writer::new(Cursor::new(Vec::new())).unwrap();
        let channel = writer.add_channel(0, names::STATE_TOPIC, names::JSON, &BTreeMap::new());
        let channel_id = channel.unwrap();
        for (at, change) in change {
            let header =
                MessageHeader { channel_id, sequence: 0, log_time: *at, publish_time: *at };
            writer.write_to_known_channel(&header, change.to_string().as_bytes()).unwrap();
        }
        writer.finish().unwrap();
        let name = format!("rnet-rerun-{}-{start_ns}.mcap", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, writer.into_inner().into_inner()).unwrap();
        let keys = keys_at(&Recording::open(&path).unwrap(), start_ns);
        std::fs::remove_file(&path).unwrap();
        keys.into_iter().filter_map(|(key, change)| Some((key, change.value?))).collect()
    }

    #[test]
    fn state_of_merged_file_is_state_at_its_start() {
        let set = |key: &str, value: i64, ns: u64| json!({"key": key, "kind": "int", "value": value, "written_unix_ns": ns});
        let initial = |key: &str, value: i64, ns: u64| {
            let mut change = set(key, value, ns);
            change["initial"] = true.into();
            change
        };
        let first = [
            (11, set("/changed", 1, 10)),
            (12, set("/deleted", 2, 10)),
            (31, set("/changed", 3, 30)),
            (32, set("/new", 4, 31)),
            (33, json!({"key": "/deleted", "deleted": true})),
        ];
        // As in the preamble of a later part: each with its observation time.
        let later = [(31, initial("/changed", 3, 30)), (32, initial("/new", 4, 31))];
        let mut merged = [&first[..], &later].concat();
        merged.sort_by_key(|(at, _)| *at);
        let int = |key: &str, value| (key.to_owned(), Value::Int(value));
        assert_eq!(keys(&merged, 20), [int("/changed", 1), int("/deleted", 2)]);
        assert_eq!(keys(&merged, 40), [int("/changed", 3), int("/new", 4)]);
        // A later part alone has no other values of these keys, whatever its first message is.
        assert_eq!(keys(&later, 21), [int("/changed", 3), int("/new", 4)]);
    }
}
