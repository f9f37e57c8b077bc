//! What a parameter may be: its type, its bounds, its words.
//!
//! A description stands as JSON beside the value, where every setter in the domain reads it. It is
//! read back as what a stranger wrote: whatever does not make sense in it is an error, and no
//! description.

use rnet_core::MAX_META_LEN_BYTES;
use serde_json::{Map, Value as Json, json};

use super::kind::{ParamKind, kind_word};
use super::refused::Refused;
use crate::Value;

/// Choices that a parameter may have.
pub const MAX_CHOICES: usize = 256;
/// Items that a parameter which is a list may have.
pub const MAX_ITEMS: usize = 4096;
/// Longest unit, choice and text of a parameter, in bytes.
pub const MAX_TEXT_LEN_BYTES: usize = 4096;
/// What a node said of a parameter when it declared it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ParamDescription {
    /// The node that declared it: `/arm`.
    pub node: String,
    /// Its name in that node: `/gain`.
    pub name: String,
    /// The type of its values.
    pub kind: ParamKind,
    /// What it is where nobody has set it; `None`: somebody has to.
    pub default: Option<Value>,
    /// The least that it may be.
    pub min: Option<Value>,
    /// The most that it may be.
    pub max: Option<Value>,
    /// What it may be, where that is a choice; else empty.
    pub choices: Vec<String>,
    /// The unit of its values, for people: `1/s`.
    pub unit: String,
    /// What it is for, for people.
    pub text: String,
    /// It stays as it is while its node runs.
    pub read_only: bool,
    /// What it is set to outlives a power cut.
    pub durable: bool,
    /// The value that its node found and could not take, while nobody has set another.
    pub refused: Option<Refused>,
    /// The value that was written together with this is the default. It still is while both bear
    /// the same revision.
    pub(crate) default_stands: bool,
}

impl ParamDescription {
    /// A parameter of which nothing is said but its type.
    pub(crate) fn new(node: &str, name: &str, kind: ParamKind) -> ParamDescription {
        ParamDescription {
            node: node.to_owned(),
            name: name.to_owned(),
            kind,
            default: None,
            min: None,
            max: None,
            choices: Vec::new(),
            unit: String::new(),
            text: String::new(),
            read_only: false,
            durable: false,
            refused: None,
            default_stands: false,
        }
    }

    /// In what another declaration of the parameter differs from this one: `"maximum"`; `None` if in nothing.
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

    /// What may not be in a description, as the words that follow "parameter /gain of /arm: ".
    pub(crate) fn check_itself(&self) -> Result<(), String> {
        let texts = self.choices.iter().chain([&self.unit, &self.text]);
        if let Some(long) = texts.map(String::len).find(|len| *len > MAX_TEXT_LEN_BYTES) {
            return Err(format!(
                "a text of {long} bytes; unit, description and each choice have at most {MAX_TEXT_LEN_BYTES}"
            ));
        }
        if self.choices.len() > MAX_CHOICES {
            let count = self.choices.len();
            return Err(format!("{count} choices, and at most {MAX_CHOICES} are allowed"));
        }
        if !self.choices.is_empty() && !self.kind.is_of_text() {
            return Err(format!("choices are for text, and it is {}", self.kind));
        }
        self.check_bounds()?;
        if let Some(default) = &self.default {
            self.check(default).map_err(|why| format!("its default {} {why}", show(default)))?;
        }
        let len = self.to_json().len();
        if len > MAX_META_LEN_BYTES {
            return Err(format!(
                "its description has {len} bytes, and at most {MAX_META_LEN_BYTES} fit"
            ));
        }
        Ok(())
    }

    fn check_bounds(&self) -> Result<(), String> {
        for (bound, word) in [(&self.min, "minimum"), (&self.max, "maximum")] {
            let Some(bound) = bound else { continue };
            if !self.kind.is_of_numbers() {
                return Err(format!("a {word} is for numbers, and it is {}", self.kind));
            }
            if !self.single().takes(bound) {
                return Err(format!("its {word} {} is no {}", show(bound), self.single()));
            }
            if is_nan(bound) {
                return Err(format!("its {word} is not a number"));
            }
        }
        match (&self.min, &self.max) {
            (Some(min), Some(max)) if is_less(max, min) => {
                Err(format!("its minimum {} is above its maximum {}", show(min), show(max)))
            }
            _ => Ok(()),
        }
    }

    /// The kind of one value, or of one item of a list.
    fn single(&self) -> ParamKind {
        self.kind.item().unwrap_or(self.kind)
    }

    /// Whether the parameter may have this value.
    ///
    /// # Errors
    /// Why not, in words that follow the value: `"is above its maximum 10.0"`.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        if !self.kind.takes(value) {
            if let Some(i) = self.inexact(value) {
                let (float, kind) = (i as f64, self.kind);
                let found = match value {
                    Value::List(_) => format!("has {i}, an int that no float equals"),
                    _ => "is an int that no float equals".to_owned(),
                };
                return Err(format!("{found}, and the parameter is {kind}; give {float:?}"));
            }
            return Err(format!("is {}, and the parameter is {}", kind_word(value), self.kind));
        }
        let Value::List(items) = value else { return self.check_single(value) };
        if items.len() > MAX_ITEMS {
            return Err(format!("has {} items, and at most {MAX_ITEMS} are allowed", items.len()));
        }
        for (at, item) in items.iter().enumerate() {
            let place = |why| format!("has {} at [{at}], which {why}", show(item));
            self.check_single(item).map_err(place)?;
        }
        Ok(())
    }

    /// An int where floats are wanted that is none, among the values.
    fn inexact(&self, value: &Value) -> Option<i64> {
        match value {
            Value::Int(i) if self.single() == ParamKind::Float && float_of(*i).is_none() => {
                Some(*i)
            }
            Value::List(items) => items.iter().find_map(|item| self.inexact(item)),
            _ => None,
        }
    }

    fn check_single(&self, value: &Value) -> Result<(), String> {
        if is_nan(value) {
            return Err("is not a number".to_owned());
        }
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        if let Some(min) = self.min.as_ref().filter(|min| is_less(value, min)) {
            return Err(format!("is below its minimum {}{unit}", show(min)));
        }
        if let Some(max) = self.max.as_ref().filter(|max| is_less(max, value)) {
            return Err(format!("is above its maximum {}{unit}", show(max)));
        }
        match value {
            Value::Str(text) if !self.choices.is_empty() && !self.choices.contains(text) => {
                Err(format!("is none of its choices {}", self.choices.join(", ")))
            }
            Value::Str(text) if text.len() > MAX_TEXT_LEN_BYTES => Err(format!(
                "has {} bytes, and a parameter has at most {MAX_TEXT_LEN_BYTES}",
                text.len()
            )),
            _ => Ok(()),
        }
    }

    /// The value as one of this parameter's type, if it says the same: a whole number is a number.
    pub fn adapt(&self, value: Value) -> Value {
        match value {
            Value::Int(i) if self.single() == ParamKind::Float => {
                float_of(i).map_or(Value::Int(i), Value::Float)
            }
            Value::List(items) => {
                Value::List(items.into_iter().map(|item| self.adapt(item)).collect())
            }
            other => other,
        }
    }

    /// As it stands in the domain.
    pub(crate) fn to_json(&self) -> String {
        let mut map = Map::new();
        map.insert("node".to_owned(), json!(self.node));
        map.insert("name".to_owned(), json!(self.name));
        map.insert("type".to_owned(), json!(self.kind.name()));
        for (word, value) in [("default", &self.default), ("min", &self.min), ("max", &self.max)] {
            if let Some(value) = value {
                map.insert(word.to_owned(), plain_json(value));
            }
        }
        if !self.choices.is_empty() {
            map.insert("choices".to_owned(), json!(self.choices));
        }
        for (word, text) in [("unit", &self.unit), ("description", &self.text)] {
            if !text.is_empty() {
                map.insert(word.to_owned(), json!(text));
            }
        }
        let flags = [
            ("read_only", self.read_only),
            ("durable", self.durable),
            ("default_stands", self.default_stands),
        ];
        for (word, is_so) in flags {
            if is_so {
                map.insert(word.to_owned(), json!(true));
            }
        }
        if let Some(refused) = &self.refused {
            map.insert("refused".to_owned(), refused.to_json());
        }
        Json::Object(map).to_string()
    }

    /// Reads what some process wrote.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn from_json(text: &str) -> Result<ParamDescription, String> {
        let json: Json = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let map = json.as_object().ok_or("it is no JSON object")?;
        let text = |word: &str| match map.get(word) {
            None => Ok(String::new()),
            Some(Json::String(text)) => Ok(text.clone()),
            Some(_) => Err(format!("{word:?} is no text")),
        };
        let flag = |word: &str| match map.get(word) {
            None => Ok(false),
            Some(Json::Bool(is_so)) => Ok(*is_so),
            Some(_) => Err(format!("{word:?} is neither true nor false")),
        };
        let kind = text("type")?;
        let kind = ParamKind::of_name(&kind).ok_or_else(|| format!("the type {kind:?} is none"))?;
        let value = |word: &str, kind: ParamKind| match map.get(word) {
            None => Ok(None),
            Some(json) => from_plain_json(kind, json)
                .map(Some)
                .ok_or_else(|| format!("{word:?} is no {kind}")),
        };
        let mut description = ParamDescription::new(&text("node")?, &text("name")?, kind);
        description.default = value("default", kind)?;
        description.min = value("min", description.single())?;
        description.max = value("max", description.single())?;
        if let Some(choices) = map.get("choices") {
            let choices = choices.as_array().ok_or("\"choices\" is no array")?;
            let choices = choices.iter().map(|c| c.as_str().map(str::to_owned));
            description.choices =
                choices.collect::<Option<_>>().ok_or("\"choices\" has what is no text")?;
        }
        description.unit = text("unit")?;
        description.text = text("description")?;
        description.read_only = flag("read_only")?;
        description.durable = flag("durable")?;
        description.default_stands = flag("default_stands")?;
        description.refused = map.get("refused").map(Refused::from_json).transpose()?;
        description.check_itself()?;
        Ok(description)
    }
}

/// A value for people: as it is written in Python and on the command line.
pub(crate) fn show(value: &Value) -> String {
    match value {
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        // With its point: 10.0 is a float and 10 is none.
        Value::Float(f) => format!("{f:?}"),
        Value::Str(s) => format!("{s:?}"),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(show).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.type_text(),
    }
}

/// The float that is the same number, if there is one.
fn float_of(int: i64) -> Option<f64> {
    let float = int as f64;
    (float as i128 == i128::from(int)).then_some(float)
}

fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Float(f) if f.is_nan())
}

/// Whether one number is less than another of its kind.
fn is_less(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a < b,
        (Value::Float(a), Value::Float(b)) => a < b,
        _ => false,
    }
}

/// A value as JSON. The infinities, which JSON has not, are words.
pub(crate) fn plain_json(value: &Value) -> Json {
    match value {
        Value::Bool(b) => json!(b),
        Value::Int(i) => json!(i),
        Value::Float(f) if f.is_finite() => json!(f),
        Value::Float(f) => json!(f.to_string()),
        Value::Str(s) => json!(s),
        Value::List(items) => items.iter().map(plain_json).collect(),
        other => json!(show(other)),
    }
}

fn from_plain_json(kind: ParamKind, json: &Json) -> Option<Value> {
    match (kind, json) {
        (ParamKind::Bool, Json::Bool(b)) => Some(Value::Bool(*b)),
        (ParamKind::Int, Json::Number(n)) => n.as_i64().map(Value::Int),
        (ParamKind::Float, Json::Number(n)) => n.as_f64().map(Value::Float),
        (ParamKind::Float, Json::String(s)) if matches!(s.as_str(), "inf" | "-inf") => {
            s.parse().ok().map(Value::Float)
        }
        (ParamKind::Str, Json::String(s)) => Some(Value::Str(s.clone())),
        (list, Json::Array(items)) => {
            let item = list.item()?;
            let items = items.iter().map(|json| from_plain_json(item, json));
            items.collect::<Option<_>>().map(Value::List)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
