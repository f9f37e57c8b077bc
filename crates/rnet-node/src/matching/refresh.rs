//! Looks at the domain: all of it, the nodes that have rung, or the known ones.

use rnet_core::Result;
use rnet_shm::domain::node::incarnation_of;
use rnet_shm::domain::orphans::ReleasedNames;
use rnet_shm::domain::registry::Changes;

use super::{MatchState, Matching};
use crate::match_event::Notice;

impl Matching {
    /// Reads the peers anew and matches the topics that have changed.
    ///
    /// `only` are the nodes to look at, and those of the names that were given up; `None` looks at all. Where the
    /// domain cannot be looked at, the known peers are, which takes fewer descriptors.
    pub fn refresh(
        &mut self,
        only: Option<&[u64]>,
        given_up: Option<&ReleasedNames>,
    ) -> (Vec<Notice>, Result<()>) {
        let named = |stem: &str| given_up.is_some_and(|names| names.has(stem));
        let looked = match only {
            Some(nodes) => {
                let named: &dyn Fn(&str) -> bool = &named;
                self.registry.refresh_only(nodes, given_up.map(|_| named))
            }
            None => self.registry.refresh(),
        };
        let (changes, done) = match looked {
            Ok(changes) => (changes, Ok(())),
            Err(error) => (self.registry.refresh_known(), Err(error)),
        };
        (self.apply_refresh(changes), done)
    }

    /// Takes in what a look has found, and whether something kept it from some node.
    fn apply_refresh(&mut self, changes: Changes) -> Vec<Notice> {
        let notices = self.apply_changes(changes);
        match self.registry.shortage() {
            Some(error) => self.cannot_inspect(error),
            None => self.shortage.end(),
        }
        notices
    }

    /// Reads what the known peers have announced anew and matches the topics that have changed. Peers that
    /// come ring.
    pub fn refresh_lists(&mut self) -> Vec<Notice> {
        let changes = self.registry.refresh_lists();
        self.apply_refresh(changes)
    }

    /// These nodes have rung, or any may have: the next refresh looks at the topics on which a subscription of
    /// theirs was admitted and is not served now. It was let go, or has bound itself anew, and may have asked
    /// again.
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
