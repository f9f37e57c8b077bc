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

/// Up to the first full stop, on one line.
pub fn first_sentence(comment: &str) -> String {
    let words: Vec<&str> = comment.split_whitespace().collect();
    let text = words.join(" ");
    match text.find(". ") {
        Some(end) => text[..=end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::first_sentence;

    #[test]
    fn the_first_sentence_ends_at_the_first_stop() {
        assert_eq!(first_sentence("One\nline. Two."), "One line.");
        assert_eq!(first_sentence("Up to 1.5 m."), "Up to 1.5 m.");
        assert_eq!(first_sentence(""), "");
    }
}
