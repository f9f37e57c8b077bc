//! Publishers that were seen but not received.

use std::fmt;

use rnet_core::TopicName;

/// A publisher that was seen, but whose messages were not received, or not all. Their number is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadPublisher {
    /// The topic; `None` if the publisher closed before the topic could be read.
    pub topic: Option<String>,
    /// Hash of the topic, which is always known.
    topic_hash: u64,
    /// Its node.
    pub node: String,
    /// The cause.
    pub why: UnreadCause,
}

/// Why a publisher was not received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum UnreadCause {
    /// It closed between the scan that found it and the attempt to follow it.
    Closed,
    /// Its log, or its description, cannot be read.
    Unreadable,
}

impl UnreadPublisher {
    pub(super) fn new(
        topic: Option<String>,
        topic_hash: u64,
        node: String,
        why: UnreadCause,
    ) -> UnreadPublisher {
        UnreadPublisher { topic, topic_hash, node, why }
    }

    /// Whether its topic may be this one. If the topic is unknown, the hash is compared.
    pub fn may_be_of(&self, topic: &TopicName) -> bool {
        match &self.topic {
            Some(known) => known == topic.as_str(),
            None => self.topic_hash == topic.hash(),
        }
    }
}

impl UnreadCause {
    /// Its name in a recording.
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for UnreadPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (topic, node) = (self.topic.as_deref().unwrap_or("an unknown topic"), &self.node);
        match self.why {
            UnreadCause::Closed => {
                write!(f, "the publisher of {topic} in {node} closed before it could be followed")
            }
            UnreadCause::Unreadable => {
                write!(f, "the messages of the publisher of {topic} in {node} cannot be read")
            }
        }
    }
}
