//! What a subscription makes of messages.

use std::time::{Duration, Instant};

use rnet::inspect::ObservedMessage;
use rnet::{MessageType, TypeDesc};

/// Which topics a sink reads.
#[derive(Clone)]
pub enum TopicFilter {
    /// One.
    Topic(String),
    /// Those of a name or a type that it knows.
    Matching(fn(&str, &TypeDesc) -> bool),
}

impl TopicFilter {
    pub fn matches(&self, topic: &str, desc: &TypeDesc) -> bool {
        match self {
            TopicFilter::Topic(name) => name == topic,
            TopicFilter::Matching(takes) => takes(topic, desc),
        }
    }
}

/// What a subscription makes of messages.
pub trait TopicSink: Send {
    /// A message that it wants; when it was sent, in s since 1970.
    fn message(&mut self, heard: &ObservedMessage<'_>, bytes: &[u8], sent_s: f64);

    /// Messages that were not seen: the server was too slow.
    fn missed(&mut self, _count: u64) {}

    /// Some fifty times a second; what the time is, in s since 1970.
    fn tick(&mut self, now: Instant, now_s: f64);
}

/// At most so often.
pub struct RateLimiter {
    interval: Duration,
    last: Option<Instant>,
}

impl RateLimiter {
    pub fn new(hz: f64) -> RateLimiter {
        RateLimiter { interval: Duration::from_secs_f64(1.0 / hz), last: None }
    }

    pub fn is_due(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.duration_since(last) >= self.interval)
    }

    /// Whether it is, and from now on it is not.
    pub fn take(&mut self, now: Instant) -> bool {
        let is_due = self.is_due(now);
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}

/// The type of a message that passed by.
pub fn type_of(heard: &ObservedMessage<'_>) -> Result<MessageType, String> {
    match (heard.schema, heard.type_desc) {
        (Some(schema), _) => Ok(schema.clone().into()),
        (None, TypeDesc::Plain(plain)) => Ok(plain.clone().into()),
        (None, TypeDesc::Raw) => Ok(MessageType::Raw),
        (None, desc) => Err(format!("the type {desc} cannot be read")),
    }
}

/// The beginning of a text, of at most so many bytes: nodes may send texts of any length.
pub fn cut_text(text: &str, max_len_bytes: usize) -> &str {
    let ends = (0..=max_len_bytes.min(text.len())).rev();
    &text[..ends.into_iter().find(|at| text.is_char_boundary(*at)).unwrap_or(0)]
}

/// Longest name of a frame or a node, and of what is told of a command, in bytes.
pub const MAX_NAME_LEN_BYTES: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut_text("abc", 8), "abc");
        assert_eq!(cut_text("abc", 2), "ab");
        assert_eq!((cut_text("aé", 2), cut_text("é", 1), cut_text("é", 2)), ("a", "", "é"));
    }
}
