//! The types of parameters.

use serde::{Deserialize, Serialize};

use crate::Value;

/// The type of a parameter's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ParamKind {
    /// `true` or `false`.
    Bool,
    /// A 64-bit integer.
    Int,
    /// A 64-bit float, but not NaN.
    Float,
    /// Text.
    #[default]
    Str,
    /// A list of [`ParamKind::Bool`].
    #[serde(rename = "list[bool]")]
    Bools,
    /// A list of [`ParamKind::Int`].
    #[serde(rename = "list[int]")]
    Ints,
    /// A list of [`ParamKind::Float`].
    #[serde(rename = "list[float]")]
    Floats,
    /// A list of [`ParamKind::Str`].
    #[serde(rename = "list[str]")]
    Strs,
}

/// Each kind, its name, and its item kind if it is a list.
const PARAM_KINDS: [(ParamKind, &str, Option<ParamKind>); 8] = [
    (ParamKind::Bool, "bool", Some(ParamKind::Bools)),
    (ParamKind::Int, "int", Some(ParamKind::Ints)),
    (ParamKind::Float, "float", Some(ParamKind::Floats)),
    (ParamKind::Str, "str", Some(ParamKind::Strs)),
    (ParamKind::Bools, "list[bool]", None),
    (ParamKind::Ints, "list[int]", None),
    (ParamKind::Floats, "list[float]", None),
    (ParamKind::Strs, "list[str]", None),
];

impl ParamKind {
    /// Its name in descriptions and on the command line: `bool`, `int`, `float`, `str`, and for lists
    /// `list[float]`.
    pub fn name(self) -> &'static str {
        PARAM_KINDS.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }

    /// The kind with this name.
    pub fn of_name(name: &str) -> Option<ParamKind> {
        PARAM_KINDS.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// The kind of the items of a list.
    pub fn item(self) -> Option<ParamKind> {
        PARAM_KINDS.iter().find(|row| row.2 == Some(self)).map(|row| row.0)
    }

    /// The kind of a value; `None` if it cannot be a parameter, and for an empty list, which belongs to every
    /// list kind.
    pub fn of(value: &Value) -> Option<ParamKind> {
        match value {
            Value::Bool(_) => Some(ParamKind::Bool),
            Value::Int(_) => Some(ParamKind::Int),
            Value::Float(_) => Some(ParamKind::Float),
            Value::Str(_) => Some(ParamKind::Str),
            Value::List(items) => {
                let list =
                    PARAM_KINDS.iter().find(|row| Some(row.0) == items.first().and_then(Self::of));
                let list = list.and_then(|row| row.2)?;
                list.takes(value).then_some(list)
            }
            _ => None,
        }
    }

    /// Whether a value has this kind.
    pub fn takes(self, value: &Value) -> bool {
        match (self.item(), value) {
            (Some(item), Value::List(items)) => items.iter().all(|value| item.takes(value)),
            (Some(_), _) | (None, Value::List(_)) => false,
            (None, value) => Self::of(value) == Some(self),
        }
    }

    /// Whether its values, or the items of its lists, are numbers.
    pub(crate) fn is_numeric(self) -> bool {
        matches!(self.item().unwrap_or(self), ParamKind::Int | ParamKind::Float)
    }

    /// Whether its values, or the items of its lists, are text.
    pub(crate) fn is_text(self) -> bool {
        self.item().unwrap_or(self) == ParamKind::Str
    }
}

impl std::fmt::Display for ParamKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// The kind name of any value, also of one that cannot be a parameter.
pub(crate) fn kind_name_of(value: &Value) -> String {
    match (ParamKind::of(value), value) {
        (Some(kind), _) => kind.name().to_owned(),
        (None, Value::List(items)) if items.is_empty() => "an empty list".to_owned(),
        (None, Value::List(_)) => "a list of mixed types".to_owned(),
        (None, other) => other.type_text(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_names_contain_item_names() {
        for (kind, name, list) in PARAM_KINDS {
            assert_eq!((kind.name(), ParamKind::of_name(name)), (name, Some(kind)));
            assert_eq!(list.and_then(ParamKind::item), list.map(|_| kind));
        }
        assert_eq!(ParamKind::of_name("complex"), None);
    }

    #[test]
    fn list_items_have_one_kind() {
        let floats = Value::list([1.0, 2.0]);
        assert_eq!(ParamKind::of(&floats), Some(ParamKind::Floats));
        assert!(ParamKind::Floats.takes(&floats) && !ParamKind::Ints.takes(&floats));
        assert!(!ParamKind::Float.takes(&floats) && !ParamKind::Floats.takes(&Value::Float(1.0)));
        let mixed = Value::List(vec![Value::Int(1), Value::Float(1.0)]);
        assert_eq!(ParamKind::of(&mixed), None);
        assert_eq!(kind_name_of(&mixed), "a list of mixed types");
        let nested = Value::List(vec![floats]);
        assert!(ParamKind::of(&nested).is_none() && !ParamKind::Floats.takes(&nested));
        let empty = Value::List(Vec::new());
        assert!(ParamKind::Strs.takes(&empty) && ParamKind::Bools.takes(&empty));
        assert!(!ParamKind::Str.takes(&empty) && ParamKind::of(&empty).is_none());
    }
}
