//! The protobuf types that peers name.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rnet_core::{Error, ProtobufType, Result, TypeDesc};
use rnet_shm::node::incarnation_of;
use rnet_shm::shortage::is_passing;
use rnet_shm::types::is_lost;

use super::Matching;
use crate::fit::Told;

/// How long the types of one node are looked at in each [`WINDOW`]. It can name a thousand, and the
/// worst takes this long; the others are not to wait for all of them.
const TYPES_TIME: Duration = Duration::from_millis(100);
/// A little less than the second after which it is tried again.
const WINDOW: Duration = Duration::from_millis(900);

/// The time that the types of each node have taken of late.
#[derive(Debug, Default)]
pub(super) struct Spent {
    since: Option<Instant>,
    nodes: HashMap<u64, Duration>,
}

impl Spent {
    /// Whether there is time for another type of a node.
    fn has_time_for(&mut self, node: u64, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.duration_since(since) >= WINDOW) {
            self.since = Some(now);
            self.nodes.clear();
        }
        self.nodes.get(&node).is_none_or(|spent| *spent < TYPES_TIME)
    }

    /// Notes how long a type of the node of `endpoint` was looked at.
    pub(super) fn add(&mut self, endpoint: u64, time: Duration) {
        *self.nodes.entry(incarnation_of(endpoint)).or_default() += time;
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
    pub(super) fn told_between(
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
        if node != self.own.incarnation() && !self.spent.has_time_for(node, began) {
            // Nothing is wrong, so nobody is told; it goes on with the next look.
            self.short = true;
            let after_ms = TYPES_TIME.as_millis() as u64;
            return Err(Error::Timeout { what: "other types of its node".to_owned(), after_ms });
        }
        let read = self.told_in(folder, theirs);
        let own_folder = self.own.folder().to_owned();
        let both = read.and_then(|theirs| Ok((theirs, self.told_in(&own_folder, &ours)?)));
        self.spent.add(endpoint, began.elapsed());
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
            Err(error) if is_passing(&error) => Err(error),
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
        spent.add(endpoint(1), TYPES_TIME / 2);
        assert!(spent.has_time_for(nodes[0], now));
        spent.add(endpoint(1), TYPES_TIME);
        assert!(!spent.has_time_for(nodes[0], now) && spent.has_time_for(nodes[1], now));
        assert!(!spent.has_time_for(nodes[0], now + WINDOW / 2));
        assert!(spent.has_time_for(nodes[0], now + WINDOW));
    }
}
