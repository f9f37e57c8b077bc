//! A message for people who look at a terminal.

use crate::docs::Docs;
use crate::json::{self, BytesForm, JsonOptions};
use crate::path::key_text;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, ReflectMessage, Value};
use std::fmt::Write as _;

/// Elements of a list that are shown; the rest is counted.
const MAX_SHOWN_ELEMENTS: usize = 32;

/// A line for each field that is set, nested messages indented, units behind numbers.
pub(crate) fn message(message: &DynamicMessage, docs: &Docs) -> String {
    let mut out = String::new();
    fields(message, docs, 0, &mut out);
    if message.unknown_fields().next().is_some() {
        let unknown = message.unknown_fields().count();
        line(
            &mut out,
            0,
            format_args!("# and {unknown} values of fields that this type does not know"),
        );
    }
    out
}

fn line(out: &mut String, indent: usize, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{:indent$}{text}", "", indent = 2 * indent);
}

fn fields(message: &DynamicMessage, docs: &Docs, indent: usize, out: &mut String) {
    for field in message.descriptor().fields() {
        // What has no presence is always there, zero or not: on a robot zero is a value.
        if message.has_field(&field)
            || !(field.supports_presence() || field.is_list() || field.is_map())
        {
            show(&field, &message.get_field(&field), docs, indent, out);
        }
    }
}

fn show(field: &FieldDescriptor, value: &Value, docs: &Docs, indent: usize, out: &mut String) {
    let name = field.name();
    let unit = docs.unit(field.full_name()).map(|unit| format!(" {unit}")).unwrap_or_default();
    match value {
        Value::List(values) if matches!(field.kind(), Kind::Message(_)) => {
            for (i, value) in values.iter().take(MAX_SHOWN_ELEMENTS).enumerate() {
                nested(&format!("{name}[{i}]"), value, &field.kind(), "", docs, indent, out);
            }
            if let Some(more) = values.len().checked_sub(MAX_SHOWN_ELEMENTS).filter(|n| *n > 0) {
                line(out, indent, format_args!("# and {more} more of {name}"));
            }
        }
        Value::List(values) => {
            let shown = values.iter().take(MAX_SHOWN_ELEMENTS);
            let mut texts: Vec<String> = shown.map(|v| single(v, &field.kind())).collect();
            if let Some(more) = values.len().checked_sub(MAX_SHOWN_ELEMENTS).filter(|n| *n > 0) {
                texts.push(format!("… {more} more"));
            }
            line(out, indent, format_args!("{name}: [{}]{unit}", texts.join(", ")));
        }
        Value::Map(entries) => {
            let Kind::Message(entry) = field.kind() else { return };
            let kind = entry.map_entry_value_field().kind();
            for (key, value) in json::sorted(entries).into_iter().take(MAX_SHOWN_ELEMENTS) {
                let label = format!("{name}[{:?}]", key_text(key));
                nested(&label, value, &kind, &unit, docs, indent, out);
            }
            if let Some(more) = entries.len().checked_sub(MAX_SHOWN_ELEMENTS).filter(|n| *n > 0) {
                line(out, indent, format_args!("# and {more} more of {name}"));
            }
        }
        value => nested(name, value, &field.kind(), &unit, docs, indent, out),
    }
}

/// One value under a label: a message below it, anything else behind it.
fn nested(
    label: &str,
    value: &Value,
    kind: &Kind,
    unit: &str,
    docs: &Docs,
    indent: usize,
    out: &mut String,
) {
    match value {
        Value::Message(inner) if !json::is_well_known(inner.descriptor().full_name()) => {
            line(out, indent, format_args!("{label}:"));
            fields(inner, docs, indent + 1, out);
        }
        value => line(out, indent, format_args!("{label}: {}{unit}", single(value, kind))),
    }
}

fn single(value: &Value, kind: &Kind) -> String {
    let options = JsonOptions {
        proto_names: true,
        plain_integers: true,
        bytes: BytesForm::Length,
        ..JsonOptions::default()
    };
    match json::value(value, kind, &options) {
        // Strings keep their quotes and escapes: what comes from elsewhere must not steer a terminal.
        serde_json::Value::String(text) if matches!(value, Value::String(_)) => format!("{text:?}"),
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    }
}
