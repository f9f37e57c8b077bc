//! Messages of the recorder itself, as JSON. docs/design/recording.md describes their format.

use rnet::schema::JsonOptions;
use rnet::state::{Change, StateMessage, Value};
use rnet::{MessageType, Meta};
use rnet_format::float_to_json;
use rnet_format::value::{base64, message_to_json_with, meta_json};
use serde_json::{Map, Value as Json};

/// The metadata of a message; `None` if it is empty.
pub fn meta(publisher: u64, seq: u64, meta: &Meta) -> Option<Json> {
    let fields = meta_json(meta)?;
    let head =
        [("publisher".to_owned(), publisher.to_string().into()), ("seq".to_owned(), seq.into())];
    Some(head.into_iter().chain(fields).collect())
}

/// A change of the state.
pub fn change(change: &Change) -> Map<String, Json> {
    let mut record = Map::new();
    record.insert("key".into(), change.key.as_str().into());
    record.insert("revision".into(), change.revision.into());
    if change.skipped != Some(0) {
        record.insert("skipped".into(), change.skipped.into());
    }
    let Some(entry) = &change.entry else {
        record.insert("deleted".into(), true.into());
        return record;
    };
    record.insert("kind".into(), kind(&entry.value).into());
    match &entry.value {
        Value::Unreadable(why) => {
            record.insert("unreadable".into(), why.as_str().into());
        }
        Value::Message(message) => {
            record.insert("type".into(), message.type_name().into());
            if let Some(fields) = fields(message) {
                record.insert("value".into(), fields);
            }
            record.insert("bytes".into(), base64(message.bytes()).into());
        }
        other => {
            record.insert("value".into(), value(other));
        }
    }
    record.insert("node".into(), entry.owner.node.as_str().into());
    record.insert("durable".into(), entry.durable.into());
    record.insert("written_unix_ns".into(), entry.owner.written_unix_ns.into());
    record
}

/// The name of the value's kind. The type of a message is stored next to it, with its schema.
fn kind(value: &Value) -> &str {
    match value {
        Value::Message(_) => "message",
        other => other.type_name(),
    }
}

fn value(of: &Value) -> Json {
    match of {
        Value::Bool(b) => (*b).into(),
        Value::Int(n) => (*n).into(),
        Value::Float(x) => float_to_json(*x),
        Value::Str(text) | Value::Json(text) => text.as_str().into(),
        Value::Bytes(bytes) => base64(bytes).into(),
        Value::List(items) | Value::Set(items) => items.iter().map(value).collect(),
        Value::Message(message) => fields(message).unwrap_or(Json::Null),
        _ => Json::Null,
    }
}

/// The fields of a message; `None` if they cannot be decoded.
fn fields(message: &StateMessage) -> Option<Json> {
    match message.message_type() {
        MessageType::Raw => None,
        ty => message_to_json_with(ty, message.bytes(), &JsonOptions::default()).ok(),
    }
}
