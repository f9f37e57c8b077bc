//! Events about the followed publishers.

use super::unread::UnreadPublisher;

/// A change in the set of followed publishers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FollowEvent {
    /// A publisher in this node is now followed.
    Joined(String),
    /// A publisher in this node has closed or died, and all its messages have been polled.
    Gone(String),
    /// A publisher in this node cannot be followed (any more), with the reason. If this process has run out
    /// of a resource such as file descriptors, it is tried again without a further event.
    Unreadable(String, String),
    /// A publisher in this node is followed, but its declared type cannot be read, with the reason.
    Untyped(String, String),
    /// A publisher was seen but not received, or not to its end. For an unreadable one, `Unreadable` comes
    /// first.
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
