//! Converts messages and state values to JSON and back, for commands and the dashboard.

mod field;
mod json;
mod plain_json;
mod readable;
mod unit;

pub use field::FieldPath;
pub use json::{base64, from_base64, json_options, message_to_json, message_to_json_with, to_json};
pub use readable::{ReadableFormat, readable};
pub use unit::{unit, units};

use rnet::MessageType;
use rnet::schema::Dynamic;
use serde_json::Value;

/// Encodes a message from JSON.
///
/// # Errors
/// Why it is invalid, as text.
pub fn encode(message_type: &MessageType, value: &Value) -> Result<Vec<u8>, String> {
    match message_type {
        MessageType::Plain(plain) => plain_json::encode(plain, value),
        MessageType::Protobuf(schema) => match Dynamic::from_json(schema, value) {
            Ok(message) => Ok(message.encode()),
            Err(error) => Err(error.to_string()),
        },
        MessageType::Raw => Err("raw bytes have no fields".to_owned()),
    }
}
