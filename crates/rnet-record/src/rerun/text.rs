//! Results in words.

use std::fmt::Write as _;

use super::{Difference, TopicResult};

/// The result of a topic in a line.
pub fn result_line(topic: &TopicResult) -> String {
    let TopicResult { topic: name, compared, differing, missing, unrecorded, .. } = topic;
    let word = if topic.is_same() { "same" } else { "DIFFERENT" };
    let mut text = format!("{name}: {word}, {compared} messages compared");
    for (count, what) in [
        (differing, "differ"),
        (missing, "recorded messages are missing"),
        (unrecorded, "were not recorded"),
    ] {
        if *count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    text
}

/// A difference in words, in a recording that begins at `start_ns`.
pub fn difference_text(one: &Difference, start_ns: u64) -> String {
    let at = one.at_ns.saturating_sub(start_ns) as f64 / 1e9;
    let Difference { number, field, recorded, rerun, .. } = one;
    let by = one.by.map(|by| format!(", by {by:e}")).unwrap_or_default();
    let allowed = match one.allowed > 0.0 {
        true => format!(", {} allowed", one.allowed),
        false => String::new(),
    };
    let field = if field.is_empty() { "the message" } else { field };
    format!("message {number} at {at:.6} s: {field} was {recorded}, is {rerun}{by}{allowed}")
}
