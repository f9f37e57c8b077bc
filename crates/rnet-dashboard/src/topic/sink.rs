//! Receivers of messages for subscriptions.

use std::time::{Duration, Instant};

use rnet::inspect::ObservedMessage;
use rnet::{MessageType, TypeDesc};

/// Selects the topics of a sink.
#[derive(Clone)]
pub enum TopicFilter {
    /// One topic.
    Topic(String),
    /// Topics whose name or type matches.
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

/// Receives messages for a subscription.
pub trait TopicSink: Send {
    /// Handles a message; `sent_s` is its send time in s since 1970.
    fn message(&mut self, observed: &ObservedMessage<'_>, bytes: &[u8], sent_s: f64);

    /// Reports messages that were missed because the server was too slow.
    fn missed(&mut self, _count: u64) {}

    /// Called about fifty times a second; `now_s` is the time in s since 1970.
    fn tick(&mut self, now: Instant, now_s: f64);
}

/// Limits the rate of an output.
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

    /// Whether the interval has elapsed; if so, starts the next one.
    pub fn take(&mut self, now: Instant) -> bool {
        let is_due = self.is_due(now);
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}

/// The type of an observed message.
pub fn type_of(observed: &ObservedMessage<'_>) -> Result<MessageType, String> {
    match (observed.schema, observed.type_desc) {
        (Some(schema), _) => Ok(schema.clone().into()),
        (None, TypeDesc::Plain(plain)) => Ok(plain.clone().into()),
        (None, TypeDesc::Raw) => Ok(MessageType::Raw),
        (None, desc) => Err(format!("the type {desc} cannot be read")),
    }
}

/// A prefix of a text with at most this many bytes: nodes may send texts of any length.
pub fn cut_text(text: &str, max_len_bytes: usize) -> &str {
    let ends = (0..=max_len_bytes.min(text.len())).rev();
    &text[..ends.into_iter().find(|at| text.is_char_boundary(*at)).unwrap_or(0)]
}

/// Maximum length of the name of a frame or node, and of texts about a command, in bytes.
pub const MAX_NAME_LEN_BYTES: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncates_text_between_characters() {
        assert_eq!(cut_text("abc", 8), "abc");
        assert_eq!(cut_text("abc", 2), "ab");
        assert_eq!((cut_text("aé", 2), cut_text("é", 1), cut_text("é", 2)), ("a", "", "é"));
    }
}
