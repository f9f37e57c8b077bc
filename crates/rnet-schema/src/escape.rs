//! Escapes text so that a terminal displays it without interpreting it.

use std::fmt::Write as _;

/// Quotes as JSON, which is valid YAML, and additionally escapes characters that terminals interpret.
pub(crate) fn quoted_json(json: &serde_json::Value) -> String {
    let text = json.to_string();
    if !text.contains(is_terminal_control) {
        return text;
    }
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if is_terminal_control(c) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
        out
    })
}

/// DEL, the C1 controls, and characters that change the writing direction.
pub(crate) fn is_terminal_control(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}
