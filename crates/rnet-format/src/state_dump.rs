//! A dump of the state: JSON lines.
//!
//! A header, then a line for each message type before the first key that needs it, a line for each key, and
//! an end line that counts the keys, so that a truncated file is detected:
//! ```text
//! {"rnet_state":1,"domain":"0","prefix":"","revision":17,"unix_ns":1790000000000000000}
//! {"type":0,"name":"robot.Leg","descriptor_set":"CgsK…"}
//! {"key":"/leg","kind":"message","value":{"type":0,"bytes":"CQAA…"},"durable":true,"revision":17,…}
//! {"end":1}
//! ```
//! Values are exact: non-finite floats are words, bytes are base64, JSON is its text.

use std::collections::HashSet;
use std::time::Duration;

use rnet::schema::Schema;
use rnet::state::{Entry, StateMessage, Value};
use rnet::{MessageType, TypeDesc};
use rnet_core::{float_from_json, float_to_json};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::value::{base64, from_base64};

/// Version of the format.
const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
pub struct DumpHeader {
    rnet_state: u32,
    domain: String,
    prefix: String,
    revision: u64,
    unix_ns: u64,
}

/// A message type; later lines refer to it by its number.
#[derive(Debug, Serialize, Deserialize)]
struct TypeLine {
    #[serde(rename = "type")]
    number: usize,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    descriptor_set: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plain: Option<Json>,
}

/// A key. The writer is only informative: loaded keys are owned by the loading process.
#[derive(Debug, Serialize, Deserialize)]
struct KeyLine {
    key: String,
    #[serde(flatten)]
    value: DumpValue,
    #[serde(default)]
    durable: bool,
    /// Its remaining time to live when it was dumped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ttl_ns: Option<u64>,
    #[serde(default)]
    revision: u64,
    #[serde(default)]
    node: String,
    #[serde(default)]
    written_unix_ns: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct DumpEnd {
    end: usize,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
enum DumpValue {
    Bool(bool),
    Int(i64),
    Float(Json),
    Str(String),
    Bytes(String),
    Json(String),
    List(Vec<DumpValue>),
    Set(Vec<DumpValue>),
    Message {
        #[serde(rename = "type")]
        number: usize,
        bytes: String,
    },
}

/// A key in a dump.
#[derive(Debug)]
pub struct LoadedKey {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// Whether it is kept on disk.
    pub durable: bool,
    /// Its time to live; `None` for unlimited.
    pub ttl: Option<Duration>,
}

impl DumpHeader {
    /// The header of a dump of the keys that start with `prefix`.
    pub fn new(domain: &str, prefix: &str, revision: u64, unix_ns: u64) -> DumpHeader {
        let (domain, prefix) = (domain.to_owned(), prefix.to_owned());
        DumpHeader { rnet_state: VERSION, domain, prefix, revision, unix_ns }
    }
}

/// Writes keys as lines.
#[derive(Default)]
pub struct DumpWriter {
    types: Vec<MessageType>,
    keys: usize,
}

impl DumpWriter {
    /// The lines of a key; lines of new types come first.
    ///
    /// # Errors
    /// The reason why its value cannot be written, as text.
    pub fn lines(&mut self, entry: &Entry) -> Result<Vec<Json>, String> {
        let mut lines = Vec::new();
        let value = self.dump_value(&entry.value, &mut lines)?;
        let line = KeyLine {
            key: entry.key.clone(),
            value,
            durable: entry.durable,
            ttl_ns: entry.ttl_left().map(|left| u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)),
            revision: entry.revision,
            node: entry.owner.node.clone(),
            written_unix_ns: entry.owner.written_unix_ns,
        };
        lines.push(serde_json::to_value(line).map_err(|e| e.to_string())?);
        self.keys += 1;
        Ok(lines)
    }

    /// The last line.
    pub fn end(&self) -> impl Serialize {
        DumpEnd { end: self.keys }
    }

    /// Number of keys written.
    pub fn keys(&self) -> usize {
        self.keys
    }

    fn dump_value(&mut self, value: &Value, lines: &mut Vec<Json>) -> Result<DumpValue, String> {
        Ok(match value {
            Value::Bool(b) => DumpValue::Bool(*b),
            Value::Int(n) => DumpValue::Int(*n),
            Value::Float(x) => DumpValue::Float(float_to_json(*x)),
            Value::Str(text) => DumpValue::Str(text.clone()),
            Value::Bytes(bytes) => DumpValue::Bytes(base64(bytes)),
            Value::Json(text) => DumpValue::Json(text.clone()),
            Value::List(items) => DumpValue::List(self.dump_values(items, lines)?),
            Value::Set(items) => DumpValue::Set(self.dump_values(items, lines)?),
            Value::Message(message) => DumpValue::Message {
                number: self.type_number(message.message_type(), lines)?,
                bytes: base64(message.bytes()),
            },
            Value::Unreadable(why) => return Err(format!("cannot read its value: {why}")),
            _ => return Err("the type of its value is unknown to this version".to_owned()),
        })
    }

    fn dump_values(
        &mut self,
        items: &[Value],
        lines: &mut Vec<Json>,
    ) -> Result<Vec<DumpValue>, String> {
        items.iter().map(|item| self.dump_value(item, lines)).collect()
    }

    fn type_number(&mut self, found: &MessageType, lines: &mut Vec<Json>) -> Result<usize, String> {
        if let Some(number) = self.types.iter().position(|known| known == found) {
            return Ok(number);
        }
        let number = self.types.len();
        let line = match found {
            MessageType::Protobuf(schema) => TypeLine {
                number,
                name: schema.name().to_owned(),
                descriptor_set: Some(base64(&schema.descriptor_set_with_docs())),
                plain: None,
            },
            MessageType::Plain(plain) => TypeLine {
                number,
                name: plain.name.clone(),
                descriptor_set: None,
                plain: Some(serde_json::to_value(found.desc()).map_err(|e| e.to_string())?),
            },
            MessageType::Raw => {
                return Err("its value is a message without type information".to_owned());
            }
        };
        lines.push(serde_json::to_value(line).map_err(|e| e.to_string())?);
        self.types.push(found.clone());
        Ok(number)
    }
}

/// Whether a dump writes both values identically. NaN equals itself here.
pub fn values_equal(a: &Value, b: &Value) -> bool {
    let mut writer = DumpWriter::default();
    let mut typed = |value| writer.dump_value(value, &mut Vec::new()).ok();
    a == b || typed(a).is_some_and(|a| Some(a) == typed(b))
}

/// Reads a complete dump, and checks all of it.
///
/// # Errors
/// The error with its line, as text.
pub fn read(text: &str) -> Result<Vec<LoadedKey>, String> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let Some((_, first)) = lines.next() else { return Err("the file is empty".to_owned()) };
    match serde_json::from_str::<DumpHeader>(first) {
        Ok(head) if head.rnet_state == VERSION => {}
        Ok(head) => {
            return Err(format!(
                "the file has format version {}, but this program reads version {VERSION}",
                head.rnet_state
            ));
        }
        Err(e) => return Err(format!("line 1 is not the header of a dump: {e}")),
    }
    let mut reader = DumpReader::default();
    let mut end = None;
    for (number, line) in lines {
        let at = |why: String| format!("line {number}: {why}");
        if end.is_some() {
            return Err(at("unexpected data after the end line".to_owned()));
        }
        end = reader.line(line).map_err(at)?;
    }
    match end {
        Some(keys) if keys == reader.keys.len() => Ok(reader.keys),
        Some(keys) => {
            Err(format!("the end line counts {keys} keys, but the file has {}", reader.keys.len()))
        }
        None => {
            Err("the end line is missing: the file was truncated, or is still being written"
                .to_owned())
        }
    }
}

#[derive(Default)]
struct DumpReader {
    types: Vec<MessageType>,
    keys: Vec<LoadedKey>,
    /// The keys read so far.
    seen: HashSet<String>,
}

impl DumpReader {
    /// The number of keys, if this is the end line.
    fn line(&mut self, line: &str) -> Result<Option<usize>, String> {
        let words: Json = serde_json::from_str(line).map_err(|e| format!("invalid JSON: {e}"))?;
        let wrong = |e: serde_json::Error| e.to_string();
        if words.get("end").is_some() {
            return Ok(Some(serde_json::from_value::<DumpEnd>(words).map_err(wrong)?.end));
        }
        if words.get("key").is_none() {
            self.add_type(serde_json::from_value(words).map_err(wrong)?)?;
            return Ok(None);
        }
        let key = words["key"].to_string();
        let line: KeyLine =
            serde_json::from_value(words).map_err(|e| format!("the value of {key}: {e}"))?;
        if !self.seen.insert(line.key.clone()) {
            return Err(format!("duplicate key {}", line.key));
        }
        let value = self.value(line.value).map_err(|why| format!("{}: {why}", line.key))?;
        let KeyLine { key, durable, ttl_ns, .. } = line;
        let ttl = ttl_ns.map(Duration::from_nanos);
        self.keys.push(LoadedKey { key, value, durable, ttl });
        Ok(None)
    }

    fn add_type(&mut self, line: TypeLine) -> Result<(), String> {
        if line.number != self.types.len() {
            return Err(format!("type number {} is out of order", line.number));
        }
        let found = match (&line.descriptor_set, &line.plain) {
            (Some(set), None) => {
                let schema = Schema::from_descriptor_set(&from_base64(set)?, &line.name);
                MessageType::Protobuf(schema.map_err(|e| format!("type {}: {e}", line.name))?)
            }
            (None, Some(plain)) => {
                let desc = TypeDesc::from_json(&plain.to_string());
                let found = desc.and_then(MessageType::try_from);
                found.map_err(|e| format!("type {}: {e}", line.name))?
            }
            _ => return Err(format!("type {} needs either descriptor_set or plain", line.name)),
        };
        self.types.push(found);
        Ok(())
    }

    fn value(&self, typed: DumpValue) -> Result<Value, String> {
        Ok(match typed {
            DumpValue::Bool(b) => Value::Bool(b),
            DumpValue::Int(n) => Value::Int(n),
            DumpValue::Float(json) => Value::Float(float_from_json(&json)?),
            DumpValue::Str(text) => Value::Str(text),
            DumpValue::Bytes(text) => Value::Bytes(from_base64(&text)?),
            DumpValue::Json(text) => Value::json(text).map_err(|e| e.to_string())?,
            DumpValue::List(items) => Value::List(self.values(items)?),
            DumpValue::Set(items) => Value::set(self.values(items)?),
            DumpValue::Message { number, bytes } => {
                let found = self.types.get(number).ok_or("its type is not defined before it")?;
                let message = StateMessage::new(found.clone(), from_base64(&bytes)?);
                Value::Message(message.map_err(|e| e.to_string())?)
            }
        })
    }

    fn values(&self, items: Vec<DumpValue>) -> Result<Vec<Value>, String> {
        items.into_iter().map(|item| self.value(item)).collect()
    }
}
