//! The protobuf types that peers declare.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use rnet_core::{Error, ProtobufType, Result, TypeDesc};
use rnet_shm::domain::node::incarnation_of;
use rnet_shm::domain::types::is_lost;
use rnet_shm::os::shortage::is_transient;

use super::Matching;
use crate::compatibility::PeerType;

/// Time for checking the types of one node in each [`BUDGET_WINDOW`]. A node can declare a thousand types,
/// and the slowest takes this long; other nodes must not wait for all of them.
const NODE_TYPES_BUDGET: Duration = Duration::from_millis(100);
/// Time for checking the types of all nodes. Nodes that a hostile process makes share it, in turn.
const ALL_TYPES_BUDGET: Duration = Duration::from_millis(300);
/// Maximum number of remembered nodes that had their turn.
const MAX_EXHAUSTED_NODES: usize = 1024;
/// Slightly less than the second after which a check is retried.
const BUDGET_WINDOW: Duration = Duration::from_millis(900);

/// The recent time spent on the types of each node.
#[derive(Debug, Default)]
pub struct TypeCheckBudget {
    since: Option<Instant>,
    nodes: HashMap<u64, Duration>,
    total: Duration,
    /// Nodes that used their time in earlier windows, and wait for others that have not.
    exhausted: HashSet<u64>,
}

impl TypeCheckBudget {
    /// Whether there is time for another type of a node.
    fn has_budget_for(&mut self, node: u64, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.duration_since(since) >= BUDGET_WINDOW) {
            self.since = Some(now);
            self.begin_window();
        }
        self.total < ALL_TYPES_BUDGET
            && !self.exhausted.contains(&node)
            && self.nodes.get(&node).is_none_or(|spent| *spent < NODE_TYPES_BUDGET)
    }

    fn begin_window(&mut self) {
        let nodes = std::mem::take(&mut self.nodes);
        let over = nodes.into_iter().filter(|(_, spent)| *spent >= NODE_TYPES_BUDGET);
        // Time was left, so every node had a turn.
        if self.total < ALL_TYPES_BUDGET || self.exhausted.len() > MAX_EXHAUSTED_NODES {
            self.exhausted.clear();
        } else {
            self.exhausted.extend(over.map(|(node, _)| node));
        }
        self.total = Duration::ZERO;
    }

    /// Adds the time spent reading a type of a node.
    fn add_read(&mut self, node: u64, time: Duration) {
        *self.nodes.entry(node).or_default() += time;
        self.total += time;
    }

    /// Adds the time spent checking `endpoint`, if its type was read.
    pub fn add(&mut self, endpoint: u64, time: Duration) {
        if let Some(spent) = self.nodes.get_mut(&incarnation_of(endpoint)) {
            *spent += time;
            self.total += time;
        }
    }
}

impl Matching {
    /// Loads the type that `endpoint`, of the node in `folder`, declares, and the type of our endpoint `own`,
    /// if both are needed: only protobuf messages are compared. Our type is read back from our own folder, as
    /// the peer reads it, so that both come to the same result.
    ///
    /// # Errors
    /// Errors that may not recur at the next refresh: the node is leaving, or a resource ran out, including
    /// the time for this node's types.
    pub fn load_types(
        &mut self,
        endpoint: u64,
        folder: &Path,
        desc: &TypeDesc,
        own: u64,
    ) -> Result<(PeerType, PeerType)> {
        let publisher = self.publishers.get(&own).map(|own| &own.meta.type_desc);
        let ours = publisher.or(self.subscriptions.get(&own).map(|own| &own.meta.type_desc));
        let (Some(theirs), Some(ours)) = (desc.as_protobuf(), ours.and_then(TypeDesc::as_protobuf))
        else {
            return Ok((PeerType::Type(None), PeerType::Type(None)));
        };
        let ours = ours.clone();
        let (began, node) = (Instant::now(), incarnation_of(endpoint));
        let is_other = node != self.own.incarnation();
        if is_other && !self.type_check_budget.has_budget_for(node, began) {
            // Not an error, so it is not reported; the check continues at the next refresh.
            self.has_shortage = true;
            let what = "other types of its node".to_owned();
            return Err(Error::timeout("", what, NODE_TYPES_BUDGET));
        }
        let read = self.load_type(folder, theirs);
        let own_folder = self.own.folder().to_owned();
        let both = read.and_then(|theirs| Ok((theirs, self.load_type(&own_folder, &ours)?)));
        if is_other {
            self.type_check_budget.add_read(node, began.elapsed());
        }
        both
    }

    /// Loads the type that an endpoint of the node in `folder` declares.
    fn load_type(&mut self, folder: &Path, named: &ProtobufType) -> Result<PeerType> {
        match self.schemas.read(folder, named) {
            Ok(schema) => Ok(PeerType::Type(Some(schema))),
            Err(
                error @ Error::Io {
                    source: rnet_core::OsError { kind: std::io::ErrorKind::NotFound, .. },
                    ..
                },
            ) if !is_lost(self.own.domain(), folder) => Err(error),
            Err(error) if is_transient(&error) => Err(error),
            Err(Error::Corrupt { what, .. }) => Ok(PeerType::Unreadable(what)),
            Err(error) => Ok(PeerType::Unreadable(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_waits_only_for_its_own_types() {
        let endpoint = |node: u64| node << 24 | 1;
        let (mut budget, now) = (TypeCheckBudget::default(), Instant::now());
        let nodes = [incarnation_of(endpoint(1)), incarnation_of(endpoint(2))];
        assert!(nodes.iter().all(|node| budget.has_budget_for(*node, now)));
        // The time of an endpoint without a loaded type is not counted.
        budget.add(endpoint(1), NODE_TYPES_BUDGET);
        assert!(budget.nodes.is_empty() && budget.has_budget_for(nodes[0], now));
        budget.add_read(nodes[0], NODE_TYPES_BUDGET / 2);
        assert!(budget.has_budget_for(nodes[0], now));
        budget.add(endpoint(1), NODE_TYPES_BUDGET);
        assert!(!budget.has_budget_for(nodes[0], now) && budget.has_budget_for(nodes[1], now));
        assert!(!budget.has_budget_for(nodes[0], now + BUDGET_WINDOW / 2));
        assert!(budget.has_budget_for(nodes[0], now + BUDGET_WINDOW));
    }

    #[test]
    fn nodes_share_total_budget_in_turn() {
        let (mut budget, begin) = (TypeCheckBudget::default(), Instant::now());
        // Ten nodes that use all their time come first in every refresh, and one that needs little is last.
        let mut turns = HashMap::<u64, u32>::new();
        for window in 0..12 {
            let now = begin + BUDGET_WINDOW * window;
            let mut used = Duration::ZERO;
            for node in 0..11 {
                while budget.has_budget_for(node, now) {
                    let time = NODE_TYPES_BUDGET / if node == 10 { 100 } else { 1 };
                    budget.add_read(node, time);
                    *turns.entry(node).or_default() += 1;
                    used += time;
                    if node == 10 {
                        break;
                    }
                }
            }
            assert!(used <= ALL_TYPES_BUDGET, "window {window}: {used:?}");
        }
        assert!((0..11).all(|node| turns.get(&node).is_some_and(|n| *n >= 3)), "{turns:?}");
    }
}
