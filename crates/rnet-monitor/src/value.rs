//! Messages and values of the state as JSON, and back: the same for commands and for the dashboard.

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

/// The bytes of a message from its JSON.
///
/// # Errors
/// In words, why it is none.
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
