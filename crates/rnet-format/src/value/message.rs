//! A message of any type, or a field of it.

use std::borrow::Cow;
use std::io::Write;

use rnet::msgs::timestamp_from_ns;
use rnet::schema::{self, Dynamic, TextOptions, text_quoted};
use rnet::state::StateMessage;
use rnet::{MessageType, PlainType};
use serde_json::Value as Json;

use super::{FieldPath, Limits, ReadableFormat, base64, fields, hex, json_options, readable};
use crate::error::{Failure, Outcome};

/// A message that matches its type, with the requested field.
pub enum Message<'a> {
    /// Bytes without a type.
    Raw(&'a [u8]),
    /// A plain type, the bytes, and the field.
    Plain(&'a PlainType, &'a [u8], Option<&'a FieldPath>),
    /// The decoded message and the field.
    Protobuf(Dynamic, Option<Cow<'a, schema::FieldPath>>),
}

impl<'a> Message<'a> {
    /// A message of this type.
    ///
    /// # Errors
    /// Why its protobuf type does not fit, as text.
    pub fn decode(ty: &'a MessageType, bytes: &'a [u8]) -> Result<Message<'a>, String> {
        Ok(match ty {
            MessageType::Protobuf(schema) => {
                let decoded = Dynamic::decode(schema, bytes);
                Message::Protobuf(decoded.map_err(|error| error.to_string())?, None)
            }
            MessageType::Plain(plain) => Message::Plain(plain, bytes, None),
            MessageType::Raw => Message::Raw(bytes),
        })
    }

    /// The value of a key; a message that cannot be decoded is shown as bytes.
    pub fn of_state(message: &'a StateMessage) -> Message<'a> {
        Message::decode(message.message_type(), message.bytes())
            .unwrap_or(Message::Raw(message.bytes()))
    }

    /// A field of the value of a key; `None` for bytes.
    ///
    /// # Errors
    /// The type has no such field, or the value is not of its type.
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

    /// Prints it on separate lines.
    ///
    /// # Errors
    /// The field does not exist, or `out` cannot be written.
    pub fn print(&self, out: &mut impl Write, limits: Limits) -> Outcome {
        match self {
            Message::Raw(bytes) => hex::hex_dump(out, bytes, limits.elements)?,
            Message::Plain(plain, bytes, path) => {
                let value = select_field(readable_yaml(plain, bytes), *path)?;
                fields::print_by_field(out, &value, limits.elements)?;
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

    /// The message as JSON: names as in the `.proto` file, and every field with its value, so that scripts
    /// find them. Bytes are base64.
    ///
    /// # Errors
    /// The field does not exist.
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

/// A plain message in YAML, with quoted texts and the date of a time as a comment.
fn readable_yaml(plain: &PlainType, bytes: &[u8]) -> Json {
    // YAML ignores the comment: the value is the number.
    let time = |ns: i64| Json::String(format!("{ns}  # {}", timestamp_from_ns(ns)));
    readable(plain, bytes, ReadableFormat { text: text_quoted, time })
}

fn select_field(message: Json, path: Option<&FieldPath>) -> Outcome<Json> {
    match path {
        Some(path) => path.pick(&message).cloned().map_err(Failure::Failed),
        None => Ok(message),
    }
}
