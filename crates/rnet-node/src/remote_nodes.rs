//! Nodes of other hosts, as the link announces them: joined, left or died.
//!
//! The link has a proxy publisher for each node, on a reserved topic. The proxy is closed when the node
//! leaves, and lost when the node dies. If the link itself dies, its nodes have not: the restarted link opens
//! proxies for them again, and these are awaited.

use std::collections::{BTreeMap, BTreeSet};

use rnet_core::ns_saturating;

use crate::matching::SUCCESSOR_TIMEOUT;
use crate::node_event::NodeEvent;

/// The topic of the proxies that represent nodes. It stays on its host.
pub const NODES_TOPIC: &str = "/_rnet/nodes";

/// How a proxy ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyEnd {
    /// The proxy was closed.
    Left,
    /// The proxy was lost.
    Died,
    /// The process of the proxy has died.
    LinkDied,
}

/// The nodes of other hosts, by name: `@host/node`.
#[derive(Debug, Default)]
pub struct RemoteNodes {
    /// The proxies of each node; empty while a successor is awaited.
    nodes: BTreeMap<String, BTreeSet<u64>>,
    /// Deadline of each wait, CLOCK_MONOTONIC in ns.
    awaited: BTreeMap<String, u64>,
    events: Vec<NodeEvent>,
}

impl RemoteNodes {
    /// A proxy of this node was opened.
    pub fn add_proxy(&mut self, id: u64, node: &str) {
        self.awaited.remove(node);
        match self.nodes.get_mut(node) {
            Some(ids) => drop(ids.insert(id)),
            None => {
                self.nodes.insert(node.to_owned(), BTreeSet::from([id]));
                self.events.push(NodeEvent::Joined(node.to_owned()));
            }
        }
    }

    /// A proxy of this node has ended.
    pub fn remove_proxy(&mut self, id: u64, node: &str, end: ProxyEnd, now_ns: u64) {
        let Some(ids) = self.nodes.get_mut(node) else { return };
        // During a takeover, two links have proxies.
        if !ids.remove(&id) || !ids.is_empty() {
            return;
        }
        let event = match end {
            ProxyEnd::LinkDied => {
                let until_ns = now_ns.saturating_add(ns_saturating(SUCCESSOR_TIMEOUT));
                self.awaited.insert(node.to_owned(), until_ns);
                return;
            }
            ProxyEnd::Left => NodeEvent::Left,
            ProxyEnd::Died => NodeEvent::Died,
        };
        self.nodes.remove(node);
        self.events.push(event(node.to_owned()));
    }

    /// Gives up nodes whose successor did not appear in time.
    pub fn expire(&mut self, now_ns: u64) {
        let (nodes, events) = (&mut self.nodes, &mut self.events);
        self.awaited.retain(|node, until_ns| {
            let waits = now_ns < *until_ns;
            if !waits {
                nodes.remove(node);
                events.push(NodeEvent::Died(node.clone()));
            }
            waits
        });
    }

    /// Time of the next check.
    pub fn due_ns(&self) -> Option<u64> {
        self.awaited.values().min().copied()
    }

    /// Takes the events since the last call.
    pub fn take_events(&mut self) -> Vec<NodeEvent> {
        std::mem::take(&mut self.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "@host/node";

    fn joined() -> NodeEvent {
        NodeEvent::Joined(NODE.to_owned())
    }

    fn died() -> NodeEvent {
        NodeEvent::Died(NODE.to_owned())
    }

    #[test]
    fn node_joins_leaves_and_dies() {
        let mut nodes = RemoteNodes::default();
        nodes.add_proxy(1, NODE);
        nodes.remove_proxy(1, NODE, ProxyEnd::Left, 0);
        nodes.add_proxy(2, NODE);
        nodes.remove_proxy(2, NODE, ProxyEnd::Died, 0);
        let left = NodeEvent::Left(NODE.to_owned());
        assert_eq!(nodes.take_events(), [joined(), left, joined(), died()]);
        nodes.remove_proxy(2, NODE, ProxyEnd::Died, 0);
        assert_eq!((nodes.take_events(), nodes.due_ns()), (Vec::new(), None));
    }

    #[test]
    fn link_takeover_is_not_reported() {
        let mut nodes = RemoteNodes::default();
        nodes.add_proxy(1, NODE);
        nodes.remove_proxy(1, NODE, ProxyEnd::LinkDied, 0);
        nodes.expire(1);
        nodes.add_proxy(2, NODE);
        // In the opposite order.
        nodes.add_proxy(3, NODE);
        nodes.remove_proxy(2, NODE, ProxyEnd::LinkDied, 2);
        assert_eq!((nodes.take_events(), nodes.due_ns()), (vec![joined()], None));
    }

    #[test]
    fn nodes_die_without_successor_link() {
        let mut nodes = RemoteNodes::default();
        nodes.add_proxy(1, NODE);
        nodes.remove_proxy(1, NODE, ProxyEnd::LinkDied, 5);
        let due_ns = nodes.due_ns().expect("a successor is awaited");
        nodes.expire(due_ns - 1);
        assert_eq!(nodes.take_events(), [joined()]);
        nodes.expire(due_ns);
        assert_eq!((nodes.take_events(), nodes.due_ns()), (vec![died()], None));
    }
}
