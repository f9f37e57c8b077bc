//! What a scalar of a parameter file means.

use rnet::param::{ParamDescription, ParamKind};
use rnet::state::Value;

use super::tree::{Scalar, Tree, What};

/// Words that YAML 1.1, and so ROS 2, take for true and false.
const YES: [&str; 4] = ["yes", "on", "y", "true"];
const NO: [&str; 4] = ["no", "off", "n", "false"];

/// The value that stands in a file, for a parameter of this description, or for one that was not declared yet.
///
/// # Errors
/// Why it is none, in words.
pub fn value(tree: &Tree, wanted: Option<&ParamDescription>) -> Result<Value, String> {
    let value = match &tree.what {
        What::Scalar(scalar) => single(scalar, wanted.map(|wanted| wanted.kind))?,
        What::List(items) => {
            let kind = wanted.and_then(|wanted| wanted.kind.item());
            let item = |item: &Tree| match &item.what {
                What::Scalar(scalar) => single(scalar, kind),
                _ => Err("a list in a list, or a map in a list, is no parameter".to_owned()),
            };
            let items: Vec<Value> = items.iter().map(item).collect::<Result<_, _>>()?;
            uniform(items, wanted.is_some())?
        }
        What::Map(_) => return Err("a map is no value".to_owned()),
    };
    Ok(match wanted {
        Some(wanted) => wanted.adapt(value),
        None => value,
    })
}

/// A list of one type. In one of numbers that are not all whole, all are numbers.
fn uniform(items: Vec<Value>, declared: bool) -> Result<Value, String> {
    let list = Value::List(items);
    if declared || ParamKind::of(&list).is_some() {
        return Ok(list);
    }
    let Value::List(items) = list else { return Ok(list) };
    if items.is_empty() {
        return Err("an empty list does not say what it is a list of".to_owned());
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
fn single(scalar: &Scalar, kind: Option<ParamKind>) -> Result<Value, String> {
    let text = scalar.text.as_str();
    let not = |what: &str| Err(format!("{text:?} is no {what}"));
    match scalar.tag.as_deref() {
        Some("str") => return Ok(Value::Str(text.to_owned())),
        Some("bool") => return bool_of(text).map_or_else(|| not("bool"), Ok),
        Some("int") => return int_of(text).unwrap_or_else(|| not("int")),
        Some("float") => return float_of(text).map_or_else(|| not("float"), Ok),
        Some(other) => return Err(format!("the tag !!{other} is not known")),
        None if !scalar.plain => return Ok(Value::Str(text.to_owned())),
        None => {}
    }
    if matches!(text, "" | "~" | "null" | "Null" | "NULL") {
        return Err("there is no value".to_owned());
    }
    if matches!(text, "true" | "True" | "TRUE" | "false" | "False" | "FALSE") {
        return Ok(Value::Bool(text.starts_with(['t', 'T'])));
    }
    if kind == Some(ParamKind::Bool)
        && let Some(value) = bool_of(text)
    {
        return Ok(value);
    }
    if let Some(value) = int_of(text) {
        return value;
    }
    Ok(float_of(text).unwrap_or_else(|| Value::Str(text.to_owned())))
}

fn bool_of(text: &str) -> Option<Value> {
    let is = |words: [&str; 4]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    (is(YES) || is(NO)).then(|| Value::Bool(is(YES)))
}

/// A whole number, by the rules of YAML 1.2; too large a one is an error and no other number.
fn int_of(text: &str) -> Option<Result<Value, String>> {
    let (digits, radix) = match text.split_at_checked(2) {
        Some(("0x", hex)) => (hex, 16),
        Some(("0o", octal)) => (octal, 8),
        _ => (text, 10),
    };
    let bare = if radix == 10 { digits.strip_prefix(['+', '-']).unwrap_or(digits) } else { digits };
    if bare.is_empty() || !bare.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let value = i64::from_str_radix(digits, radix);
    Some(value.map(Value::Int).map_err(|_| format!("{text} has no room in 64 bits")))
}

/// A number by the rules of YAML 1.2. Rust reads words such as `inf` and `nan` too, which are text here.
fn float_of(text: &str) -> Option<Value> {
    let (sign, bare) = match text.strip_prefix('-') {
        Some(bare) => (-1.0, bare),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = match bare {
        ".inf" | ".Inf" | ".INF" => f64::INFINITY,
        ".nan" | ".NaN" | ".NAN" => f64::NAN,
        _ if !bare.starts_with(|c: char| c.is_ascii_digit() || c == '.') => return None,
        _ if !bare
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-')) =>
        {
            return None;
        }
        _ => bare.parse().ok()?,
    };
    Some(Value::Float(sign * number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::param::yaml::tree;

    fn read(text: &str) -> Result<Value, String> {
        value(&tree::read(text).unwrap().unwrap(), None)
    }

    #[test]
    fn scalars_mean_what_yaml_says() {
        for (text, meant) in [
            ("true", Value::Bool(true)),
            ("False", Value::Bool(false)),
            ("12", Value::Int(12)),
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
            ("~", "there is no value"),
            ("9223372036854775808", "no room in 64 bits"),
            ("!!int x", "is no int"),
            ("!!bool 3", "is no bool"),
            ("!!binary aGk=", "!!binary is not known"),
            ("[]", "does not say what"),
            ("[1, a]", "of different types"),
            ("[[1]]", "a list in a list"),
            ("{a: 1}", "a map is no value"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
