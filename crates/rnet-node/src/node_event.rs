//! What users are told of the nodes of their domain.

use rnet_shm::domain::registry::Departure;

/// A node joined, left or died.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeEvent {
    /// A node has joined the domain.
    Joined(String),
    /// A node has left of its own will.
    Left(String),
    /// A node's process has died.
    Died(String),
}

impl NodeEvent {
    /// The node: of another host as `@host/node`.
    pub fn node(&self) -> &str {
        match self {
            NodeEvent::Joined(node) | NodeEvent::Left(node) | NodeEvent::Died(node) => node,
        }
    }

    #[doc(hidden)]
    pub fn is_remote(&self) -> bool {
        // No node of a host is called so.
        self.node().starts_with('@')
    }

    #[doc(hidden)]
    pub fn gone(name: String, departure: Departure) -> NodeEvent {
        match departure {
            Departure::Left => NodeEvent::Left(name),
            Departure::Died => NodeEvent::Died(name),
        }
    }
}
