//! Fields: the way to one, all of them on lines, all of them as cells of a table.

use std::io::{self, Write};
use std::str::FromStr;

use serde_json::Value;

/// The way to a field: `pose.x`, `legs[2].force`, `cells["left"].volt`. Whether there is such a
/// field is known only when the type is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    text: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
    /// A key of a map, which only protobuf messages have.
    Key(String),
}

impl FromStr for FieldPath {
    type Err = String;

    fn from_str(text: &str) -> Result<FieldPath, String> {
        let mut steps = Vec::new();
        let mut rest = text;
        loop {
            let name = &rest[..rest.find(['.', '[']).unwrap_or(rest.len())];
            if name.is_empty() {
                return Err(format!("{text:?} has an empty part; write pose.x or legs[2].force"));
            }
            steps.push(Step::Field(name.to_owned()));
            rest = &rest[name.len()..];
            while let Some(inside) = rest.strip_prefix('[') {
                let (step, len) = bracket(inside)
                    .ok_or_else(|| format!("{text:?}: write legs[2], or cells[\"left\"]"))?;
                steps.push(step);
                rest = &inside[len..];
            }
            match rest.strip_prefix('.') {
                Some(more) => rest = more,
                None if rest.is_empty() => return Ok(FieldPath { text: text.to_owned(), steps }),
                None => return Err(format!("{text:?}: expected `.` or the end before {rest:?}")),
            }
        }
    }
}

/// What stands in brackets, and how long it is with the closing one. Keys that are no plain words are quoted as in JSON.
fn bracket(inside: &str) -> Option<(Step, usize)> {
    if !inside.starts_with('"') {
        let end = inside.find(']').filter(|end| *end > 0)?;
        let word = &inside[..end];
        let step = word.parse().map_or_else(|_| Step::Key(word.to_owned()), Step::Index);
        return Some((step, end + 1));
    }
    let mut strings = serde_json::Deserializer::from_str(inside).into_iter::<String>();
    let key = strings.next()?.ok()?;
    let end = strings.byte_offset();
    inside[end..].starts_with(']').then_some((Step::Key(key), end + 1))
}

impl FieldPath {
    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The field of a message, or in words why there is none.
    pub fn pick<'a>(&self, message: &'a Value) -> Result<&'a Value, String> {
        let mut value = message;
        let mut at = String::from("the message");
        for step in &self.steps {
            let next = match (step, value) {
                (Step::Field(name), Value::Object(map)) => map.get(name).ok_or_else(|| {
                    let known: Vec<&str> = map.keys().map(String::as_str).collect();
                    format!("{at} has no field {name:?}; it has {}", known.join(", "))
                }),
                (Step::Field(name), _) => Err(format!("{at} is no struct and has no {name:?}")),
                (Step::Index(i), Value::Array(items)) => items
                    .get(*i)
                    .ok_or_else(|| format!("{at} has {} elements and no [{i}]", items.len())),
                (Step::Index(i), _) => Err(format!("{at} is no array and has no [{i}]")),
                (Step::Key(key), _) => Err(format!("{at} is no map and has no [{key:?}]")),
            };
            value = next?;
            at = match step {
                Step::Field(name) => format!("field {name:?}"),
                Step::Index(i) => format!("{at}[{i}]"),
                Step::Key(key) => format!("{at}[{key:?}]"),
            };
        }
        Ok(value)
    }
}

/// Prints a value by field, one per line, in YAML. Arrays longer than `limit` end in `...`.
pub fn by_field(out: &mut impl Write, value: &Value, limit: usize) -> io::Result<()> {
    match value {
        Value::Object(_) => block(out, value, 0, limit),
        Value::Array(items) if items.iter().any(Value::is_object) => block(out, value, 0, limit),
        _ => writeln!(out, "{}", inline(value, limit)),
    }
}

fn block(out: &mut impl Write, value: &Value, depth: usize, limit: usize) -> io::Result<()> {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if is_nested(value) {
                    writeln!(out, "{indent}{name}:")?;
                    block(out, value, depth + 1, limit)?;
                } else {
                    writeln!(out, "{indent}{name}: {}", inline(value, limit))?;
                }
            }
        }
        Value::Array(items) => {
            for item in items.iter().take(limit) {
                writeln!(out, "{indent}-")?;
                block(out, item, depth + 1, limit)?;
            }
            if items.len() > limit {
                writeln!(out, "{indent}- ...")?;
            }
        }
        scalar => writeln!(out, "{indent}{}", inline(scalar, limit))?,
    }
    Ok(())
}

/// Whether a value needs lines of its own.
fn is_nested(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => items.iter().any(Value::is_object),
        _ => false,
    }
}

fn inline(value: &Value, limit: usize) -> String {
    match value {
        Value::Array(items) => {
            let mut shown: Vec<String> =
                items.iter().take(limit).map(|item| inline(item, limit)).collect();
            if items.len() > limit {
                shown.push("...".to_owned());
            }
            format!("[{}]", shown.join(", "))
        }
        // Not a number and the infinities, which YAML writes this way.
        Value::String(s) => match s.as_str() {
            "nan" => ".nan".to_owned(),
            "inf" => ".inf".to_owned(),
            "-inf" => "-.inf".to_owned(),
            other => other.to_owned(),
        },
        other => other.to_string(),
    }
}

/// All single values inside of a value, in order, each with its path.
pub fn cells(path: &str, value: &Value) -> Vec<(String, String)> {
    match value {
        Value::Object(map) => {
            let inner = map.iter().flat_map(|(name, value)| {
                let dot = if path.is_empty() { "" } else { "." };
                cells(&format!("{path}{dot}{name}"), value)
            });
            inner.collect()
        }
        Value::Array(items) => {
            let inner = items.iter().enumerate();
            inner.flat_map(|(i, value)| cells(&format!("{path}[{i}]"), value)).collect()
        }
        scalar => {
            let text = match scalar {
                Value::String(s) => s.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            };
            vec![(path.to_owned(), text)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(print: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        print(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn paths() {
        let message =
            json!({"a": {"b": [1, 2]}, "legs": [{"f": 1.5}, {"f": 2.5}], "m": [[1], [2]]});
        let pick = |path: &str| path.parse::<FieldPath>().unwrap().pick(&message).cloned();
        assert_eq!(pick("a.b[1]"), Ok(json!(2)));
        assert_eq!(pick("legs[1].f"), Ok(json!(2.5)));
        assert_eq!(pick("m[1][0]"), Ok(json!(2)));
        assert!(pick("a.c").unwrap_err().contains("it has b"));
        assert!(pick("a.b[2]").unwrap_err().contains("2 elements"));
        assert!(pick("a[0]").unwrap_err().contains("no array"));
        assert!(pick("a.b.c").unwrap_err().contains("no struct"));
        assert!(pick("a[\"k.[]\"]").unwrap_err().contains("no map"));
        for bad in ["", ".", "a.", "a[", "a[]", "a[1]b", "[1]", "a[\"x]", "a[\"x\"b]"] {
            assert!(bad.parse::<FieldPath>().is_err(), "{bad}");
        }
    }

    #[test]
    fn fields() {
        let message = json!({"x": 1.0, "p": {"y": 2, "q": [1, 2, 3]}, "legs": [{"f": "nan"}]});
        let shown = text(|out| by_field(out, &message, 2));
        assert_eq!(shown, "x: 1.0\np:\n  y: 2\n  q: [1, 2, ...]\nlegs:\n  -\n    f: .nan\n");
        assert_eq!(text(|out| by_field(out, &json!([1, 2]), 9)), "[1, 2]\n");
        let (header, values): (Vec<String>, Vec<String>) = cells("", &message).into_iter().unzip();
        assert_eq!(values.join(","), "1.0,2,1,2,3,nan");
        assert_eq!(header.join(" "), "x p.y p.q[0] p.q[1] p.q[2] legs[0].f");
    }
}
