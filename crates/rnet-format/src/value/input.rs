//! A state value, as written on the command line or in a file.

use std::path::PathBuf;

use rnet::MessageType;
use rnet::state::{StateMessage, Value};
use serde_json::Value as Json;

use super::hex::from_hex;
use super::{from_json, message_input};
use crate::error::{Failure, Outcome};
use crate::types::Catalog;
use crate::yaml::{self, Scalar};

/// The type that a value must have.
#[derive(Debug)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number of 64 bits.
    Int,
    /// A number.
    Float,
    /// Text.
    Str,
    /// Bytes, in hex.
    Bytes,
    /// JSON, or YAML.
    Json,
    /// A list.
    List,
    /// A set.
    Set,
    /// A message of a type.
    Message(Box<MessageType>),
}

/// Names of the types other than messages.
const KINDS: &str = "bool, int, float, str, bytes, json, list, set";

/// The value of a command line: text, or the content of a file.
pub enum ValueInput {
    /// A text.
    Text(String),
    /// The content of a file.
    File(Vec<u8>),
}

/// The last will of a key that will hold `value`: of the same type.
///
/// # Errors
/// It has another type.
pub fn last_will(text: &str, value: &Value) -> Outcome<Value> {
    let why = "a last will must have the type of the value";
    match kind_of(value) {
        Some(kind) => parse_as(&kind, &ValueInput::Text(text.to_owned()), why),
        None => Err(Failure::Usage(why.to_owned())),
    }
}

/// The type with this name: a built-in one, or a message type of `files`.
///
/// # Errors
/// The type is not known.
pub fn kind_by_name(name: &str, files: &[PathBuf], include: &[PathBuf]) -> Outcome<Kind> {
    Ok(match name {
        "bool" => Kind::Bool,
        "int" => Kind::Int,
        "float" => Kind::Float,
        "str" => Kind::Str,
        "bytes" => Kind::Bytes,
        "json" => Kind::Json,
        "list" => Kind::List,
        "set" => Kind::Set,
        name => match Catalog::of(files, include)?.find(name) {
            Ok(found) => Kind::Message(Box::new(found)),
            Err(failure) => {
                let what = format!("--type {name}: {}; built-in types are {KINDS}", failure);
                return Err(Failure::Usage(what));
            }
        },
    })
}

/// The kind of a value; `None` if this program does not know it.
pub fn kind_of(value: &Value) -> Option<Kind> {
    Some(match value {
        Value::Bool(_) => Kind::Bool,
        Value::Int(_) => Kind::Int,
        Value::Float(_) => Kind::Float,
        Value::Str(_) => Kind::Str,
        Value::Bytes(_) => Kind::Bytes,
        Value::Json(_) => Kind::Json,
        Value::List(_) => Kind::List,
        Value::Set(_) => Kind::Set,
        Value::Message(message) => Kind::Message(Box::new(message.message_type().clone())),
        _ => return None,
    })
}

/// Parses a value of this type; `why` is the reason for the type, for the error.
///
/// # Errors
/// The text is not a value of the type.
pub fn parse_as(kind: &Kind, given: &ValueInput, why: &str) -> Outcome<Value> {
    let text = match (kind, given) {
        // Bytes in a file are not hex.
        (Kind::Bytes, ValueInput::File(bytes)) => return Ok(Value::Bytes(bytes.clone())),
        (_, ValueInput::Text(text)) => text.as_str(),
        (_, ValueInput::File(bytes)) => std::str::from_utf8(bytes).map_err(|_| {
            Failure::Failed("the content of the file is not valid UTF-8".to_owned())
        })?,
    };
    let no =
        |what: &str| Failure::Usage(format!("{} is not a valid {what}: {why}", quote_input(text)));
    Ok(match kind {
        Kind::Bool => match text.trim() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => return Err(no("bool (true or false)")),
        },
        Kind::Int => {
            Value::Int(text.trim().parse().map_err(|_| no("int (a 64-bit whole number)"))?)
        }
        Kind::Float => match text.trim().parse::<f64>() {
            // Digits that parse as infinity are a number that is too large.
            Ok(x) if x.is_finite() || !text.contains(|c: char| c.is_ascii_digit()) => {
                Value::Float(x)
            }
            _ => return Err(no("float")),
        },
        Kind::Str => Value::Str(text.to_owned()),
        Kind::Bytes => Value::Bytes(
            from_hex(text.trim()).map_err(|e| no(&format!("bytes value in hex ({e})")))?,
        ),
        Kind::Json => parse_json_value(text, why)?,
        Kind::List => Value::List(array(text, why)?),
        Kind::Set => Value::set(array(text, why)?),
        Kind::Message(message_type) => Value::Message(message(message_type, text, why)?),
    })
}

/// Infers the value from the text.
///
/// # Errors
/// The text looks like a number or JSON, but is not valid.
pub fn infer_value(text: &str) -> Outcome<Value> {
    if text.trim_start().starts_with(['{', '[']) {
        return parse_json_value(text, "inferred as JSON; for a string, give --type str");
    }
    match Scalar::plain(text).value() {
        Ok(found) => Ok(found.unwrap_or_else(|| Value::Str(text.to_owned()))),
        Err(why) => {
            Err(Failure::Usage(format!("{why}; to override the inferred type, give --type")))
        }
    }
}

/// JSON as written, or converted from YAML.
fn parse_json_value(text: &str, why: &str) -> Outcome<Value> {
    match Value::json(text) {
        Ok(json) => Ok(json),
        Err(_) => Ok(Value::Json(parse_json(text, why)?.to_string())),
    }
}

fn parse_json(text: &str, why: &str) -> Outcome<Json> {
    yaml::json(text)
        .map_err(|e| Failure::Usage(format!("cannot parse {} ({e}): {why}", quote_input(text))))
}

fn array(text: &str, why: &str) -> Outcome<Vec<Value>> {
    match parse_json(text, why)? {
        Json::Array(items) => {
            items.iter().map(from_json).collect::<Result<_, _>>().map_err(Failure::Usage)
        }
        _ => Err(Failure::Usage(format!(
            "{} is not a valid list such as [1, 2]: {why}",
            quote_input(text)
        ))),
    }
}

fn message(message_type: &MessageType, text: &str, why: &str) -> Outcome<StateMessage> {
    let bytes = message_input::encode("VALUE", message_type, &parse_json(text, why)?)?;
    Ok(StateMessage::new(message_type.clone(), bytes)?)
}

/// Quotes a text for an error message.
fn quote_input(text: &str) -> String {
    const MAX_VALUE_CHARS: usize = 60;
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
