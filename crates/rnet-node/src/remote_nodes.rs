//! Nodes of other hosts, as the link tells of them: which have joined, left or died.
//!
//! The link has a proxy publisher for each, on a topic of its own. It is closed when the node has left, and
//! lost when it has died. The end of the link is that of no node: its next life has proxies for them again, and
//! these are waited for.

use std::collections::{BTreeMap, BTreeSet};

use rnet_core::ns_saturating;

use crate::matching::SUCCESSOR_TIMEOUT;
use crate::node_event::NodeEvent;

/// The topic of the proxies that stand for nodes. It stays on its host.
pub const NODES_TOPIC: &str = "/_rnet/nodes";

/// How a proxy has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyEnd {
    /// It was closed.
    Left,
    /// It was lost.
    Died,
    /// Its process has died.
    LinkDied,
}

/// The nodes of other hosts, by name: `@host/node`.
#[derive(Debug, Default)]
pub struct RemoteNodes {
    /// The proxies of each; none where a successor is waited for.
    nodes: BTreeMap<String, BTreeSet<u64>>,
    /// Until when, CLOCK_MONOTONIC in ns.
    awaited: BTreeMap<String, u64>,
    events: Vec<NodeEvent>,
}

impl RemoteNodes {
    /// There is a proxy of this node.
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

    /// A proxy of this node is not there any more.
    pub fn remove_proxy(&mut self, id: u64, node: &str, end: ProxyEnd, now_ns: u64) {
        let Some(ids) = self.nodes.get_mut(node) else { return };
        // Two links, while one takes over.
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

    /// Gives up those whose successor has not come in time.
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

    /// When to look next.
    pub fn due_ns(&self) -> Option<u64> {
        self.awaited.values().min().copied()
    }

    /// What has happened since this was asked last.
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
    fn a_node_joins_leaves_and_dies() {
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
    fn a_link_that_changes_hands_is_told_to_nobody() {
        let mut nodes = RemoteNodes::default();
        nodes.add_proxy(1, NODE);
        nodes.remove_proxy(1, NODE, ProxyEnd::LinkDied, 0);
        nodes.expire(1);
        nodes.add_proxy(2, NODE);
        // The other way round.
        nodes.add_proxy(3, NODE);
        nodes.remove_proxy(2, NODE, ProxyEnd::LinkDied, 2);
        assert_eq!((nodes.take_events(), nodes.due_ns()), (vec![joined()], None));
    }

    #[test]
    fn without_a_successor_its_nodes_have_died() {
        let mut nodes = RemoteNodes::default();
        nodes.add_proxy(1, NODE);
        nodes.remove_proxy(1, NODE, ProxyEnd::LinkDied, 5);
        let due_ns = nodes.due_ns().expect("it is waited for");
        nodes.expire(due_ns - 1);
        assert_eq!(nodes.take_events(), [joined()]);
        nodes.expire(due_ns);
        assert_eq!((nodes.take_events(), nodes.due_ns()), (vec![died()], None));
    }
}
