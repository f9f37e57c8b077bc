//! Messages and state values as JSON and as text, and back.
//!
//! - [`Message`]: a message of any type, or a field of it;
//! - [`text`]: a value of the state or of a parameter;
//! - [`message_input`]: a message from text written by a person;
//! - [`readable`]: which parts of a plain message are text, times and lists;
//! - [`fields`]: fields of JSON values, as lines or as cells;
//! - `hex`: bytes.

mod field_path;
pub mod fields;
pub mod hex;
pub mod input;
mod json;
mod message;
pub mod message_input;
mod meta;
mod plain_json;
mod readable;
pub mod text;
mod unit;

pub use field_path::{FieldPath, Step};
pub use json::{
    base64, from_base64, from_json, json_options, message_to_json, message_to_json_with, to_json,
};
pub use message::Message;
pub use meta::meta_json;
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

/// The word of a protobuf enum value: `rate limit` for `CAUSE_RATE_LIMIT`, `-` for an unspecified one.
pub fn enum_word(name: &str) -> String {
    match name.split_once('_') {
        None | Some((_, "UNSPECIFIED")) => "-".to_owned(),
        Some((_, word)) => word.replace('_', " ").to_lowercase(),
    }
}

/// Number of shown bytes of a bytes field, unless everything is shown.
const SHOWN_FIELD_BYTES: usize = 16;

/// How much of a value is printed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Elements of an array, and bytes of a dump.
    pub elements: usize,
    /// Bytes of a bytes field.
    pub field_bytes: usize,
}

impl Limits {
    /// The limits of `--truncate-length` and `--full-length`.
    pub fn of(elements: usize, full: bool) -> Limits {
        match full {
            true => Limits { elements: usize::MAX, field_bytes: usize::MAX },
            false => Limits { elements, field_bytes: elements.min(SHOWN_FIELD_BYTES) },
        }
    }
}
