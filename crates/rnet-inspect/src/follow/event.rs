//! What is told of the publishers that are followed.

use super::unread::UnreadPublisher;

/// A change in the set of followed publishers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FollowEvent {
    /// A publisher in this node is followed from now on.
    Joined(String),
    /// A publisher in this node has closed or died, and all it sent has been polled.
    Gone(String),
    /// A publisher in this node cannot be followed (any more), and why. If this process has run out
    /// of something, file descriptors say, it is tried again without another word.
    Unreadable(String, String),
    /// A publisher in this node is followed, but the type that it names cannot be read, and why.
    Untyped(String, String),
    /// A publisher was seen, and is not heard, or not to its end. One that cannot be read has an `Unreadable` before.
    Unread(UnreadPublisher),
}

impl std::fmt::Display for FollowEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Joined(node) => write!(f, "following the publisher in {node}"),
            Self::Gone(node) => write!(f, "the publisher in {node} is gone"),
            Self::Untyped(node, why) => {
                write!(f, "the type of the publisher in {node} cannot be read: {why}")
            }
            Self::Unreadable(node, why) => {
                write!(f, "cannot follow the publisher in {node}: {why}")
            }
            Self::Unread(unread) => write!(f, "{unread}"),
        }
    }
}
