//! Values of the state (docs/design/state-values.md describes their encoding).

use crate::message::StateMessage;
use rnet_node::MessageType;

/// The value of a state key.
///
/// The type is stored with the key: a write of another type is an error (`StateType`) unless
/// [`crate::Put::change_type`] allows it. Integers and floats are different types, as are strings and bytes.
///
/// ```
/// use rnet_state::Value;
/// assert_eq!(Value::from(3), Value::Int(3));
/// assert_eq!(Value::from("idle"), Value::Str("idle".into()));
/// assert!(Value::json("{\"kp\": 1.5}").is_ok());
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A floating-point number with any bit pattern, including NaN.
    Float(f64),
    /// Text.
    Str(String),
    /// Bytes without a meaning for robot-net.
    Bytes(Vec<u8>),
    /// JSON text (RFC 8259), at most 127 levels deep. Checked on write; [`Value::json`] checks it
    /// immediately.
    Json(String),
    /// Values of any type except messages, at most [`rnet_core::MAX_VALUE_DEPTH`] levels deep.
    List(Vec<Value>),
    /// Distinct booleans, numbers, strings and bytes, sorted ([`Value::set`]): booleans before integers
    /// before floats before strings before bytes.
    Set(Vec<Value>),
    /// A protobuf message, or one of a plain type, with the description of its type.
    Message(StateMessage),
    /// A value whose bytes do not match its type, with the fault: a program other than robot-net has written
    /// it. It occurs only in lists, snapshots and watches, which do not fail because of one bad value; it
    /// cannot be stored.
    Unreadable(String),
}

impl Value {
    /// JSON text, checked.
    ///
    /// # Errors
    /// `BadValue` if it is not JSON, or more than 127 levels deep.
    pub fn json(text: impl Into<String>) -> rnet_core::Result<Value> {
        let text = text.into();
        super::encode::check_json(&text).map_err(|why| rnet_core::Error::bad_value("JSON", why))?;
        Ok(Value::Json(text))
    }

    /// A set of these values, sorted and without duplicates. Whether they may be in a set is checked on
    /// write.
    pub fn set(values: impl IntoIterator<Item = impl Into<Value>>) -> Value {
        let mut values: Vec<Value> = values.into_iter().map(Into::into).collect();
        values.sort_by(super::encode::order);
        values.dedup_by(|a, b| super::encode::order(a, b).is_eq());
        Value::Set(values)
    }

    /// A list of these values.
    pub fn list(values: impl IntoIterator<Item = impl Into<Value>>) -> Value {
        Value::List(values.into_iter().map(Into::into).collect())
    }

    /// The name of its type: `bool`, `int`, `float`, `str`, `bytes`, `json`, `list`, `set`; for a message its
    /// full name.
    pub fn type_name(&self) -> &str {
        match self {
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Str(_) => "str",
            Value::Bytes(_) => "bytes",
            Value::Json(_) => "json",
            Value::List(_) => "list",
            Value::Set(_) => "set",
            Value::Message(message) => message.type_name(),
            Value::Unreadable(_) => "unreadable",
        }
    }

    /// Its type as text: `an integer`, `protobuf message foxglove.Pose`.
    pub fn type_text(&self) -> String {
        match self {
            Value::Message(message) => message.message_type().desc().to_string(),
            Value::Unreadable(_) => "an unreadable value".to_owned(),
            other => super::encode::kind_text(super::encode::kind_of(other)).to_owned(),
        }
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(value) = self { Some(*value) } else { None }
    }

    /// The integer, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        if let Value::Int(value) = self { Some(*value) } else { None }
    }

    /// The number, if it is a float.
    pub fn as_float(&self) -> Option<f64> {
        if let Value::Float(value) = self { Some(*value) } else { None }
    }

    /// The text, if it is a string; `None` for JSON.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::Str(value) = self { Some(value) } else { None }
    }

    /// The bytes, if its type is bytes.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        if let Value::Bytes(value) = self { Some(value) } else { None }
    }

    /// The message, if it is one.
    pub fn as_message(&self) -> Option<&StateMessage> {
        if let Value::Message(value) = self { Some(value) } else { None }
    }

    /// The type of the message, if it is one.
    pub fn message_type(&self) -> Option<&MessageType> {
        self.as_message().map(StateMessage::message_type)
    }
}

macro_rules! from {
    ($($variant:ident: $($type:ty),+ => $value:expr;)+) => {$($(
        impl From<$type> for Value {
            fn from(value: $type) -> Value {
                #[allow(clippy::redundant_closure_call, reason = "the macro's way to name the value")]
                Value::$variant(($value)(value))
            }
        }
    )+)+};
}

from! {
    Bool: bool => |value| value;
    Int: i8, i16, i32, i64, u8, u16, u32 => i64::from;
    Float: f32, f64 => f64::from;
    Str: &str, String, &String => String::from;
    Bytes: &[u8], Vec<u8> => Vec::from;
    Message: StateMessage => |value| value;
}

impl<const N: usize> From<&[u8; N]> for Value {
    fn from(value: &[u8; N]) -> Value {
        Value::Bytes(value.to_vec())
    }
}

impl From<&Value> for Value {
    fn from(value: &Value) -> Value {
        value.clone()
    }
}
