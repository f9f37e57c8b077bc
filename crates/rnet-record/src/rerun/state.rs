//! The recorded state in the domain of a re-run: as it was at the first input, then each change at its time.
//!
//! A node that is run again writes its own keys itself, so changes by it are passed over; what it had written before
//! the first input is set, since it may have been started long before.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rnet::Node;
use rnet::float_from_json;
use rnet::state::Value;
use serde_json::Value as Json;

use super::error::RerunError;
use crate::names;
use crate::read::{Recording, Select};

/// Keys of the library: records of links, leases.
const OWN_KEYS: &str = "/_rnet/";

/// What a message of the recording says of a key.
pub struct Said {
    key: String,
    /// `None` of one that was deleted.
    value: Option<Value>,
    /// Who wrote it.
    pub node: String,
    /// When, in ns since 1970 UTC.
    written_ns: u64,
    is_initial: bool,
}

impl Said {
    /// `None` of what cannot be set: a message, whose type is not in the recording; a value that could not be read.
    pub fn read(text: &[u8]) -> Option<Said> {
        let said: Json = serde_json::from_slice(text).ok()?;
        let key = said["key"].as_str().filter(|key| !key.starts_with(OWN_KEYS))?.to_owned();
        let is_deleted = said["deleted"] == true;
        let value = if is_deleted { None } else { Some(value(&said["kind"], &said["value"])?) };
        Some(Said {
            key,
            value,
            node: said["node"].as_str().unwrap_or_default().to_owned(),
            written_ns: said["written_unix_ns"].as_u64().unwrap_or(u64::MAX),
            is_initial: said["initial"] == true,
        })
    }

    /// Sets it, or deletes it.
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

    /// Whether it was so before this time.
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
        "bytes" => Value::Bytes(BASE64.decode(of.as_str()?).ok()?),
        "json" => Value::json(of.as_str()?).ok()?,
        "list" => Value::List(of.as_array()?.iter().map(element).collect::<Option<_>>()?),
        "set" => {
            let elements = of.as_array()?.iter().map(element).collect::<Option<Vec<Value>>>()?;
            Value::set(elements)
        }
        _ => return None,
    })
}

/// Of a list or a set, which say no types: bytes are taken for text.
fn element(of: &Json) -> Option<Value> {
    Some(match of {
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match number.as_i64() {
            Some(int) => Value::Int(int),
            None => Value::Float(number.as_f64()?),
        },
        Json::String(text) => Value::Str(text.clone()),
        Json::Array(values) => Value::List(values.iter().map(element).collect::<Option<_>>()?),
        _ => return None,
    })
}

/// Sets the state as it was at `start_ns`, and says how many keys that are. The end of a file that is cut off is no matter.
pub fn begin(recording: &Recording, node: &Node, start_ns: u64) -> Result<u64, RerunError> {
    let mut keys = BTreeMap::new();
    let select = Select { topics: vec![names::STATE_TOPIC.to_owned()], ..Select::default() };
    for message in recording.messages(select).flatten() {
        let Some(said) = Said::read(message.data()) else { continue };
        let is_so = match said.value {
            Some(_) => said.is_before(start_ns),
            // Nobody says when a key was deleted, but the recorder when it saw that.
            None => message.log_ns() <= start_ns,
        };
        if is_so {
            keys.insert(said.key.clone(), said);
        }
    }
    let there: Vec<Said> = keys.into_values().filter(|said| said.value.is_some()).collect();
    there.iter().try_for_each(|said| said.set(node))?;
    Ok(there.len() as u64)
}
