//! A value as it stands on the command line, and which type it is meant to have.

use rnet::MessageType;
use rnet::limits::MAX_VALUE_LEN_BYTES;
use rnet::state::{StateMessage, Value};
use serde_json::Value as Json;

use super::args::ValueArgs;
use crate::failure::{Failure, Outcome};
use crate::input::{self, Limit};
use crate::types::catalog::Catalog;
use crate::value::given;
use crate::value::hex::from_hex;
use crate::yaml::{self, Scalar};

const VALUE: Limit = Limit::new(MAX_VALUE_LEN_BYTES, "a value of the state", "MAX_VALUE_LEN_BYTES");

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
pub enum Why {
    /// By `--type`.
    Told,
    /// The key has it.
    AsBefore,
    /// The text looks like it.
    Looks,
}

/// The value of a command line: text, or the content of a file.
enum Given {
    Text(String),
    File(Vec<u8>),
}

/// Reads the value, of the type that is named, else of that which the key has, else of that which it looks like.
pub fn value(args: &ValueArgs, present: Option<&Value>) -> Outcome<(Value, Why)> {
    let given = match (&args.file, &args.value) {
        (Some(path), _) => Given::File(input::read(path, &VALUE)?),
        (None, Some(text)) => Given::Text(text.clone()),
        (None, None) => return Err(Failure::Usage("give VALUE or --file".to_owned())),
    };
    if let Some(name) = &args.type_name {
        let kind = named(name, args)?;
        return Ok((of_kind(&kind, &given, "required by --type")?, Why::Told));
    }
    if !args.files.proto.is_empty() {
        let what = "--proto defines message types; select one with --type";
        return Err(Failure::Usage(what.to_owned()));
    }
    if let Some(kind) = present.filter(|_| !args.change_type).and_then(kind_of) {
        let why = "the key has this type; to change it, give --type and --change-type";
        return Ok((of_kind(&kind, &given, why)?, Why::AsBefore));
    }
    match given {
        Given::File(bytes) => Ok((Value::Bytes(bytes), Why::Looks)),
        Given::Text(text) => Ok((looks_like(&text)?, Why::Looks)),
    }
}

/// The last will of a key that is to hold `value`: of the same type.
pub fn last_will(text: &str, value: &Value) -> Outcome<Value> {
    let why = "a last will must have the type of the value";
    match kind_of(value) {
        Some(kind) => of_kind(&kind, &Given::Text(text.to_owned()), why),
        None => Err(Failure::Usage(why.to_owned())),
    }
}

fn named(name: &str, args: &ValueArgs) -> Outcome<Kind> {
    Ok(match name {
        "bool" => Kind::Bool,
        "int" => Kind::Int,
        "float" => Kind::Float,
        "str" => Kind::Str,
        "bytes" => Kind::Bytes,
        "json" => Kind::Json,
        "list" => Kind::List,
        "set" => Kind::Set,
        name => match Catalog::of(&args.files)?.find(name) {
            Ok(found) => Kind::Message(Box::new(found)),
            Err(failure) => {
                let what =
                    format!("--type {name}: {}; built-in types are {KINDS}", failure.message());
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

fn of_kind(kind: &Kind, given: &Given, why: &str) -> Outcome<Value> {
    let text = match (kind, given) {
        // What is in a file needs no hex.
        (Kind::Bytes, Given::File(bytes)) => return Ok(Value::Bytes(bytes.clone())),
        (_, Given::Text(text)) => text.as_str(),
        (_, Given::File(bytes)) => std::str::from_utf8(bytes).map_err(|_| {
            Failure::Failed("the content of the file is not valid UTF-8".to_owned())
        })?,
    };
    let no = |what: &str| Failure::Usage(format!("{} is not a valid {what}: {why}", shown(text)));
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
        Kind::Json => json(text, why)?,
        Kind::List => Value::List(array(text, why)?),
        Kind::Set => Value::set(array(text, why)?),
        Kind::Message(message_type) => Value::Message(message(message_type, text, why)?),
    })
}

/// What a text looks like to whoever wrote it.
fn looks_like(text: &str) -> Outcome<Value> {
    if text.trim_start().starts_with(['{', '[']) {
        return json(text, "inferred as JSON; for a string, give --type str");
    }
    match Scalar::plain(text).value() {
        Ok(found) => Ok(found.unwrap_or_else(|| Value::Str(text.to_owned()))),
        Err(why) => {
            Err(Failure::Usage(format!("{why}; to override the inferred type, give --type")))
        }
    }
}

/// JSON as it was written, or that of YAML.
fn json(text: &str, why: &str) -> Outcome<Value> {
    match Value::json(text) {
        Ok(json) => Ok(json),
        Err(_) => Ok(Value::Json(parse(text, why)?.to_string())),
    }
}

fn parse(text: &str, why: &str) -> Outcome<Json> {
    yaml::json(text)
        .map_err(|e| Failure::Usage(format!("cannot parse {} ({e}): {why}", shown(text))))
}

fn array(text: &str, why: &str) -> Outcome<Vec<Value>> {
    match parse(text, why)? {
        Json::Array(items) => items.iter().map(element).collect(),
        _ => Err(Failure::Usage(format!(
            "{} is not a valid list such as [1, 2]: {why}",
            shown(text)
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
    let bytes = given::encode("VALUE", message_type, &parse(text, why)?)?;
    Ok(StateMessage::new(message_type.clone(), bytes)?)
}

/// A text in an error message.
fn shown(text: &str) -> String {
    const SHOWN_CHARS: usize = 60;
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
