//! Values of the state for people: on lines of their own, and on one line.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use rnet::state::Value;
use serde_json::Value as Json;

use super::hex::{hex, hex_dump};
use super::{Limits, Message, to_json};
use crate::error::Outcome;
use crate::text::escape_controls;

/// Bytes of a value of bytes that are shown on a line.
const SHOWN_LINE_BYTES: usize = 16;

/// Prints a value on lines of its own.
pub fn print(out: &mut impl Write, value: &Value, limits: Limits) -> Outcome {
    match value {
        Value::Str(text) | Value::Json(text) => writeln!(out, "{}", escape_for_terminal(text))?,
        Value::Bytes(bytes) => hex_dump(out, bytes, limits.elements)?,
        Value::List(items) | Value::Set(items) => {
            for item in items.iter().take(limits.elements) {
                match item {
                    Value::Str(text) => writeln!(out, "{}", escape_for_terminal(text))?,
                    other => writeln!(out, "{}", line(other, usize::MAX))?,
                }
            }
            match items.len().saturating_sub(limits.elements) {
                0 => {}
                more => writeln!(out, "... ({more} more elements)")?,
            }
        }
        Value::Message(message) => Message::of_state(message).print(out, limits)?,
        scalar => writeln!(out, "{}", line(scalar, usize::MAX))?,
    }
    Ok(())
}

/// A program gets the text as it is; a terminal would do what it says.
fn escape_for_terminal(text: &str) -> Cow<'_, str> {
    match io::stdout().is_terminal() {
        // Its lines are its own.
        true => Cow::Owned(text.split('\n').map(escape_controls).collect::<Vec<_>>().join("\n")),
        false => Cow::Borrowed(text),
    }
}

/// A value on one line, of no more than so many characters: texts in quotes, bytes as hex with their number.
pub fn line(value: &Value, max_chars: usize) -> String {
    let text = match value {
        Value::Str(text) => Json::from(text.as_str()).to_string(),
        Value::Json(text) => compact_json(text),
        Value::Bytes(bytes) => {
            let shown = &bytes[..bytes.len().min(SHOWN_LINE_BYTES)];
            let more = if shown.len() < bytes.len() { "..." } else { "" };
            format!("0x{}{more} ({} bytes)", hex(shown), bytes.len())
        }
        Value::Unreadable(why) => format!("unreadable: {why}"),
        Value::List(items) => format!("[{}]", elements(items, max_chars)),
        Value::Set(items) => format!("{{{}}}", elements(items, max_chars)),
        other => match to_json(other) {
            // Not a number, and the infinities.
            Json::String(text) => text,
            json => json.to_string(),
        },
    };
    cut(&escape_controls(&text), max_chars)
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
fn compact_json(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_described_and_obeys_the_length_limit() {
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
    fn multi_line_values_obey_the_limit() {
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
}
