//! Parameters as YAML that every reader reads the same way, the older ones too.

use rnet::param::{ParamDescription, ParamInfo};
use rnet::state::Value;

/// Words that some version of YAML takes for more than text.
const RESERVED_WORDS: [&str; 11] =
    ["true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"];

/// A file with parameters, `(node, name, what is known of it)` in order. Those that are their default are
/// comments, unless `all`.
pub fn file_text(domain: &str, params: &[(String, String, ParamInfo)], all: bool) -> String {
    let mut out = format!("# Parameters of domain {domain}, for rnet param load.\n");
    let mut nodes: Vec<&str> = params.iter().map(|(node, ..)| node.as_str()).collect();
    nodes.dedup();
    for node in nodes {
        out += &format!("{}:\n", key(node));
        for (_, name, info) in params.iter().filter(|(n, ..)| n == node) {
            let Some(value) = info.value() else { continue };
            let hash = if all || !info.is_default { "" } else { "# " };
            let line = format!("  {hash}{}: {}", key(name.trim_start_matches('/')), text(value));
            match info
                .description
                .as_ref()
                .map(description_comment)
                .filter(|comment| !comment.is_empty())
            {
                Some(comment) => out += &format!("{line}  # {comment}\n"),
                None => out += &format!("{line}\n"),
            }
        }
    }
    out
}

/// What helps who edits the file.
fn description_comment(description: &ParamDescription) -> String {
    let mut parts = vec![super::text::range(description)];
    parts.push(description.unit.clone());
    if let Some(default) = &description.default {
        parts.push(format!("default {}", text(default)));
    }
    if description.read_only {
        parts.push("read-only".to_owned());
    }
    parts.push(description.text.clone());
    parts.retain(|part| !part.is_empty());
    // A comment ends with its line.
    parts.join("; ").chars().map(|c| if c.is_control() || is_break(c) { ' ' } else { c }).collect()
}

fn is_break(c: char) -> bool {
    matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// A name as a key.
fn key(name: &str) -> String {
    let is_plain = !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '/'))
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !RESERVED_WORDS.iter().any(|word| word.eq_ignore_ascii_case(name));
    if is_plain { name.to_owned() } else { quoted(name) }
}

/// A value as YAML.
pub fn text(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) if value.is_nan() => ".nan".to_owned(),
        Value::Float(value) if value.is_infinite() => {
            if *value > 0.0 { ".inf" } else { "-.inf" }.to_owned()
        }
        // YAML 1.1 takes 1e-7 for text, and 1.0e-7 for a number.
        Value::Float(value) => match format!("{value:?}").split_once('e') {
            Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0e{exponent}"),
            _ => format!("{value:?}"),
        },
        Value::Str(text) => quoted(text),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(self::text).collect();
            format!("[{}]", items.join(", "))
        }
        other => quoted(&other.type_text()),
    }
}

/// Text in double quotes, in which everything that is not plainly visible is written as its number.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out += "\\\"",
            '\\' => out += "\\\\",
            '\n' => out += "\\n",
            '\t' => out += "\\t",
            // The mark of byte order, and what changes the direction of writing.
            '\u{feff}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' => {
                out += &format!("\\u{:04X}", u32::from(c));
            }
            c if c.is_control() || is_break(c) => out += &format!("\\u{:04X}", u32::from(c)),
            // What has no place in YAML is there as its number.
            c if u32::from(c) & 0xfffe == 0xfffe => out += &format!("\\U{:08X}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::params::value;
    use crate::yaml::tree;

    #[test]
    fn keys_that_could_be_more_than_text_are_quoted() {
        for (name, written) in [
            ("gain", "gain"),
            ("pid/p", "pid/p"),
            ("/arm", "/arm"),
            ("y", "\"y\""),
            ("Off", "\"Off\""),
            ("2x", "\"2x\""),
            ("a.b", "\"a.b\""),
            ("", "\"\""),
        ] {
            assert_eq!(key(name), written);
        }
    }

    #[test]
    fn values_look_as_people_write_them() {
        assert_eq!(text(&Value::Float(1.0)), "1.0");
        assert_eq!(text(&Value::Float(1e-7)), "1.0e-7");
        assert_eq!(text(&Value::Float(f64::NEG_INFINITY)), "-.inf");
        assert_eq!(text(&Value::Str("a \"b\"\n".into())), "\"a \\\"b\\\"\\n\"");
        assert_eq!(text(&Value::list(["a", "b"])), "[\"a\", \"b\"]");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            float in any::<f64>().prop_filter("a number", |f| !f.is_nan()),
            int in any::<i64>(), string in any::<String>(), texts in prop::collection::vec("\\PC{0,8}", 1..4),
        ) {
            let values = [
                Value::Float(float), Value::Int(int), Value::Str(string.clone()), Value::Bool(int > 0),
                Value::list([float, 1.0]), Value::list([int, 2]),
                Value::List(texts.into_iter().map(Value::Str).collect()),
            ];
            for given in values {
                let file = format!("{}: {}\n", key(&string), text(&given));
                let tree = tree::read(&file).map_err(|p| TestCaseError::fail(format!("{p:?}: {file:?}")))?;
                let Some(tree::Tree { value: tree::TreeValue::Map(pairs), .. }) = tree else {
                    return Err(TestCaseError::fail(format!("no map: {file:?}")));
                };
                prop_assert_eq!(&pairs[0].0.text, &string);
                prop_assert_eq!(value::value(&pairs[0].1, None).unwrap(), given);
            }
        }
    }
}
