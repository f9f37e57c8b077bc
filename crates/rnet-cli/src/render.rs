//! Messages as text: by field, as comma-separated values, as a hex dump.

use std::borrow::Cow;
use std::io::{self, Write};
use std::str::FromStr;

use serde_json::Value;

/// Bytes on a line of a hex dump.
const DUMP_ROW_LEN: usize = 16;

/// The way to a field: `pose.x`, `legs[2].force`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
}

impl FromStr for FieldPath {
    type Err = String;

    fn from_str(text: &str) -> Result<FieldPath, String> {
        let mut steps = Vec::new();
        for part in text.split('.') {
            let (name, mut rest) = part.split_at(part.find('[').unwrap_or(part.len()));
            if name.is_empty() {
                return Err(format!("{text:?} has an empty part; write pose.x or legs[2].force"));
            }
            steps.push(Step::Field(name.to_owned()));
            while !rest.is_empty() {
                let index = rest.strip_prefix('[').and_then(|r| r.split_once(']'));
                let Some((index, after)) = index else {
                    return Err(format!("{part:?} is no field; write legs[2]"));
                };
                let number = index.parse().map_err(|_| format!("{index:?} is not an index"))?;
                steps.push(Step::Index(number));
                rest = after;
            }
        }
        Ok(FieldPath(steps))
    }
}

impl FieldPath {
    /// The field of a message, or in words why there is none.
    pub fn pick<'a>(&self, message: &'a Value) -> Result<&'a Value, String> {
        let mut value = message;
        let mut at = String::from("the message");
        for step in &self.0 {
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
            };
            value = next?;
            at = match step {
                Step::Field(name) => format!("field {name:?}"),
                Step::Index(i) => format!("{at}[{i}]"),
            };
        }
        Ok(value)
    }
}

/// Text of a peer for a terminal: what would steer it is written as its number.
pub fn tame(text: &str) -> Cow<'_, str> {
    let steers = |c: char| {
        c.is_control()
            // What changes the direction of writing.
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let tamed = text.chars().map(|c| match steers(c) {
        true => c.escape_unicode().to_string(),
        false => c.to_string(),
    });
    Cow::Owned(tamed.collect())
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

/// Prints all numbers of a value on one line, in order, separated by commas.
pub fn csv(out: &mut impl Write, value: &Value) -> io::Result<()> {
    let mut first = true;
    csv_cells(out, value, &mut first)?;
    writeln!(out)
}

fn csv_cells(out: &mut impl Write, value: &Value, first: &mut bool) -> io::Result<()> {
    match value {
        Value::Object(map) => map.values().try_for_each(|v| csv_cells(out, v, first)),
        Value::Array(items) => items.iter().try_for_each(|v| csv_cells(out, v, first)),
        scalar => {
            if !std::mem::take(first) {
                write!(out, ",")?;
            }
            match scalar {
                Value::String(s) => write!(out, "{s}"),
                Value::Null => Ok(()),
                other => write!(out, "{other}"),
            }
        }
    }
}

/// Prints bytes as `hexdump -C` does: offset, hex, printable characters. What lies behind `limit`
/// bytes is counted.
pub fn hex_dump(out: &mut impl Write, bytes: &[u8], limit: usize) -> io::Result<()> {
    let shown = &bytes[..bytes.len().min(limit)];
    for (row, chunk) in shown.chunks(DUMP_ROW_LEN).enumerate() {
        write!(out, "{:08x} ", row * DUMP_ROW_LEN)?;
        for i in 0..DUMP_ROW_LEN {
            let gap = if i == DUMP_ROW_LEN / 2 { " " } else { "" };
            match chunk.get(i) {
                Some(byte) => write!(out, "{gap} {byte:02x}")?,
                None => write!(out, "{gap}   ")?,
            }
        }
        let text: String = chunk
            .iter()
            .map(|b| if (0x20..0x7f).contains(b) { char::from(*b) } else { '.' })
            .collect();
        writeln!(out, "  |{text}|")?;
    }
    match bytes.len() - shown.len() {
        0 => Ok(()),
        more => writeln!(out, "... ({more} more bytes)"),
    }
}

/// Bytes as hex digits without anything between.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits =
        bytes.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]);
    digits.map(char::from).collect()
}

/// Bytes from hex digits; blanks, colons and a leading `0x` are passed over.
pub fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let text = text.strip_prefix("0x").unwrap_or(text);
    let mut digits = Vec::new();
    for c in text.chars().filter(|c| !c.is_whitespace() && *c != ':') {
        let digit = c.to_digit(16).ok_or_else(|| format!("{c:?} is not a hex digit"))?;
        digits.push(digit as u8);
    }
    if digits.len() % 2 != 0 {
        return Err(format!("{} hex digits do not make whole bytes", digits.len()));
    }
    Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
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
        for bad in ["", ".", "a.", "a[", "a[x]", "a[1]b", "[1]"] {
            assert!(bad.parse::<FieldPath>().is_err(), "{bad}");
        }
    }

    #[test]
    fn fields() {
        let message = json!({"x": 1.0, "p": {"y": 2, "q": [1, 2, 3]}, "legs": [{"f": "nan"}]});
        let shown = text(|out| by_field(out, &message, 2));
        assert_eq!(shown, "x: 1.0\np:\n  y: 2\n  q: [1, 2, ...]\nlegs:\n  -\n    f: .nan\n");
        assert_eq!(text(|out| by_field(out, &json!([1, 2]), 9)), "[1, 2]\n");
        assert_eq!(text(|out| csv(out, &message)), "1.0,2,1,2,3,nan\n");
    }

    #[test]
    fn dumps() {
        let bytes: Vec<u8> = (0x30..0x42).collect();
        let shown = text(|out| hex_dump(out, &bytes, 17));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines[0],
            "00000000  30 31 32 33 34 35 36 37  38 39 3a 3b 3c 3d 3e 3f  |0123456789:;<=>?|"
        );
        assert!(lines[1].starts_with("00000010  40   ") && lines[1].ends_with("  |@|"));
        assert_eq!(lines[2], "... (1 more bytes)");
    }

    #[test]
    fn hex_both_ways() {
        assert_eq!(from_hex("00 ff:1A").unwrap(), [0, 255, 26]);
        assert_eq!(from_hex("0x10").unwrap(), [16]);
        assert_eq!(hex(&[0, 255, 26]), "00ff1a");
        assert!(from_hex("abc").is_err() && from_hex("zz").is_err());
    }
}
