//! Values of the state as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rnet::float_to_json;
use rnet::state::Value;
use serde_json::Value as Json;

use super::Message;

/// A value as JSON: bytes in base64, sets as arrays, messages with names as in the `.proto` file; what is not a
/// finite number as `"nan"`, `"inf"` and `"-inf"`.
pub fn to_json(value: &Value) -> Json {
    match value {
        Value::Bool(b) => (*b).into(),
        Value::Int(n) => (*n).into(),
        Value::Float(x) => float_to_json(*x),
        Value::Str(text) => text.as_str().into(),
        Value::Bytes(bytes) => base64(bytes).into(),
        // Numbers larger than JSON's readers take stay as they are.
        Value::Json(text) => {
            serde_json::from_str(text).unwrap_or_else(|_| Json::from(text.as_str()))
        }
        Value::List(items) | Value::Set(items) => items.iter().map(to_json).collect(),
        Value::Message(message) => Message::of_state(message).json().unwrap_or_default(),
        Value::Unreadable(_) => Json::Null,
        other => format!("{other:?}").into(),
    }
}

pub fn base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

pub fn from_base64(text: &str) -> Result<Vec<u8>, String> {
    BASE64.decode(text).map_err(|e| format!("no base64: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_of_what_has_no_json() {
        assert_eq!(to_json(&Value::from(f64::NAN)), "nan");
        assert_eq!(to_json(&Value::from(b"\xff\x00")), "/wA=");
        assert_eq!(from_base64("/wA=").unwrap(), [255, 0]);
        assert!(from_base64("/wA").is_err());
    }
}
