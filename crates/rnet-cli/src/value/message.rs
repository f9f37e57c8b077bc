//! A message of whatever type, or a field of it.

use std::borrow::Cow;
use std::io::Write;

use rnet::schema::{self, Dynamic, TextOptions};
use rnet::state::StateMessage;
use rnet::{MessageType, PlainType};
use serde_json::Value as Json;

use super::field;
use super::{Limits, hex, plain};
use crate::failure::{Failure, Outcome};
use rnet_monitor::value::{FieldPath, base64, json_options};

/// A message that is of its type, and the field that is asked for.
pub enum Message<'a> {
    Raw(&'a [u8]),
    Plain(&'a PlainType, &'a [u8], Option<&'a FieldPath>),
    Protobuf(Dynamic, Option<Cow<'a, schema::FieldPath>>),
}

impl<'a> Message<'a> {
    /// What a key holds; what cannot be decoded is bytes.
    pub fn of_state(message: &'a StateMessage) -> Message<'a> {
        match message.message_type() {
            MessageType::Protobuf(schema) => match Dynamic::decode(schema, message.bytes()) {
                Ok(decoded) => Message::Protobuf(decoded, None),
                Err(_) => Message::Raw(message.bytes()),
            },
            MessageType::Plain(plain) => Message::Plain(plain, message.bytes(), None),
            MessageType::Raw => Message::Raw(message.bytes()),
        }
    }

    /// A field of what a key holds; `None` of bytes.
    pub fn field_of_state(
        message: &'a StateMessage,
        path: &'a FieldPath,
    ) -> Outcome<Option<Message<'a>>> {
        Ok(match message.message_type() {
            MessageType::Protobuf(schema) => {
                let path = schema::FieldPath::parse(schema, path.text());
                let path = path.map_err(|e| Failure::Failed(e.to_string()))?;
                let decoded = Dynamic::decode(schema, message.bytes()).map_err(|e| {
                    Failure::Failed(format!("the value is not a valid {}: {e}", schema.name()))
                })?;
                Some(Message::Protobuf(decoded, Some(Cow::Owned(path))))
            }
            MessageType::Plain(plain) => Some(Message::Plain(plain, message.bytes(), Some(path))),
            MessageType::Raw => None,
        })
    }

    /// Prints it on lines of its own.
    pub fn print(&self, out: &mut impl Write, limits: Limits) -> Outcome {
        match self {
            Message::Raw(bytes) => hex::hex_dump(out, bytes, limits.elements)?,
            Message::Plain(plain, bytes, path) => {
                let value = select_field(plain::readable(plain, bytes), *path)?;
                field::print_by_field(out, &value, limits.elements)?;
            }
            Message::Protobuf(message, path) => {
                let (max_elements, max_bytes) = (limits.elements, limits.field_bytes);
                let options = TextOptions { max_elements, max_bytes };
                let text = match path {
                    // An element or entry that this message does not have.
                    Some(path) => message.get_text(path, &options).unwrap_or("null\n".to_owned()),
                    None => message.to_text_with(&options),
                };
                out.write_all(text.as_bytes())?;
            }
        }
        Ok(())
    }

    /// It as JSON: names as in the `.proto` file, and each field that has a value, for which scripts look. Bytes are base64.
    ///
    /// # Errors
    /// There is no such field.
    pub fn json(&self) -> Outcome<Json> {
        Ok(match self {
            Message::Raw(bytes) => base64(bytes).into(),
            Message::Plain(plain, bytes, path) => select_field(plain.format(bytes), *path)?,
            Message::Protobuf(message, path) => {
                let options = json_options();
                match path {
                    Some(path) => message.get_json(path, &options).unwrap_or_default(),
                    None => message.to_json(&options),
                }
            }
        })
    }
}

fn select_field(message: Json, path: Option<&FieldPath>) -> Outcome<Json> {
    match path {
        Some(path) => path.pick(&message).cloned().map_err(Failure::Failed),
        None => Ok(message),
    }
}
