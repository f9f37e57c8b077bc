//! Fields: all of them on lines, all of them as cells of a table.

use std::io::{self, Write};

use serde_json::Value;

/// Prints a value by field, one per line, in YAML. Arrays longer than `limit` end in `...`.
pub fn print_by_field(out: &mut impl Write, value: &Value, limit: usize) -> io::Result<()> {
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
    fn fields() {
        let message = json!({"x": 1.0, "p": {"y": 2, "q": [1, 2, 3]}, "legs": [{"f": "nan"}]});
        let shown = text(|out| print_by_field(out, &message, 2));
        assert_eq!(shown, "x: 1.0\np:\n  y: 2\n  q: [1, 2, ...]\nlegs:\n  -\n    f: .nan\n");
        assert_eq!(text(|out| print_by_field(out, &json!([1, 2]), 9)), "[1, 2]\n");
        let (header, values): (Vec<String>, Vec<String>) = cells("", &message).into_iter().unzip();
        assert_eq!(values.join(","), "1.0,2,1,2,3,nan");
        assert_eq!(header.join(" "), "x p.y p.q[0] p.q[1] p.q[2] legs[0].f");
    }
}
