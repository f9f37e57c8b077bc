//! Parameters as text.

use rnet::param::{ParamDescription, ParamInfo};
use rnet::state::Value;

use super::write;
use crate::text::escape_controls;

/// A value on a line: text as it is, all else as in YAML.
pub fn line(value: &Value) -> String {
    match value {
        Value::Str(text) => escape_controls(text).into_owned(),
        other => write::text(other),
    }
}

/// The bounds or choices: `0.0 to 10.0`, `at least 1`, `idle | run`.
pub fn range(description: &ParamDescription) -> String {
    match (&description.min, &description.max) {
        (Some(min), Some(max)) => format!("{} to {}", write::text(min), write::text(max)),
        (Some(min), None) => format!("at least {}", write::text(min)),
        (None, Some(max)) => format!("at most {}", write::text(max)),
        (None, None) => escape_controls(&description.choices.join(" | ")).into_owned(),
    }
}

/// How it came to its value: `default`, `set by /rnet_param_7`.
pub fn origin(info: &ParamInfo) -> String {
    let description = info.description.as_ref();
    let refused = description.and_then(|d| d.refused.as_ref()).filter(|_| info.is_default);
    match (refused, &info.entry) {
        (Some(refused), _) => {
            let (value, why) = (escape_controls(&refused.value), escape_controls(&refused.why));
            format!("default: {value}, set by {}, {why}", escape_controls(&refused.set_by))
        }
        (None, _) if info.is_default => "default".to_owned(),
        (None, Some(entry)) => {
            let hint = if description.is_none() { ", not declared yet" } else { "" };
            format!("set by {}{hint}", escape_controls(&entry.owner.node))
        }
        (None, None) => String::new(),
    }
}
