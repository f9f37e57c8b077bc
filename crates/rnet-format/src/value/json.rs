//! Converts messages and state values to JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rnet::MessageType;
use rnet::schema::{Dynamic, JsonOptions};
use rnet::state::Value;
use rnet_core::float_to_json;
use serde_json::Value as Json;

/// A value as JSON: bytes in base64, sets as arrays, messages with names as in the `.proto` file; numbers
/// that are not finite as `"nan"`, `"inf"` and `"-inf"`.
pub fn to_json(value: &Value) -> Json {
    match value {
        Value::Bool(b) => (*b).into(),
        Value::Int(n) => (*n).into(),
        Value::Float(x) => float_to_json(*x),
        Value::Str(text) => text.as_str().into(),
        Value::Bytes(bytes) => base64(bytes).into(),
        // JSON text with numbers beyond the parser's limits stays text.
        Value::Json(text) => {
            serde_json::from_str(text).unwrap_or_else(|_| Json::from(text.as_str()))
        }
        Value::List(items) | Value::Set(items) => items.iter().map(to_json).collect(),
        // A message that cannot be decoded is its bytes.
        Value::Message(message) => message_to_json(message.message_type(), message.bytes())
            .unwrap_or_else(|_| base64(message.bytes()).into()),
        Value::Unreadable(_) => Json::Null,
        other => format!("{other:?}").into(),
    }
}

/// The value that an element of a list or set in JSON is: arrays are lists, objects are JSON.
///
/// # Errors
/// In words, which number has no room.
pub fn from_json(item: &Json) -> Result<Value, String> {
    Ok(match item {
        Json::Bool(b) => Value::Bool(*b),
        Json::String(text) => Value::Str(text.clone()),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(n), _) => Value::Int(n),
            (None, Some(x)) if number.is_f64() => Value::Float(x),
            _ => return Err(format!("{number} does not fit in an int")),
        },
        Json::Array(items) => Value::List(items.iter().map(from_json).collect::<Result<_, _>>()?),
        other => Value::Json(other.to_string()),
    })
}

/// Options for messages: names as in the `.proto` file, and all fields with their defaults, so that scripts
/// find them.
pub fn json_options() -> JsonOptions {
    JsonOptions { proto_names: true, defaults: true, plain_integers: true }
}

/// A message as JSON; raw bytes are base64.
///
/// # Errors
/// Why it does not match its type, as text.
pub fn message_to_json(ty: &MessageType, bytes: &[u8]) -> Result<Json, String> {
    message_to_json_with(ty, bytes, &json_options())
}

/// The same with options.
///
/// # Errors
/// Why it does not match its type, as text.
pub fn message_to_json_with(
    ty: &MessageType,
    bytes: &[u8],
    options: &JsonOptions,
) -> Result<Json, String> {
    match ty {
        MessageType::Raw => Ok(base64(bytes).into()),
        MessageType::Plain(plain) if plain.accepts_len(bytes.len()) => Ok(plain.format(bytes)),
        MessageType::Plain(plain) => {
            Err(format!("it has {} bytes, but {} has {}", bytes.len(), plain.name, plain.size))
        }
        MessageType::Protobuf(schema) => {
            let message = Dynamic::decode(schema, bytes).map_err(|error| error.to_string())?;
            Ok(message.to_json(options))
        }
    }
}

/// Bytes as base64.
pub fn base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Decodes base64.
///
/// # Errors
/// Why it is invalid, as text.
pub fn from_base64(text: &str) -> Result<Vec<u8>, String> {
    BASE64.decode(text).map_err(|e| format!("not base64: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_values_without_json_equivalent() {
        assert_eq!(to_json(&Value::from(f64::NAN)), "nan");
        assert_eq!(to_json(&Value::from(b"\xff\x00")), "/wA=");
        assert_eq!(from_base64("/wA=").unwrap(), [255, 0]);
        assert!(from_base64("/wA").is_err());
    }
}
