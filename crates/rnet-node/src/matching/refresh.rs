//! Refreshes the view of the domain: all nodes, the nodes that have rung, or the known ones.

use rnet_core::Result;
use rnet_shm::domain::dead_node_leftovers::ReleasedNames;
use rnet_shm::domain::node::incarnation_of;
use rnet_shm::domain::registry::Changes;

use super::{MatchState, Matching};
use crate::match_event::Notice;

impl Matching {
    /// Reads the peers again and matches the topics that have changed.
    ///
    /// `only` lists the nodes to read, including those in `given_up`; `None` reads all nodes. If the domain's
    /// directory cannot be read, only the known peers are read, which takes fewer descriptors.
    pub fn refresh(
        &mut self,
        only: Option<&[u64]>,
        given_up: Option<&ReleasedNames>,
    ) -> (Vec<Notice>, Result<()>) {
        let named = |stem: &str| given_up.is_some_and(|names| names.has(stem));
        let refreshed = match only {
            Some(nodes) => {
                let named: &dyn Fn(&str) -> bool = &named;
                self.registry.refresh_only(nodes, given_up.map(|_| named))
            }
            None => self.registry.refresh(),
        };
        let (changes, done) = match refreshed {
            Ok(changes) => (changes, Ok(())),
            Err(error) => (self.registry.refresh_known(), Err(error)),
        };
        (self.apply_refresh(changes), done)
    }

    /// Applies the changes of a refresh, and notes whether some node could not be read.
    fn apply_refresh(&mut self, changes: Changes) -> Vec<Notice> {
        let notices = self.apply_changes(changes);
        match self.registry.shortage() {
            Some(error) => self.cannot_inspect(error),
            None => self.shortage.end(),
        }
        notices
    }

    /// Reads again what the known peers have announced, and matches the topics that have changed. New peers
    /// ring.
    pub fn refresh_lists(&mut self) -> Vec<Notice> {
        let changes = self.registry.refresh_lists();
        self.apply_refresh(changes)
    }

    /// These nodes have rung, or any node may have: the next refresh checks the topics on which one of their
    /// subscriptions was admitted and is not served now. Such a subscription was evicted, or has bound itself
    /// again, and may have asked again.
    pub fn recheck_admissions(&mut self, only: Option<&[u64]>) {
        for publisher in self.publishers.values() {
            let found = publisher.known.iter().any(|(id, known)| {
                only.is_none_or(|nodes| nodes.contains(&incarnation_of(*id)))
                    && matches!(known, MatchState::Admitted)
                    && !publisher.readers.serves(*id)
            });
            if found {
                self.pending.insert(publisher.topic_hash);
            }
        }
    }
}
