//! The conditions that make a black box write a file.

use std::fmt;
use std::str::FromStr;

use rnet::limits::{MAX_NODE_NAME_LEN_BYTES, MAX_TOPIC_LEN_BYTES};
use rnet::{LogLevel, NamePattern, TopicName};

use crate::error::RecordError;

/// The expected syntax, for error messages.
const SYNTAX: &str = "`/TOPIC.FIELD OP NUMBER` with OP one of < <= > >= == !=, `death [NODE]`, `loss [TOPIC]`, \
                        `deadline [TOPIC]`, `fallback [COMMAND]` or `log LEVEL [TEXT]`";

/// A condition that makes a black box write a file. Its text is that of `rnet blackbox run --trigger`.
///
/// ```
/// use rnet_record::blackbox::Trigger;
///
/// let trigger: Trigger = "/battery.voltage < 21".parse()?;
/// assert_eq!(trigger.to_string(), "/battery.voltage < 21");
/// assert!("/battery < 21".parse::<Trigger>().is_err()); // no field
/// # Ok::<(), rnet_record::RecordError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Trigger {
    text: String,
    pub(super) kind: TriggerKind,
}

#[derive(Clone, Debug)]
pub(super) enum TriggerKind {
    Field { topic: String, field: String, op: CompareOp, limit: f64 },
    Death(Option<NamePattern>),
    Loss(Option<NamePattern>),
    Deadline(Option<NamePattern>),
    Fallback(Option<NamePattern>),
    Log { level: LogLevel, text: String },
}

/// A comparison of a value with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CompareOp(&'static str);

impl CompareOp {
    /// Operators of two characters first, because the parser takes the first match.
    const ALL: [&'static str; 6] = ["<=", ">=", "==", "!=", "<", ">"];

    /// Whether the comparison is true. For NaN only `!=` is true.
    pub(super) fn holds(self, value: f64, limit: f64) -> bool {
        match self.0 {
            "<" => value < limit,
            "<=" => value <= limit,
            ">" => value > limit,
            ">=" => value >= limit,
            "==" => value == limit,
            _ => value != limit,
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Trigger {
    type Err = RecordError;

    fn from_str(text: &str) -> Result<Self, RecordError> {
        let text = text.trim();
        let wrong = |why: String| RecordError::Options(format!("trigger {text:?}: {why}"));
        let kind = match text.starts_with('/') {
            true => parse_field(text).map_err(wrong)?,
            false => parse_keyword(text).map_err(wrong)?,
        };
        Ok(Trigger { text: text.to_owned(), kind })
    }
}

fn parse_field(text: &str) -> Result<TriggerKind, String> {
    let expected = || format!("expected {SYNTAX}");
    let at = text.find(['<', '>', '=', '!']).ok_or_else(expected)?;
    let (path, rest) = text.split_at(at);
    let sign =
        CompareOp::ALL.into_iter().find(|sign| rest.starts_with(sign)).ok_or_else(expected)?;
    let number = rest[sign.len()..].trim();
    let limit: f64 = number.parse().map_err(|_| format!("{number:?} is not a number"))?;
    if limit.is_nan() {
        return Err("values cannot be compared with nan".to_owned());
    }
    let path = path.trim();
    let base = path.rfind('/').unwrap_or(0);
    let (topic, field) = match path[base..].find('.') {
        Some(dot) => (&path[..base + dot], &path[base + dot + 1..]),
        None => {
            return Err(format!(
                "{path:?} does not name a field; write TOPIC.FIELD, such as /battery.voltage"
            ));
        }
    };
    if field.is_empty() {
        return Err(format!(
            "{path:?} does not name a field; write TOPIC.FIELD, such as /battery.voltage"
        ));
    }
    let topic = TopicName::new(topic).map_err(|error| error.to_string())?.as_str().to_owned();
    Ok(TriggerKind::Field { topic, field: field.to_owned(), op: CompareOp(sign), limit })
}

fn parse_keyword(text: &str) -> Result<TriggerKind, String> {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let pattern = |what, most| match rest {
        "" => Ok(None),
        _ => NamePattern::new(what, rest, most).map(Some).map_err(|error| error.to_string()),
    };
    Ok(match word {
        "death" => TriggerKind::Death(pattern("node pattern", MAX_NODE_NAME_LEN_BYTES)?),
        "loss" => TriggerKind::Loss(pattern("topic pattern", MAX_TOPIC_LEN_BYTES)?),
        "deadline" => TriggerKind::Deadline(pattern("topic pattern", MAX_TOPIC_LEN_BYTES)?),
        "fallback" => TriggerKind::Fallback(pattern("topic pattern", MAX_TOPIC_LEN_BYTES)?),
        "log" => {
            let (level, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let level = level.parse::<LogLevel>().map_err(|error| error.to_string())?;
            TriggerKind::Log { level, text: text.trim().to_owned() }
        }
        _ => return Err(format!("expected {SYNTAX}")),
    })
}

/// Whether a pattern matches a name; an absent pattern matches any name.
pub(super) fn pattern_matches(pattern: &Option<NamePattern>, name: &str) -> bool {
    pattern.as_ref().is_none_or(|pattern| pattern.matches(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_valid_triggers() {
        for (text, topic, field, op, limit) in [
            ("/battery.voltage < 21", "/battery", "voltage", CompareOp("<"), 21.0),
            (" /a/b.c.d[2]>=-1e3 ", "/a/b", "c.d[2]", CompareOp(">="), -1e3),
            ("/a.b!=0", "/a", "b", CompareOp("!="), 0.0),
            ("/a.b == inf", "/a", "b", CompareOp("=="), f64::INFINITY),
        ] {
            let TriggerKind::Field { topic: t, field: f, op: o, limit: l } =
                text.parse::<Trigger>().unwrap().kind
            else {
                panic!("{text}")
            };
            assert_eq!((&*t, &*f, o, l), (topic, field, op, limit));
        }
        for text in [
            "death",
            "death /arm",
            "loss /a/**",
            "deadline",
            "fallback /cmd_vel",
            "log error over current",
        ] {
            assert_eq!(text.parse::<Trigger>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn rejects_invalid_triggers() {
        for (text, why) in [
            ("", "death [NODE]"),
            ("/battery < 21", "does not name a field"),
            ("/battery. < 21", "does not name a field"),
            ("/.x < 21", "name"),
            ("/a b.x < 21", "name"),
            ("/a.x", "OP one of"),
            ("/a.x = 1", "OP one of"),
            ("/a.x < ", "is not a number"),
            ("/a.x < nan", "nan"),
            ("/a.x < 1 < 2", "is not a number"),
            ("dead", "death [NODE]"),
            ("death /a//b", "pattern"),
            ("log", "level"),
            ("log loud", "level"),
        ] {
            let error = text.parse::<Trigger>().unwrap_err().to_string();
            assert!(error.contains(why), "{text:?}: {error}");
        }
        assert!(!CompareOp("<").holds(f64::NAN, 1.0) && CompareOp("!=").holds(f64::NAN, 1.0));
    }
}
