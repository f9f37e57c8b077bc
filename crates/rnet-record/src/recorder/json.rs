//! Messages of the recorder itself, as JSON. docs/design/recording.md describes their format.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rnet::schema::Dynamic;
use rnet::state::{Change, StateMessage, Value};
use rnet::{MessageType, Meta, TypeDesc};
use rnet_format::float_to_json;
use serde_json::{Map, Value as Json, json};

/// The metadata of a message; `None` if it is empty.
pub fn meta(publisher: u64, seq: u64, meta: &Meta) -> Option<Json> {
    if *meta == Meta::default() {
        return None;
    }
    // Ids as text, because JSON readers keep only 53 bits of a number.
    let mut record = json!({"publisher": publisher.to_string(), "seq": seq});
    if let Some(origin) = meta.origin {
        record["origin"] = json!({
            "host": origin.host.to_string(),
            "publisher": origin.publisher.to_string(),
            "seq": origin.seq,
        });
    }
    if let Some(source_ns) = meta.source_ns {
        record["source_ns"] = source_ns.into();
    }
    if let Some(correlation) = meta.correlation {
        record["correlation"] = correlation.to_string().into();
    }
    if let Some(gap) = meta.gap {
        record["gap"] = json!({"cause": gap.cause.name(), "size": gap.size});
    }
    Some(record)
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
            record.insert("bytes".into(), BASE64.encode(message.bytes()).into());
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
        Value::Bytes(bytes) => BASE64.encode(bytes).into(),
        Value::List(items) | Value::Set(items) => items.iter().map(value).collect(),
        Value::Message(message) => fields(message).unwrap_or(Json::Null),
        _ => Json::Null,
    }
}

/// The fields of a message; `None` if they cannot be decoded.
fn fields(message: &StateMessage) -> Option<Json> {
    match message.message_type() {
        MessageType::Protobuf(schema) => {
            let message = Dynamic::decode(schema, message.bytes()).ok()?;
            Some(message.to_json(&rnet::schema::JsonOptions::default()))
        }
        other => match other.desc() {
            TypeDesc::Plain(plain) => Some(plain.format(message.bytes())),
            _ => None,
        },
    }
}
