//! The description of a parameter: its type, its bounds, its texts.
//!
//! A description is stored as JSON next to the value, where every setter in the domain reads it. It is parsed
//! as untrusted input: an inconsistent description is an error.

use std::ops::Not;

use rnet_core::MAX_META_LEN_BYTES;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::kind::{ParamKind, kind_name_of};
use super::refused_value::RefusedValue;
use crate::Value;

/// Maximum number of choices of a parameter.
pub const MAX_CHOICES: usize = 256;
/// Maximum number of items of a list parameter.
pub const MAX_ITEMS: usize = 4096;
/// Longest unit, choice and text of a parameter, in bytes.
pub const MAX_TEXT_LEN_BYTES: usize = 4096;
/// The declaration of a parameter by its node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ParamDescription {
    /// The node that declared it: `/arm`.
    #[serde(default)]
    pub node: String,
    /// Its name in that node: `/gain`.
    #[serde(default)]
    pub name: String,
    /// The type of its values.
    #[serde(rename = "type")]
    pub kind: ParamKind,
    /// The value of an unset parameter; `None`: it must be set.
    #[serde(default, with = "plain", skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The minimum.
    #[serde(default, with = "plain", skip_serializing_if = "Option::is_none")]
    pub min: Option<Value>,
    /// The maximum.
    #[serde(default, with = "plain", skip_serializing_if = "Option::is_none")]
    pub max: Option<Value>,
    /// The allowed values; empty if any value is allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The unit of its values, for display: `1/s`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// The description for users.
    #[serde(default, rename = "description", skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Whether it cannot be set while its node runs.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub read_only: bool,
    /// Whether its value survives a power cut.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub durable: bool,
    /// The invalid value that its node found, until another value is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedValue>,
    /// Whether the value written together with this description is the default. It still is while both have
    /// the same revision.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub(crate) default_stands: bool,
}

impl ParamDescription {
    /// A description with only the names and the type.
    pub(crate) fn new(node: &str, name: &str, kind: ParamKind) -> ParamDescription {
        let (node, name) = (node.to_owned(), name.to_owned());
        ParamDescription { node, name, kind, ..ParamDescription::default() }
    }

    /// The first difference from another declaration of the parameter: `"maximum"`; `None` if they are equal.
    pub(crate) fn difference(&self, other: &ParamDescription) -> Option<&'static str> {
        let parts = [
            ("type", self.kind != other.kind),
            ("minimum", self.min != other.min),
            ("maximum", self.max != other.max),
            ("set of choices", self.choices != other.choices),
            ("read_only", self.read_only != other.read_only),
            ("durable", self.durable != other.durable),
            ("default", self.default != other.default),
            ("unit", self.unit != other.unit),
            ("description", self.text != other.text),
        ];
        parts.into_iter().find_map(|(part, differs)| differs.then_some(part))
    }

    /// Checks the description. Errors complete the phrase "parameter /gain of /arm: ".
    pub(crate) fn validate(&self) -> Result<(), String> {
        let texts = self.choices.iter().chain([&self.unit, &self.text]);
        if let Some(long) = texts.map(String::len).find(|len| *len > MAX_TEXT_LEN_BYTES) {
            return Err(format!(
                "a text has {long} bytes; unit, description and each choice may have at most {MAX_TEXT_LEN_BYTES}"
            ));
        }
        if self.choices.len() > MAX_CHOICES {
            let count = self.choices.len();
            return Err(format!("{count} choices; at most {MAX_CHOICES} are allowed"));
        }
        if !self.choices.is_empty() && !self.kind.is_text() {
            return Err(format!("choices are for text; this parameter is {}", self.kind));
        }
        self.check_bounds()?;
        if let Some(default) = &self.default {
            self.check(default)
                .map_err(|why| format!("its default {} {why}", format_value(default)))?;
        }
        let len = self.to_json().len();
        if len > MAX_META_LEN_BYTES {
            return Err(format!(
                "its description has {len} bytes; at most {MAX_META_LEN_BYTES} fit"
            ));
        }
        Ok(())
    }

    fn check_bounds(&self) -> Result<(), String> {
        for (bound, word) in [(&self.min, "minimum"), (&self.max, "maximum")] {
            let Some(bound) = bound else { continue };
            if !self.kind.is_numeric() {
                return Err(format!("a {word} is for numbers; this parameter is {}", self.kind));
            }
            if !self.item_kind().takes(bound) {
                return Err(format!(
                    "its {word} {} is not of type {}",
                    format_value(bound),
                    self.item_kind()
                ));
            }
            if is_nan(bound) {
                return Err(format!("its {word} is not a number"));
            }
        }
        match (&self.min, &self.max) {
            (Some(min), Some(max)) if is_less(max, min) => Err(format!(
                "its minimum {} is above its maximum {}",
                format_value(min),
                format_value(max)
            )),
            _ => Ok(()),
        }
    }

    /// The kind of a single value, or of the items of a list.
    fn item_kind(&self) -> ParamKind {
        self.kind.item().unwrap_or(self.kind)
    }

    /// Checks that a value is valid for the parameter.
    ///
    /// # Errors
    /// The reason, which follows the value in a sentence: `"is above its maximum 10.0"`.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        if !self.kind.takes(value) {
            if let Some(i) = self.find_inexact_int(value) {
                let (float, kind) = (i as f64, self.kind);
                let found = match value {
                    Value::List(_) => format!("has {i}, an int that has no exact float value"),
                    _ => "is an int that has no exact float value".to_owned(),
                };
                return Err(format!("{found}, but the parameter is {kind}; use {float:?}"));
            }
            return Err(format!("is {}, but the parameter is {}", kind_name_of(value), self.kind));
        }
        let Value::List(items) = value else { return self.check_single(value) };
        if items.len() > MAX_ITEMS {
            return Err(format!("has {} items; at most {MAX_ITEMS} are allowed", items.len()));
        }
        for (at, item) in items.iter().enumerate() {
            let place = |why| format!("has {} at [{at}], which {why}", format_value(item));
            self.check_single(item).map_err(place)?;
        }
        Ok(())
    }

    /// The first int among the values that has no exact float value, if floats are required.
    fn find_inexact_int(&self, value: &Value) -> Option<i64> {
        match value {
            Value::Int(i) if self.item_kind() == ParamKind::Float && float_of(*i).is_none() => {
                Some(*i)
            }
            Value::List(items) => items.iter().find_map(|item| self.find_inexact_int(item)),
            _ => None,
        }
    }

    fn check_single(&self, value: &Value) -> Result<(), String> {
        if is_nan(value) {
            return Err("is not a number".to_owned());
        }
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        if let Some(min) = self.min.as_ref().filter(|min| is_less(value, min)) {
            return Err(format!("is below its minimum {}{unit}", format_value(min)));
        }
        if let Some(max) = self.max.as_ref().filter(|max| is_less(max, value)) {
            return Err(format!("is above its maximum {}{unit}", format_value(max)));
        }
        match value {
            Value::Str(text) if !self.choices.is_empty() && !self.choices.contains(text) => {
                Err(format!("is not one of its choices: {}", self.choices.join(", ")))
            }
            Value::Str(text) if text.len() > MAX_TEXT_LEN_BYTES => Err(format!(
                "has {} bytes; a parameter has at most {MAX_TEXT_LEN_BYTES}",
                text.len()
            )),
            _ => Ok(()),
        }
    }

    /// The value converted to this parameter's type, if it is equal: an int becomes a float.
    pub fn adapt(&self, value: Value) -> Value {
        adapt(self.item_kind(), value)
    }

    /// The description as stored in the domain.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings, numbers and lists always have a JSON form")
    }

    /// Parses a description from any process.
    ///
    /// # Errors
    /// The fault.
    pub(crate) fn from_json(text: &str) -> Result<ParamDescription, String> {
        let mut read: ParamDescription = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let single = read.item_kind();
        for value in [&mut read.default, &mut read.min, &mut read.max] {
            *value = value.take().map(|value| parse_infinities(single, value));
        }
        read.validate()?;
        Ok(read)
    }
}

fn adapt(single: ParamKind, value: Value) -> Value {
    match value {
        Value::Int(i) if single == ParamKind::Float => {
            float_of(i).map_or(Value::Int(i), Value::Float)
        }
        Value::List(items) => {
            Value::List(items.into_iter().map(|item| adapt(single, item)).collect())
        }
        other => other,
    }
}

/// Converts words for infinite numbers in a parsed value.
fn parse_infinities(single: ParamKind, value: Value) -> Value {
    match value {
        Value::Str(word) if single == ParamKind::Float => match word.as_str() {
            "inf" => Value::Float(f64::INFINITY),
            "-inf" => Value::Float(f64::NEG_INFINITY),
            _ => Value::Str(word),
        },
        Value::List(items) => {
            Value::List(items.into_iter().map(|item| parse_infinities(single, item)).collect())
        }
        other => adapt(single, other),
    }
}

/// A value for display, in the notation of Python and the command line.
pub(crate) fn format_value(value: &Value) -> String {
    match value {
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        // With a decimal point: 10.0 is a float and 10 is an int.
        Value::Float(f) => format!("{f:?}"),
        Value::Str(s) => format!("{s:?}"),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(format_value).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.type_text(),
    }
}

/// The equal float, if one exists.
fn float_of(int: i64) -> Option<f64> {
    let float = int as f64;
    (float as i128 == i128::from(int)).then_some(float)
}

fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Float(f) if f.is_nan())
}

/// Whether one number is less than another of the same kind.
fn is_less(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a < b,
        (Value::Float(a), Value::Float(b)) => a < b,
        _ => false,
    }
}

/// A value as JSON. Infinite numbers, which JSON lacks, are words.
mod plain {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use super::*;

    pub fn serialize<S: Serializer>(value: &Option<Value>, to: S) -> Result<S::Ok, S::Error> {
        value.as_ref().map(to_plain).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
        let Some(json) = Option::<Json>::deserialize(from)? else { return Ok(None) };
        of_plain(&json).map(Some).ok_or_else(|| D::Error::custom(format!("{json} is not a value")))
    }

    fn to_plain(value: &Value) -> Json {
        match value {
            Value::Bool(b) => json!(b),
            Value::Int(i) => json!(i),
            Value::Float(f) if f.is_finite() => json!(f),
            Value::Float(f) => json!(f.to_string()),
            Value::Str(s) => json!(s),
            Value::List(items) => items.iter().map(to_plain).collect(),
            other => json!(format_value(other)),
        }
    }

    fn of_plain(json: &Json) -> Option<Value> {
        match json {
            Json::Bool(b) => Some(Value::Bool(*b)),
            Json::Number(n) => n.as_i64().map(Value::Int).or(n.as_f64().map(Value::Float)),
            Json::String(s) => Some(Value::Str(s.clone())),
            Json::Array(items) => {
                items.iter().map(of_plain).collect::<Option<_>>().map(Value::List)
            }
            Json::Null | Json::Object(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
