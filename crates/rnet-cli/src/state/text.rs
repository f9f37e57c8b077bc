//! Values for people and for programs: as text, on one line, as JSON.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rnet::MessageType;
use rnet::schema::{Dynamic, JsonOptions, Schema, TextOptions};
use rnet::state::{StateMessage, Value};
use serde_json::Value as Json;

use crate::render::{self, tame};
use crate::topic::plain_text;

/// Bytes of a field of bytes that are shown, unless everything is.
const SHOWN_FIELD_BYTES: usize = 16;
/// Bytes of a value of bytes that are shown on a line.
const SHOWN_LINE_BYTES: usize = 16;

/// How much of a value is printed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Elements of an array, and bytes of a dump.
    pub elements: usize,
    /// Bytes of a field of bytes.
    pub field_bytes: usize,
}

impl Limits {
    /// By `--truncate-length` and `--full-length`.
    pub fn of(elements: usize, full: bool) -> Limits {
        match full {
            true => Limits { elements: usize::MAX, field_bytes: usize::MAX },
            false => Limits { elements, field_bytes: elements.min(SHOWN_FIELD_BYTES) },
        }
    }
}

/// Prints a value on lines of its own.
pub fn print(out: &mut impl Write, value: &Value, limits: Limits) -> io::Result<()> {
    match value {
        Value::Str(text) | Value::Json(text) => writeln!(out, "{}", for_stdout(text)),
        Value::Bytes(bytes) => render::hex_dump(out, bytes, limits.elements),
        Value::List(items) | Value::Set(items) => {
            for item in items.iter().take(limits.elements) {
                match item {
                    Value::Str(text) => writeln!(out, "{}", for_stdout(text))?,
                    other => writeln!(out, "{}", line(other, usize::MAX))?,
                }
            }
            match items.len().saturating_sub(limits.elements) {
                0 => Ok(()),
                more => writeln!(out, "... ({more} more elements)"),
            }
        }
        Value::Message(message) => print_message(out, message, limits),
        scalar => writeln!(out, "{}", line(scalar, usize::MAX)),
    }
}

fn print_message(out: &mut impl Write, message: &StateMessage, limits: Limits) -> io::Result<()> {
    match message.message_type() {
        MessageType::Protobuf(schema) => match Dynamic::decode(schema, message.bytes()) {
            Ok(decoded) => {
                let (max_elements, max_bytes) = (limits.elements, limits.field_bytes);
                let text = decoded.to_text_with(&TextOptions { max_elements, max_bytes });
                out.write_all(text.as_bytes())
            }
            Err(_) => render::hex_dump(out, message.bytes(), limits.elements),
        },
        MessageType::Plain(plain) => {
            render::by_field(out, &plain_text::readable(plain, message.bytes()), limits.elements)
        }
        MessageType::Raw => render::hex_dump(out, message.bytes(), limits.elements),
    }
}

/// A program gets the text as it is; a terminal would do what it says.
fn for_stdout(text: &str) -> Cow<'_, str> {
    match io::stdout().is_terminal() {
        // Its lines are its own.
        true => Cow::Owned(text.split('\n').map(tame).collect::<Vec<_>>().join("\n")),
        false => Cow::Borrowed(text),
    }
}

/// A value on one line, of no more than so many characters: texts in quotes, bytes as hex with their number.
pub fn line(value: &Value, max_chars: usize) -> String {
    let text = match value {
        Value::Str(text) => Json::from(text.as_str()).to_string(),
        Value::Json(text) => flat(text),
        Value::Bytes(bytes) => {
            let shown = &bytes[..bytes.len().min(SHOWN_LINE_BYTES)];
            let more = if shown.len() < bytes.len() { "..." } else { "" };
            format!("0x{}{more} ({} bytes)", render::hex(shown), bytes.len())
        }
        Value::Unreadable(why) => format!("unreadable: {why}"),
        Value::List(items) => format!("[{}]", elements(items, max_chars)),
        Value::Set(items) => format!("{{{}}}", elements(items, max_chars)),
        other => match json(other) {
            // Not a number, and the infinities.
            Json::String(text) => text,
            json => json.to_string(),
        },
    };
    cut(&tame(&text), max_chars)
}

/// So many of the elements that they fill the line.
fn elements(items: &[Value], max_chars: usize) -> String {
    let mut text = String::new();
    for (i, item) in items.iter().enumerate() {
        if text.len() > max_chars {
            break;
        }
        text.push_str(if i == 0 { "" } else { ", " });
        text.push_str(&line(item, max_chars));
    }
    text
}

fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        None => text.to_owned(),
        Some(_) => {
            let kept: String = text.chars().take(max_chars.saturating_sub(1)).collect();
            format!("{kept}…")
        }
    }
}

/// JSON without the blanks between its parts. Not read and written anew, which would cut large numbers.
fn flat(text: &str) -> String {
    let (mut inside, mut escaped) = (false, false);
    let says = |c: &char| {
        let blank = !inside && matches!(c, ' ' | '\t' | '\n' | '\r');
        match (inside, escaped, c) {
            (true, true, _) => escaped = false,
            (true, false, '\\') => escaped = true,
            (_, _, '"') => inside = !inside,
            _ => {}
        }
        !blank
    };
    text.chars().filter(says).collect()
}

/// A value as JSON: bytes in base64, sets as arrays, messages with names as in the `.proto` file; what is not a
/// finite number as `"nan"`, `"inf"` and `"-inf"`.
pub fn json(value: &Value) -> Json {
    match value {
        Value::Bool(b) => (*b).into(),
        Value::Int(n) => (*n).into(),
        Value::Float(x) => float(*x),
        Value::Str(text) => text.as_str().into(),
        Value::Bytes(bytes) => base64(bytes).into(),
        // Numbers larger than JSON's readers take stay as they are.
        Value::Json(text) => {
            serde_json::from_str(text).unwrap_or_else(|_| Json::from(text.as_str()))
        }
        Value::List(items) | Value::Set(items) => items.iter().map(json).collect(),
        Value::Message(message) => message_json(message),
        Value::Unreadable(_) => Json::Null,
        other => format!("{other:?}").into(),
    }
}

fn message_json(message: &StateMessage) -> Json {
    match message.message_type() {
        MessageType::Protobuf(schema) => dynamic_json(schema, message.bytes()),
        MessageType::Plain(plain) => plain.format(message.bytes()),
        MessageType::Raw => base64(message.bytes()).into(),
    }
}

fn dynamic_json(schema: &Schema, bytes: &[u8]) -> Json {
    let options = JsonOptions {
        proto_names: true,
        defaults: true,
        plain_integers: true,
        ..JsonOptions::default()
    };
    match Dynamic::decode(schema, bytes) {
        Ok(message) => message.to_json(&options),
        Err(_) => base64(bytes).into(),
    }
}

/// A number of JSON, or a word for what JSON has no number for.
pub fn float(x: f64) -> Json {
    match serde_json::Number::from_f64(x) {
        Some(number) => Json::Number(number),
        None if x.is_nan() => "nan".into(),
        None if x > 0.0 => "inf".into(),
        None => "-inf".into(),
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
    fn a_line_says_what_it_is_and_is_no_longer_than_told() {
        let bytes: Vec<u8> = (0..20).collect();
        for (value, text) in [
            (Value::from(true), "true"),
            (Value::from(-0.0), "-0.0"),
            (Value::from(f64::NEG_INFINITY), "-inf"),
            (Value::from("a\nb\u{1b}"), r#""a\nb\u001b""#),
            (Value::from("\u{202e}"), r#""\u{202e}""#),
            (Value::from(bytes), "0x000102030405060708090a0b0c0d0e0f... (20 bytes)"),
            (
                Value::Json("{ \"a b\" : [1,\n 2e400, \"\\\" \"] }".into()),
                r#"{"a b":[1,2e400,"\" "]}"#,
            ),
            (Value::list(["a", "b"]), r#"["a", "b"]"#),
            (Value::set([2, 1]), "{1, 2}"),
            (Value::Unreadable("cut".into()), "unreadable: cut"),
        ] {
            assert_eq!(line(&value, 100), text);
        }
        assert_eq!(line(&Value::from("äöü"), 4), "\"äö…");
        assert_eq!(line(&Value::list(0..1000), 9), "[0, 1, 2…");
    }

    #[test]
    fn values_on_lines_of_their_own_end_as_told() {
        let shown = |value: &Value, limits| {
            let mut out = Vec::new();
            print(&mut out, value, limits).unwrap();
            String::from_utf8(out).unwrap()
        };
        let list = Value::list(0..5);
        assert_eq!(shown(&list, Limits::of(3, false)), "0\n1\n2\n... (2 more elements)\n");
        assert_eq!(shown(&list, Limits::of(3, true)), "0\n1\n2\n3\n4\n");
        assert_eq!(shown(&Value::Json("[1, 2]".into()), Limits::of(1, false)), "[1, 2]\n");
    }

    #[test]
    fn json_of_what_has_no_json() {
        assert_eq!(json(&Value::from(f64::NAN)), "nan");
        assert_eq!(json(&Value::from(b"\xff\x00")), "/wA=");
        assert_eq!(from_base64("/wA=").unwrap(), [255, 0]);
        assert!(from_base64("/wA").is_err());
    }
}
