//! The protobuf types that peers name.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use rnet_core::{Error, ProtobufType, Result, TypeDesc};
use rnet_shm::node::incarnation_of;
use rnet_shm::shortage::is_transient;
use rnet_shm::types::is_lost;

use super::Matching;
use crate::fit::Told;

/// How long the types of one node are looked at in each [`WINDOW`]. It can name a thousand, and the
/// worst takes this long; the others are not to wait for all of them.
const TYPES_TIME: Duration = Duration::from_millis(100);
/// How long the types of all nodes are. Nodes that a hostile process makes share it, in turn.
const ALL_TYPES_TIME: Duration = Duration::from_millis(300);
/// Nodes whose turn is over that are remembered.
const MAX_RESTING: usize = 1024;
/// A little less than the second after which it is tried again.
const WINDOW: Duration = Duration::from_millis(900);

/// The time that the types of each node have taken of late.
#[derive(Debug, Default)]
pub struct Spent {
    since: Option<Instant>,
    nodes: HashMap<u64, Duration>,
    all: Duration,
    /// Had their time in earlier windows, and wait for others that have not.
    resting: HashSet<u64>,
}

impl Spent {
    /// Whether there is time for another type of a node.
    fn has_time_for(&mut self, node: u64, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.duration_since(since) >= WINDOW) {
            self.since = Some(now);
            self.begin_window();
        }
        self.all < ALL_TYPES_TIME
            && !self.resting.contains(&node)
            && self.nodes.get(&node).is_none_or(|spent| *spent < TYPES_TIME)
    }

    fn begin_window(&mut self) {
        let nodes = std::mem::take(&mut self.nodes);
        let over = nodes.into_iter().filter(|(_, spent)| *spent >= TYPES_TIME);
        // With time left, everybody has had a turn.
        if self.all < ALL_TYPES_TIME || self.resting.len() > MAX_RESTING {
            self.resting.clear();
        } else {
            self.resting.extend(over.map(|(node, _)| node));
        }
        self.all = Duration::ZERO;
    }

    /// Notes how long a type of a node was read.
    fn add_read(&mut self, node: u64, time: Duration) {
        *self.nodes.entry(node).or_default() += time;
        self.all += time;
    }

    /// Notes how long `endpoint` was looked at further, if its type was read.
    pub fn add(&mut self, endpoint: u64, time: Duration) {
        if let Some(spent) = self.nodes.get_mut(&incarnation_of(endpoint)) {
            *spent += time;
            self.all += time;
        }
    }
}

impl Matching {
    /// The type that `endpoint`, of the node in `folder`, names, and that of our endpoint `own`, if
    /// they need to be known: only protobuf messages are compared with each other. Ours is read back
    /// from our own folder, as the other side reads it, so that both come to the same verdict.
    ///
    /// # Errors
    /// What may be otherwise at the next look: the node is leaving, or something ran out, time for
    /// the types of this node included.
    pub fn told_between(
        &mut self,
        endpoint: u64,
        folder: &Path,
        desc: &TypeDesc,
        own: u64,
    ) -> Result<(Told, Told)> {
        let publisher = self.publishers.get(&own).map(|own| &own.meta.type_desc);
        let ours = publisher.or(self.subscriptions.get(&own).map(|own| &own.meta.type_desc));
        let (Some(theirs), Some(ours)) = (desc.as_protobuf(), ours.and_then(TypeDesc::as_protobuf))
        else {
            return Ok((Told::Type(None), Told::Type(None)));
        };
        let ours = ours.clone();
        let (began, node) = (Instant::now(), incarnation_of(endpoint));
        let is_other = node != self.own.incarnation();
        if is_other && !self.spent.has_time_for(node, began) {
            // Nothing is wrong, so nobody is told; it goes on with the next look.
            self.short = true;
            let after_ms = TYPES_TIME.as_millis() as u64;
            let what = "other types of its node".to_owned();
            return Err(Error::Timeout { topic: String::new(), what, after_ms });
        }
        let read = self.told_in(folder, theirs);
        let own_folder = self.own.folder().to_owned();
        let both = read.and_then(|theirs| Ok((theirs, self.told_in(&own_folder, &ours)?)));
        if is_other {
            self.spent.add_read(node, began.elapsed());
        }
        both
    }

    /// The type that an endpoint of the node in `folder` names.
    fn told_in(&mut self, folder: &Path, named: &ProtobufType) -> Result<Told> {
        match self.schemas.read(folder, named) {
            Ok(schema) => Ok(Told::Type(Some(schema))),
            Err(error @ Error::Io { source_kind: std::io::ErrorKind::NotFound, .. })
                if !is_lost(self.own.domain(), folder) =>
            {
                Err(error)
            }
            Err(error) if is_transient(&error) => Err(error),
            Err(Error::Corrupt { what, .. }) => Ok(Told::Unreadable(what)),
            Err(error) => Ok(Told::Unreadable(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_waits_for_itself_alone() {
        let endpoint = |node: u64| node << 24 | 1;
        let (mut spent, now) = (Spent::default(), Instant::now());
        let nodes = [incarnation_of(endpoint(1)), incarnation_of(endpoint(2))];
        assert!(nodes.iter().all(|node| spent.has_time_for(*node, now)));
        // What names no type that was read is not noted at all.
        spent.add(endpoint(1), TYPES_TIME);
        assert!(spent.nodes.is_empty() && spent.has_time_for(nodes[0], now));
        spent.add_read(nodes[0], TYPES_TIME / 2);
        assert!(spent.has_time_for(nodes[0], now));
        spent.add(endpoint(1), TYPES_TIME);
        assert!(!spent.has_time_for(nodes[0], now) && spent.has_time_for(nodes[1], now));
        assert!(!spent.has_time_for(nodes[0], now + WINDOW / 2));
        assert!(spent.has_time_for(nodes[0], now + WINDOW));
    }

    #[test]
    fn many_nodes_share_a_time_in_turn() {
        let (mut spent, begin) = (Spent::default(), Instant::now());
        // Ten that take all they get come first in every look, and one that needs little is last.
        let mut turns = HashMap::<u64, u32>::new();
        for window in 0..12 {
            let now = begin + WINDOW * window;
            let mut used = Duration::ZERO;
            for node in 0..11 {
                while spent.has_time_for(node, now) {
                    let time = TYPES_TIME / if node == 10 { 100 } else { 1 };
                    spent.add_read(node, time);
                    *turns.entry(node).or_default() += 1;
                    used += time;
                    if node == 10 {
                        break;
                    }
                }
            }
            assert!(used <= ALL_TYPES_TIME, "window {window}: {used:?}");
        }
        assert!((0..11).all(|node| turns.get(&node).is_some_and(|n| *n >= 3)), "{turns:?}");
    }
}
