//! Formats counts, and escapes untrusted text.

use std::borrow::Cow;

/// A count with its noun: `1 message`, `2 messages`.
pub fn count_text(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Untrusted text for a terminal: control characters are written as numbers.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    let steers = |c: char| {
        c.is_control()
            // Characters that change the text direction.
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
