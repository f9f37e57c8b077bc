//! YAML as people write it: on a command line and in files of parameters. JSON is part of it.
//!
//! What YAML can do beyond data is refused: anchors that multiply, tags that mean types of a language, several documents and
//! a thousand levels.

mod scalar;
pub mod tree;

pub use scalar::Scalar;
use serde_json::Value as Json;
pub use tree::{Key, Tree, TreeValue};

use crate::value::to_json;

/// Something in a text that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}

impl Problem {
    /// A problem on this line.
    pub fn new(line: usize, why: impl Into<String>) -> Problem {
        Problem { line, why: why.into() }
    }
}

/// A text as JSON. What is JSON already means what JSON says; nothing at all is `null`.
///
/// # Errors
/// Why it is no data, in words; with the line where there are several.
pub fn json(text: &str) -> Result<Json, String> {
    // One that lacks a pair of the text has a name twice, which the tree tells with its line.
    if let Ok(json) = serde_json::from_str(text)
        && pairs(&json) == colons(text)
    {
        return Ok(json);
    }
    let said = |problem: Problem| match text.trim().contains('\n') {
        true => format!("line {}: {}", problem.line, problem.why),
        false => problem.why,
    };
    let tree = tree::read(text).map_err(said)?;
    tree.map_or(Ok(Json::Null), |tree| json_of(&tree))
}

fn pairs(json: &Json) -> usize {
    match json {
        Json::Array(items) => items.iter().map(pairs).sum(),
        Json::Object(fields) => fields.len() + fields.values().map(pairs).sum::<usize>(),
        _ => 0,
    }
}

/// Colons of a JSON text outside of its strings: one for each pair.
fn colons(text: &str) -> usize {
    let (mut in_string, mut escaped, mut count) = (false, false, 0);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            b':' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

fn json_of(tree: &Tree) -> Result<Json, String> {
    Ok(match &tree.value {
        // Numbers of 64 bits without a sign have room here, too.
        TreeValue::Scalar(scalar) => match scalar.text.parse::<u64>() {
            Ok(number) if number > i64::MAX as u64 && scalar.may_be_number() => number.into(),
            _ => scalar.value()?.map_or(Json::Null, |value| to_json(&value)),
        },
        TreeValue::List(items) => items.iter().map(json_of).collect::<Result<_, _>>()?,
        TreeValue::Map(pairs) => {
            let pair = |(key, tree): &(Key, Tree)| Ok((key.text.clone(), json_of(tree)?));
            Json::Object(pairs.iter().map(pair).collect::<Result<_, String>>()?)
        }
    })
}

/// A value on one line, as people write it: names without quotes.
pub fn flow(value: &Json) -> String {
    let join = |parts: Vec<String>| parts.join(", ");
    match value {
        Json::Object(fields) => {
            let field = |(name, value): (&String, &Json)| format!("{name}: {}", flow(value));
            format!("{{{}}}", join(fields.iter().map(field).collect()))
        }
        Json::Array(items) => format!("[{}]", join(items.iter().map(flow).collect())),
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_ros_users_type_is_read() {
        for (text, meant) in [
            ("frame_id: x", json!({"frame_id": "x"})),
            (
                "{linear: {x: 0.5}, angular: {z: -1}}",
                json!({"linear": {"x": 0.5}, "angular": {"z": -1}}),
            ),
            ("data: True", json!({"data": true})),
            ("{ranges: [1, .5, .inf, 1e3]}", json!({"ranges": [1, 0.5, "inf", 1000.0]})),
            ("name: [a, 'b c', \"d\"]", json!({"name": ["a", "b c", "d"]})),
            ("stamp: 2026-11-21T12:00:00.5Z", json!({"stamp": "2026-11-21T12:00:00.5Z"})),
            ("{id: 18446744073709551615, off: ~}", json!({"id": u64::MAX, "off": null})),
            ("x: 1\ny:\n- a\n- 0x10\n", json!({"x": 1, "y": ["a", 16]})),
            ("{serial: !!str 18446744073709551615}", json!({"serial": "18446744073709551615"})),
            ("serial: 018446744073709551615", json!({"serial": "018446744073709551615"})),
            (r#"{"a":":\":","b":{"a":1}}"#, json!({"a": ":\":", "b": {"a": 1}})),
            ("", Json::Null),
            ("hello", json!("hello")),
            // JSON, which is no YAML to every reader.
            ("{\"x\":1,\t\"y\":\"\\ud83d\\ude00\"}", json!({"x": 1, "y": "😀"})),
        ] {
            assert_eq!(json(text).unwrap(), meant, "{text}");
            assert_eq!(json(&flow(&meant)).unwrap(), meant, "{}", flow(&meant));
        }
        for (text, why) in [
            ("{x: 1", "invalid YAML"),
            ("x: 1\nx: 2", "line 2: duplicate name \"x\"; first in line 1"),
            (r#"{"x": 1, "y": [{"x": 2, "x": 3}]}"#, "duplicate name \"x\""),
            ("x: 1e999", "1e999 does not fit in 64 bits"),
            (r#"{"x": -1e999}"#, "-1e999 does not fit in 64 bits"),
            ("x: !!int y", "\"y\" is not a valid int"),
            ("x: 99999999999999999999", "does not fit in 64 bits"),
        ] {
            let said = json(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
