//! Events of the nodes of a domain.

use rnet_shm::domain::registry::Departure;

/// A node joined, left or died.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeEvent {
    /// A node has joined the domain.
    Joined(String),
    /// A node has left by closing.
    Left(String),
    /// A node's process has died.
    Died(String),
}

impl NodeEvent {
    /// The node's name; a node of another host is `@host/node`.
    pub fn node(&self) -> &str {
        match self {
            NodeEvent::Joined(node) | NodeEvent::Left(node) | NodeEvent::Died(node) => node,
        }
    }

    /// Whether it is a node of another host.
    pub fn is_remote(&self) -> bool {
        // Names of local nodes do not start with `@`.
        self.node().starts_with('@')
    }

    /// The event of a node that has left or died.
    pub fn gone(name: String, departure: Departure) -> NodeEvent {
        match departure {
            Departure::Left => NodeEvent::Left(name),
            Departure::Died => NodeEvent::Died(name),
        }
    }
}
