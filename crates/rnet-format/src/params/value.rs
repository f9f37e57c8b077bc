//! The value of a parameter, as it is written in a file and on a command line.

use rnet::param::{ParamDescription, ParamKind};
use rnet::state::Value;

use crate::yaml::{Scalar, Tree, TreeValue, tree};

/// The value of a command line. Where a text is wanted it is one, whatever it looks like.
///
/// # Errors
/// Why it is none, in words.
pub fn parse_text(text: &str, wanted: Option<&ParamDescription>) -> Result<Value, String> {
    if wanted.is_some_and(|wanted| wanted.kind == ParamKind::Str) {
        return Ok(Value::Str(text.to_owned()));
    }
    let tree = tree::read(text).map_err(|problem| problem.why)?;
    value(&tree.ok_or("the value is missing")?, wanted)
}

/// The value that stands in a file, for a parameter of this description, or for one that was not declared yet.
///
/// # Errors
/// Why it is none, in words.
pub fn value(tree: &Tree, wanted: Option<&ParamDescription>) -> Result<Value, String> {
    let value = match &tree.value {
        TreeValue::Scalar(scalar) => scalar_value(scalar, wanted.map(|wanted| wanted.kind))?,
        TreeValue::List(items) => {
            let kind = wanted.and_then(|wanted| wanted.kind.item());
            let item = |item: &Tree| match &item.value {
                TreeValue::Scalar(scalar) => scalar_value(scalar, kind),
                _ => Err("parameters cannot hold nested lists or maps in lists".to_owned()),
            };
            let items: Vec<Value> = items.iter().map(item).collect::<Result<_, _>>()?;
            uniform_list(items, wanted.is_some())?
        }
        TreeValue::Map(_) => return Err("a map cannot be a parameter value".to_owned()),
    };
    Ok(match wanted {
        Some(wanted) => wanted.adapt(value),
        None => value,
    })
}

/// A list of one type. In one of numbers that are not all whole, all are numbers.
fn uniform_list(items: Vec<Value>, declared: bool) -> Result<Value, String> {
    let list = Value::List(items);
    if declared || ParamKind::of(&list).is_some() {
        return Ok(list);
    }
    let Value::List(items) = list else { return Ok(list) };
    if items.is_empty() {
        return Err("cannot infer the element type of an empty list".to_owned());
    }
    let number = |value: &Value| match value {
        Value::Int(i) => Some(Value::Float(*i as f64)),
        Value::Float(f) => Some(Value::Float(*f)),
        _ => None,
    };
    let numbers: Option<Vec<Value>> = items.iter().map(number).collect();
    numbers
        .map(Value::List)
        .ok_or_else(|| "the items of the list are of different types".to_owned())
}

/// The meaning of one scalar, where a value of `kind` is wanted.
fn scalar_value(scalar: &Scalar, kind: Option<ParamKind>) -> Result<Value, String> {
    let word = if kind == Some(ParamKind::Bool) { scalar.yes_or_no() } else { None };
    match word {
        Some(word) => Ok(Value::Bool(word)),
        None => scalar.value()?.ok_or_else(|| "the value is missing".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        parse_text(text, None)
    }

    #[test]
    fn scalars_mean_what_yaml_says() {
        for (text, meant) in [
            ("true", Value::Bool(true)),
            ("False", Value::Bool(false)),
            ("12", Value::Int(12)),
            ("007", Value::Str("007".into())),
            ("-3", Value::Int(-3)),
            ("+3", Value::Int(3)),
            ("0x1F", Value::Int(31)),
            ("0o17", Value::Int(15)),
            ("-9223372036854775808", Value::Int(i64::MIN)),
            ("1.5", Value::Float(1.5)),
            ("1.", Value::Float(1.0)),
            (".5", Value::Float(0.5)),
            ("1e-7", Value::Float(1e-7)),
            ("-2.5E3", Value::Float(-2500.0)),
            (".inf", Value::Float(f64::INFINITY)),
            ("-.INF", Value::Float(f64::NEG_INFINITY)),
            ("idle", Value::Str("idle".into())),
            ("yes", Value::Str("yes".into())),
            ("inf", Value::Str("inf".into())),
            ("1.2.3", Value::Str("1.2.3".into())),
            ("'12'", Value::Str("12".into())),
            ("\"a\\nb\"", Value::Str("a\nb".into())),
            ("!!str 12", Value::Str("12".into())),
            ("!!float 12", Value::Float(12.0)),
            ("|\n  two\n  lines\n", Value::Str("two\nlines\n".into())),
            ("[1, 2]", Value::list([1, 2])),
            ("[1, 2.5]", Value::list([1.0, 2.5])),
            ("['a', b]", Value::list(["a", "b"])),
        ] {
            assert_eq!(read(text), Ok(meant), "{text}");
        }
        assert!(matches!(read(".nan"), Ok(Value::Float(f)) if f.is_nan()));
        for (text, why) in [
            ("~", "the value is missing"),
            ("9223372036854775808", "does not fit in 64 bits"),
            ("!!int x", "is not a valid int"),
            ("!!bool 3", "is not a valid bool"),
            ("!!binary aGk=", "unknown tag !!binary"),
            ("[]", "cannot infer"),
            ("[1, a]", "of different types"),
            ("[[1]]", "nested lists"),
            ("{a: 1}", "a map cannot be a parameter value"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
