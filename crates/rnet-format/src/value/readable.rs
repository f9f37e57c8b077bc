//! Formats a plain message for people, with strings.
//!
//! A plain layout has no string type, only byte arrays: `frame_id: u8[64]`. An array with text followed by
//! zeros is shown as text, every other array as numbers. The built-in headers describe their text fields,
//! times and list lengths. Output for programs (`--json`, `--csv`) always contains numbers.

use rnet::msgs::plain::{FieldForm, HeaderDescription};
use rnet::{FieldType, PlainType, Prim};
use serde_json::Value;

/// Shorter arrays are shown as numbers, whatever they contain.
const MIN_TEXT_FIELD_LEN: u32 = 8;
/// Name under which a format stores the number of bytes after the header.
const DATA_LEN: &str = "_data_len";

/// How to format texts and times.
#[derive(Clone, Copy)]
pub struct ReadableFormat {
    /// Formats a text.
    pub text: fn(&str) -> String,
    /// Formats a time in ns since 1970 UTC, other than 0.
    pub time: fn(i64) -> Value,
}

/// The output of [`PlainType::format`] with texts, and with a line for the data after the header.
pub fn readable(plain: &PlainType, bytes: &[u8], writing: ReadableFormat) -> Value {
    let mut value = plain.format(bytes);
    if let Some(described) = HeaderDescription::find(plain) {
        format_described(&described, &mut value, writing);
    }
    format_texts(plain, &mut value, writing);
    if let Value::Object(fields) = &mut value
        && let Some(len) = fields.remove(DATA_LEN)
    {
        fields.insert("data".to_owned(), Value::String(format!("{len} bytes")));
    }
    value
}

/// Formats the described fields of a built-in header. Non-empty texts are detected without it.
fn format_described(described: &HeaderDescription, value: &mut Value, writing: ReadableFormat) {
    let Value::Object(fields) = value else { return };
    for doc in described.fields {
        let used = match doc.form {
            FieldForm::Counted(by) => fields.get(by).and_then(Value::as_u64),
            _ => None,
        };
        let Some(value) = fields.get_mut(doc.path) else { continue };
        match (doc.form, &mut *value) {
            (FieldForm::Text, Value::Array(items)) if items.iter().all(|item| *item == 0) => {
                *value = Value::String((writing.text)(""));
            }
            (FieldForm::TimeNs, Value::Number(number)) => {
                if let Some(ns) = number.as_i64().filter(|ns| *ns != 0) {
                    *value = (writing.time)(ns);
                }
            }
            // A count beyond the length is not applied, so that it is visible.
            (FieldForm::Counted(_), Value::Array(items)) => {
                items.truncate(used.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX));
            }
            _ => {}
        }
    }
}

fn format_texts(plain: &PlainType, value: &mut Value, writing: ReadableFormat) {
    let Value::Object(fields) = value else { return };
    for field in &plain.fields {
        if let Some(value) = fields.get_mut(&field.name) {
            format_text(&field.ty, value, writing);
        }
    }
}

fn format_text(ty: &FieldType, value: &mut Value, writing: ReadableFormat) {
    match (ty, &mut *value) {
        (FieldType::Struct(plain), value) => format_texts(plain, value, writing),
        (FieldType::Array { of, len }, Value::Array(items)) => match &**of {
            FieldType::Prim(Prim::U8) if *len >= MIN_TEXT_FIELD_LEN => {
                if let Some(text) = text_of(items) {
                    *value = Value::String((writing.text)(&text));
                }
            }
            FieldType::Prim(_) => {}
            of => items.iter_mut().for_each(|item| format_text(of, item, writing)),
        },
        _ => {}
    }
}

/// The text in an array of bytes, if it does not begin with zero, is UTF-8, and is followed only by zeros.
fn text_of(items: &[Value]) -> Option<String> {
    let bytes: Option<Vec<u8>> =
        items.iter().map(|item| item.as_u64().and_then(|n| u8::try_from(n).ok())).collect();
    let bytes = bytes?;
    let len = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let (text, rest) = bytes.split_at(len);
    let text = std::str::from_utf8(text).ok().filter(|text| !text.is_empty())?;
    (rest.iter().all(|b| *b == 0) && !text.contains(char::is_control)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rnet::TypeDesc;

    fn of(json: &str) -> PlainType {
        TypeDesc::from_json(json).unwrap().as_plain().unwrap().clone()
    }

    #[test]
    fn strings_are_shown_as_strings_and_numbers_as_numbers() {
        let ty = of(r#"{"kind":"plain","name":"T","size":28,"align":1,"tail":true,"fields":[
                {"name":"frame","offset":0,"type":{"array":{"of":"u8","len":8}}},
                {"name":"rgb","offset":8,"type":{"array":{"of":"u8","len":3}}},
                {"name":"raw","offset":11,"type":{"array":{"of":"u8","len":8}}},
                {"name":"parts","offset":19,"type":{"array":{"of":{"struct":{"name":"P","size":9,"align":1,"fields":[
                    {"name":"label","offset":1,"type":{"array":{"of":"u8","len":8}}}]}},"len":1}}}]}"#);
        let mut bytes = b"cam\"\0\0\0\0RGB\x01A\0B\0\0\0\0\0left\0\0\0\0".to_vec();
        bytes.extend([7; 10]);
        let writing = ReadableFormat { text: |text| format!("<{text}>"), time: Value::from };
        let shown = readable(&ty, &bytes, writing);
        assert_eq!(shown["frame"], "<cam\">");
        assert_eq!(shown["rgb"], serde_json::json!([82, 71, 66]));
        assert_eq!(shown["raw"], serde_json::json!([1, 65, 0, 66, 0, 0, 0, 0]));
        assert_eq!(shown["parts"][0]["label"], "<left>");
        assert_eq!(shown["data"], "10 bytes");
        assert_eq!(shown.get(DATA_LEN), None);
    }
}
