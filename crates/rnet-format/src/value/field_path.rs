//! Paths to fields of JSON values.

use std::str::FromStr;

use serde_json::Value;

/// The path to a field: `pose.x`, `legs[2].force`, `cells["left"].volt`. Whether the field exists depends on
/// the type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    text: String,
    steps: Vec<Step>,
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A field of a struct.
    Field(String),
    /// An element of an array.
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

/// The content of brackets, and its length including the closing bracket. Keys that are not plain words are
/// quoted as in JSON.
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
    /// The path as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The steps to the field, from the message.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The field of a message, or why it does not exist, as text.
    pub fn pick<'a>(&self, message: &'a Value) -> Result<&'a Value, String> {
        let mut value = message;
        let mut at = String::from("the message");
        for step in &self.steps {
            let next = match (step, value) {
                (Step::Field(name), Value::Object(map)) => map.get(name).ok_or_else(|| {
                    let known: Vec<&str> = map.keys().map(String::as_str).collect();
                    format!("{at} has no field {name:?}; it has {}", known.join(", "))
                }),
                (Step::Field(name), _) => {
                    Err(format!("{at} is not a struct, so it has no field {name:?}"))
                }
                (Step::Index(i), Value::Array(items)) => items.get(*i).ok_or_else(|| {
                    format!("{at} has {} elements, so [{i}] does not exist", items.len())
                }),
                (Step::Index(i), _) => {
                    Err(format!("{at} is not an array, so [{i}] does not exist"))
                }
                (Step::Key(key), _) => {
                    Err(format!("{at} is not a map, so [{key:?}] does not exist"))
                }
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
        assert!(pick("a[0]").unwrap_err().contains("not an array"));
        assert!(pick("a.b.c").unwrap_err().contains("not a struct"));
        assert!(pick("a[\"k.[]\"]").unwrap_err().contains("not a map"));
        for bad in ["", ".", "a.", "a[", "a[]", "a[1]b", "[1]", "a[\"x]", "a[\"x\"b]"] {
            assert!(bad.parse::<FieldPath>().is_err(), "{bad}");
        }
    }
}
