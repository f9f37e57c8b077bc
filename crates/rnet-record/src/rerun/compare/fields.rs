//! Compares messages field by field.

use rnet::MessageType;
use rnet_format::value::hex::hex;
use rnet_format::value::{FieldPath, message_to_json};
use serde_json::Value;

use super::{Difference, Tolerance, Tolerances};

/// Maximum length of a value that is shown in full, in characters.
const MAX_SHOWN: usize = 60;

/// A message as JSON, with the names of its fields. A message that does not match its type is its bytes.
pub fn decode_to_json(ty: &MessageType, bytes: &[u8]) -> Value {
    let json = match ty {
        MessageType::Raw => None,
        // The JSON of a message with a tail has only the length of the tail.
        MessageType::Plain(plain) if plain.size != bytes.len() => None,
        ty => message_to_json(ty, bytes).ok(),
    };
    json.unwrap_or_else(|| hex(bytes).into())
}

/// A field by its path, `pose.x` or `legs[2].force`.
pub fn field_at(message: &Value, path: &str) -> Option<Value> {
    let path: FieldPath = path.parse().ok()?;
    path.pick(message).ok().cloned()
}

/// The fields that differ by more than their tolerances.
pub fn differences(before: &Value, now: &Value, tolerances: &Tolerances) -> Vec<Difference> {
    let mut found = Vec::new();
    walk("", before, now, &mut |field, before, now| {
        let by = distance(before, now);
        let allowed = match tolerances.of(field) {
            Tolerance::Ignored => return,
            Tolerance::Within(allowed) => allowed,
        };
        if before == now || by.is_some_and(|by| by <= allowed) {
            return;
        }
        found.push(Difference {
            number: 0,
            at_ns: 0,
            field: field.to_owned(),
            recorded: format_value(before),
            rerun: format_value(now),
            by,
            allowed,
        });
    });
    found
}

/// The fields that are numbers in both messages.
pub fn numbers(before: &Value, now: &Value) -> Vec<(String, f64, f64)> {
    let mut found = Vec::new();
    walk("", before, now, &mut |field, before, now| {
        if let Some((before, now)) = number(before).zip(number(now)) {
            found.push((field.to_owned(), before, now));
        }
    });
    found
}

/// The distance of two numbers. Integers may have more digits than a float can represent.
fn distance(before: &Value, now: &Value) -> Option<f64> {
    let integer = |value: &Value| value.as_i64().map(i128::from).or(value.as_u64().map(i128::from));
    match integer(before).zip(integer(now)) {
        Some((a, b)) => Some((a - b).unsigned_abs() as f64),
        None => number(before).zip(number(now)).map(|(a, b)| (a - b).abs()),
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite())
}

/// Visits pairs of single values of two messages. A value that only one of them has is null in the other.
fn walk(path: &str, before: &Value, now: &Value, visit: &mut dyn FnMut(&str, &Value, &Value)) {
    match (before, now) {
        (Value::Object(a), Value::Object(b)) => {
            let dot = if path.is_empty() { "" } else { "." };
            for (name, value) in a {
                let other = b.get(name).unwrap_or(&Value::Null);
                walk(&format!("{path}{dot}{name}"), value, other, visit);
            }
            for (name, value) in b.iter().filter(|(name, _)| !a.contains_key(*name)) {
                walk(&format!("{path}{dot}{name}"), &Value::Null, value, visit);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for i in 0..a.len().max(b.len()) {
                let at = |items: &[Value]| items.get(i).cloned().unwrap_or_default();
                walk(&format!("{path}[{i}]"), &at(a), &at(b), visit);
            }
        }
        (before, now) => visit(path, before, now),
    }
}

fn format_value(value: &Value) -> String {
    let text = match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reports_differences_by_field() {
        let before = json!({"x": 1.0, "legs": [{"f": 1}, {"f": 2}], "name": "a", "big": u64::MAX});
        let now = json!({"x": 1.25, "legs": [{"f": 1}], "name": "b", "big": u64::MAX - 1});
        let mut tolerances = Tolerances::default();
        let fields = |tolerances: &Tolerances| {
            let found = differences(&before, &now, tolerances);
            found.into_iter().map(|d| (d.field, d.by)).collect::<Vec<_>>()
        };
        let mut all = fields(&tolerances);
        all.sort_by(|a, b| a.0.cmp(&b.0));
        // Also for numbers with more digits than a float can represent.
        let expected = [("big", Some(1.0)), ("legs[1]", None), ("name", None), ("x", Some(0.25))];
        assert_eq!(all, expected.map(|(field, by)| (field.to_owned(), by)));
        tolerances.set("x", Tolerance::Within(0.25));
        tolerances.set("big", Tolerance::Within(1.0));
        tolerances.set("legs", Tolerance::Ignored);
        assert_eq!(fields(&tolerances), [("name".to_owned(), None)]);
        assert!(differences(&before, &before, &Tolerances::default()).is_empty());
    }

    #[test]
    fn selects_field_by_path() {
        let message = json!({"a": {"b": [[1, 2], [3]]}});
        assert_eq!(field_at(&message, "a.b[0][1]"), Some(json!(2)));
        for path in ["a.c", "a.b[2]", "a.b[x]", "b", ""] {
            assert_eq!(field_at(&message, path), None, "{path}");
        }
    }
}
