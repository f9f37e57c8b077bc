//! A value as it stands on the command line, and which type it is meant to have.

use rnet::MessageType;
use rnet::limits::MAX_VALUE_LEN_BYTES;
use rnet::state::{StateMessage, Value};
use serde_json::Value as Json;

use super::args::ValueArgs;
use crate::failure::{Failure, Outcome};
use crate::input::{self, InputLimit};
use rnet_format::types::Catalog;
use rnet_format::value::hex::from_hex;
use rnet_format::value::message_input;
use rnet_format::yaml::{self, Scalar};

const VALUE_LIMIT: InputLimit =
    InputLimit::new(MAX_VALUE_LEN_BYTES, "a value of the state", "MAX_VALUE_LEN_BYTES");

/// Which type a value is to have.
#[derive(Debug)]
enum Kind {
    Bool,
    Int,
    Float,
    Str,
    Bytes,
    Json,
    List,
    Set,
    Message(Box<MessageType>),
}

/// Names of the types that are no messages.
const KINDS: &str = "bool, int, float, str, bytes, json, list, set";

/// How a type came to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeReason {
    /// By `--type`.
    Requested,
    /// The key has it.
    Unchanged,
    /// The text looks like it.
    Inferred,
}

/// The value of a command line: text, or the content of a file.
enum ValueInput {
    Text(String),
    File(Vec<u8>),
}

/// Reads the value, of the type that is named, else of that which the key has, else of that which it looks like.
pub fn value(args: &ValueArgs, present: Option<&Value>) -> Outcome<(Value, TypeReason)> {
    let given = match (&args.file, &args.value) {
        (Some(path), _) => ValueInput::File(input::read(path, &VALUE_LIMIT)?),
        (None, Some(text)) => ValueInput::Text(text.clone()),
        (None, None) => return Err(Failure::Usage("give VALUE or --file".to_owned())),
    };
    if let Some(name) = &args.type_name {
        let kind = kind_by_name(name, args)?;
        return Ok((parse_as(&kind, &given, "required by --type")?, TypeReason::Requested));
    }
    if !args.files.proto.is_empty() {
        let what = "--proto defines message types; select one with --type";
        return Err(Failure::Usage(what.to_owned()));
    }
    if let Some(kind) = present.filter(|_| !args.change_type).and_then(kind_of) {
        let why = "the key has this type; to change it, give --type and --change-type";
        return Ok((parse_as(&kind, &given, why)?, TypeReason::Unchanged));
    }
    match given {
        ValueInput::File(bytes) => Ok((Value::Bytes(bytes), TypeReason::Inferred)),
        ValueInput::Text(text) => Ok((infer_value(&text)?, TypeReason::Inferred)),
    }
}

/// The last will of a key that is to hold `value`: of the same type.
pub fn last_will(text: &str, value: &Value) -> Outcome<Value> {
    let why = "a last will must have the type of the value";
    match kind_of(value) {
        Some(kind) => parse_as(&kind, &ValueInput::Text(text.to_owned()), why),
        None => Err(Failure::Usage(why.to_owned())),
    }
}

fn kind_by_name(name: &str, args: &ValueArgs) -> Outcome<Kind> {
    Ok(match name {
        "bool" => Kind::Bool,
        "int" => Kind::Int,
        "float" => Kind::Float,
        "str" => Kind::Str,
        "bytes" => Kind::Bytes,
        "json" => Kind::Json,
        "list" => Kind::List,
        "set" => Kind::Set,
        name => match Catalog::of(&args.files.proto, &args.files.include)?.find(name) {
            Ok(found) => Kind::Message(Box::new(found)),
            Err(failure) => {
                let what = format!("--type {name}: {}; built-in types are {KINDS}", failure);
                return Err(Failure::Usage(what));
            }
        },
    })
}

/// `None` for a kind of value that this program does not know.
fn kind_of(value: &Value) -> Option<Kind> {
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

fn parse_as(kind: &Kind, given: &ValueInput, why: &str) -> Outcome<Value> {
    let text = match (kind, given) {
        // What is in a file needs no hex.
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
            // Digits that are infinite are a number that is too large.
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

/// What a text looks like to whoever wrote it.
fn infer_value(text: &str) -> Outcome<Value> {
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

/// JSON as it was written, or that of YAML.
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
        Json::Array(items) => items.iter().map(element).collect(),
        _ => Err(Failure::Usage(format!(
            "{} is not a valid list such as [1, 2]: {why}",
            quote_input(text)
        ))),
    }
}

/// An element of a list or set.
fn element(item: &Json) -> Outcome<Value> {
    Ok(match item {
        Json::Bool(b) => Value::Bool(*b),
        Json::String(text) => Value::Str(text.clone()),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(n), _) => Value::Int(n),
            (None, Some(x)) if number.is_f64() => Value::Float(x),
            _ => return Err(Failure::Usage(format!("{number} does not fit in an int"))),
        },
        Json::Array(items) => Value::List(items.iter().map(element).collect::<Outcome<_>>()?),
        other => Value::Json(other.to_string()),
    })
}

fn message(message_type: &MessageType, text: &str, why: &str) -> Outcome<StateMessage> {
    let bytes = message_input::encode("VALUE", message_type, &parse_json(text, why)?)?;
    Ok(StateMessage::new(message_type.clone(), bytes)?)
}

/// A text in an error message.
fn quote_input(text: &str) -> String {
    const MAX_VALUE_CHARS: usize = 60;
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
