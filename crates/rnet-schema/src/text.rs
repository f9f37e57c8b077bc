//! Messages as text for terminals and YAML parsers.
//!
//! The text is one YAML document; units and truncation notes are comments. Strings of the message are quoted
//! with escaped control characters, so that a peer cannot control a terminal.

use crate::docs::Docs;
use crate::escape::quoted_json;
use crate::json::{self, JsonOptions};
use crate::path::key_text;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage, Value};
use std::fmt::Write as _;

/// Limits of the output; omitted elements are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Maximum elements of a list or entries of a map.
    pub max_elements: usize,
    /// Maximum bytes of a bytes field.
    pub max_bytes: usize,
}

impl Default for TextOptions {
    /// 32 elements, 16 bytes.
    fn default() -> Self {
        Self { max_elements: 32, max_bytes: 16 }
    }
}

/// One line per set field; nested messages are indented.
pub(crate) fn message(message: &DynamicMessage, docs: &Docs, options: &TextOptions) -> String {
    let mut text = TextWriter { docs, options, out: String::new() };
    text.fields(message, None, 0);
    let unknown = message.unknown_fields().count();
    if unknown > 0 {
        let s = if unknown == 1 { "" } else { "s" };
        text.line(0, format_args!("# and {unknown} value{s} of unknown fields"));
    }
    text.out
}

/// One value; `kind` is its type, or the type of its elements.
pub(crate) fn field(
    value: &Value,
    kind: &Kind,
    unit: Option<&str>,
    docs: &Docs,
    options: &TextOptions,
) -> String {
    let mut text = TextWriter { docs, options, out: String::new() };
    text.value(None, value, kind, unit, 0);
    text.out
}

/// The growing output.
struct TextWriter<'a> {
    docs: &'a Docs,
    options: &'a TextOptions,
    out: String,
}

impl TextWriter<'_> {
    fn line(&mut self, indent: usize, text: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.out, "{:indent$}{text}", "", indent = 2 * indent);
    }

    /// Writes the fields of a message in a field with this unit.
    fn fields(&mut self, message: &DynamicMessage, holder: Option<&str>, indent: usize) {
        for field in message.descriptor().fields() {
            if is_shown(message, &field) {
                let docs = self.docs;
                let unit = docs.unit_within(field.full_name(), holder);
                let value = message.get_field(&field);
                let label = match is_yaml_word(field.name()) {
                    true => &quoted(field.name()),
                    false => field.name(),
                };
                self.value(Some(label), &value, &field.kind(), unit, indent);
            }
        }
    }

    /// Writes a value after or below its label, if it has one.
    fn value(
        &mut self,
        label: Option<&str>,
        value: &Value,
        kind: &Kind,
        unit: Option<&str>,
        indent: usize,
    ) {
        match value {
            Value::Message(inner) if has_lines(value) => {
                let below = self.label(label, indent);
                self.fields(inner, unit, below);
            }
            Value::List(values) if values.iter().any(has_lines) => {
                let below = self.label(label, indent);
                for value in values.iter().take(self.options.max_elements) {
                    match has_lines(value) {
                        true => self.line(below, format_args!("-")),
                        false => self.line(below, format_args!("- {{}}")),
                    }
                    if has_lines(value) {
                        self.value(None, value, kind, unit, below + 1);
                    }
                }
                self.more(values.len(), below);
            }
            Value::Map(entries) if !entries.is_empty() => {
                let inner = json::value_kind(kind);
                let below = self.label(label, indent);
                for (key, value) in
                    json::sorted(entries).into_iter().take(self.options.max_elements)
                {
                    let key = match key {
                        MapKey::String(text) => quoted(text),
                        other => key_text(other),
                    };
                    self.value(Some(&key), value, &inner, unit, below);
                }
                self.more(entries.len(), below);
            }
            value => {
                let (text, note) = self.inline(value, kind);
                let notes: Vec<&str> = note.as_deref().into_iter().chain(unit).collect();
                let notes = match notes.is_empty() {
                    true => String::new(),
                    false => format!("  # {}", notes.join(", ")),
                };
                match label {
                    Some(label) => self.line(indent, format_args!("{label}: {text}{notes}")),
                    None => self.line(indent, format_args!("{text}{notes}")),
                }
            }
        }
    }

    /// Writes the label of nested lines; returns their indentation.
    fn label(&mut self, label: Option<&str>, indent: usize) -> usize {
        match label {
            Some(label) => {
                self.line(indent, format_args!("{label}:"));
                indent + 1
            }
            None => indent,
        }
    }

    fn more(&mut self, len: usize, indent: usize) {
        if let Some(more) = len.checked_sub(self.options.max_elements).filter(|n| *n > 0) {
            self.line(indent, format_args!("# ... {more} more"));
        }
    }

    /// A value on one line, and an optional comment after it.
    fn inline(&self, value: &Value, kind: &Kind) -> (String, Option<String>) {
        match value {
            Value::List(values) => {
                let max = self.options.max_elements;
                let shown = values.iter().take(max);
                let mut texts: Vec<String> = shown.map(|v| self.inline(v, kind).0).collect();
                let more = values.len().saturating_sub(max);
                if more > 0 {
                    texts.push("...".to_owned());
                }
                let note = (more > 0).then(|| format!("{more} more"));
                (format!("[{}]", texts.join(", ")), note)
            }
            Value::Bytes(bytes) => {
                let max = self.options.max_bytes;
                let mut hex = String::with_capacity(2 * bytes.len().min(max) + 5);
                for byte in bytes.iter().take(max) {
                    // Writing to a String cannot fail.
                    let _ = write!(hex, "{byte:02x}");
                }
                if bytes.len() > max {
                    hex.push_str("...");
                }
                (format!("\"{hex}\""), Some(format!("{} bytes", bytes.len())))
            }
            Value::F32(v) if !v.is_finite() => (not_finite(f64::from(*v)), None),
            Value::F64(v) if !v.is_finite() => (not_finite(*v), None),
            Value::String(text) => (quoted(text), None),
            value => {
                let options = JsonOptions {
                    proto_names: true,
                    plain_integers: true,
                    ..JsonOptions::default()
                };
                let text = match json::value(value, kind, &options) {
                    serde_json::Value::String(text) if is_bare(kind) && is_plain(&text) => text,
                    other => quoted_json(&other),
                };
                (text, None)
            }
        }
    }
}

/// Whether a value needs separate lines.
fn has_lines(value: &Value) -> bool {
    let Value::Message(message) = value else { return false };
    let descriptor = message.descriptor();
    !json::is_well_known(descriptor.full_name())
        && descriptor.fields().any(|field| is_shown(message, &field))
}

/// A field without presence is always shown, because zero is a meaningful value on a robot.
fn is_shown(message: &DynamicMessage, field: &FieldDescriptor) -> bool {
    message.has_field(field) || !(field.supports_presence() || field.is_list() || field.is_map())
}

/// The YAML notation of NaN and infinity.
fn not_finite(v: f64) -> String {
    match v {
        f64::INFINITY => ".inf",
        f64::NEG_INFINITY => "-.inf",
        _ => ".nan",
    }
    .to_owned()
}

/// Whether a text is valid unquoted YAML and keeps its meaning: `STATUS_OK`, `2026-11-21T12:00:00Z`, `1.5s`.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.:+-".contains(c))
        && !text.ends_with(':')
        && !is_yaml_word(text)
}

/// Words that YAML parsers read as booleans or null, including YAML 1.1: an enum may have the value `NO`, and
/// a message the field `on`. `y` and `n` are excluded: no parser in use does so, and most vectors have a `y`.
fn is_yaml_word(text: &str) -> bool {
    const WORDS: [&str; 7] = ["true", "false", "yes", "no", "on", "off", "null"];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Whether unquoted texts of this kind are unambiguous: names of enum values, and times and durations of
/// protobuf. A `google.protobuf.StringValue` may look like anything.
fn is_bare(kind: &Kind) -> bool {
    match kind {
        Kind::Enum(_) => true,
        Kind::Message(message) => {
            matches!(message.full_name(), "google.protobuf.Timestamp" | "google.protobuf.Duration")
        }
        _ => false,
    }
}

/// A quoted text, valid as JSON and YAML; terminal control characters are escaped.
///
/// ```
/// assert_eq!(rnet_schema::text_quoted("a\"\u{1b}\u{9b}"), r#""a\"\u001b\u009b""#);
/// ```
pub fn quoted(text: &str) -> String {
    quoted_json(&serde_json::Value::from(text))
}
