//! Links that are not understood: of another domain, or of another version of the wire.

use std::collections::BTreeSet;

use rnet::{DomainId, Lane};

use crate::Presence;

/// Kinds that are told at a time.
const MAX_REPORTED: usize = 16;
/// Tokens beyond this are not looked at: more than there are, made up by somebody.
const MAX_TOKENS: usize = 1024;

/// What they have in common: their domain, and the version of the wire that they speak.
pub type DomainVersion = (DomainId, u32);

/// Those that are there.
#[derive(Debug, Default)]
pub struct IncompatiblePeers {
    /// One for each token: of each link there is one on either lane.
    tokens: BTreeSet<(DomainVersion, bool, u64, u64)>,
    reported: BTreeSet<DomainVersion>,
}

impl IncompatiblePeers {
    /// A token has come or gone. Gives the kinds that are there now (`true`), and those of which nobody is left.
    pub fn note(
        &mut self,
        kind: DomainVersion,
        lane: Lane,
        presence: Presence,
        is_there: bool,
    ) -> Vec<(DomainVersion, bool)> {
        let token = (kind, lane == Lane::Urgent, presence.host.0, presence.term);
        let is_news = match is_there {
            true => self.tokens.len() < MAX_TOKENS && self.tokens.insert(token),
            false => self.tokens.remove(&token),
        };
        if !is_news {
            return Vec::new();
        }
        let kinds: BTreeSet<&DomainVersion> = self.tokens.iter().map(|(kind, ..)| kind).collect();
        let gone = self.reported.iter().filter(|kind| !kinds.contains(kind));
        let mut news: Vec<(DomainVersion, bool)> = gone.map(|kind| (kind.clone(), false)).collect();
        self.reported.retain(|kind| kinds.contains(kind));
        for kind in kinds {
            if self.reported.len() < MAX_REPORTED && self.reported.insert(kind.clone()) {
                news.push((kind.clone(), true));
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostId;

    fn kind(version: usize) -> DomainVersion {
        (DomainId::new("other").unwrap(), version as u32)
    }

    fn of(host: u64) -> Presence {
        Presence { host: HostId(host), term: 1 }
    }

    #[test]
    fn a_kind_is_there_from_its_first_token_to_its_last() {
        let mut incompatible = IncompatiblePeers::default();
        let mut note = |lane, host, is_there| incompatible.note(kind(7), lane, of(host), is_there);
        assert_eq!(note(Lane::Bulk, 1, true), [(kind(7), true)]);
        assert_eq!(note(Lane::Urgent, 1, true), []);
        assert_eq!(note(Lane::Urgent, 2, true), []);
        assert_eq!(note(Lane::Urgent, 2, true), [], "again, as after a lost connection");
        assert_eq!(note(Lane::Bulk, 1, false), []);
        assert_eq!(note(Lane::Urgent, 1, false), []);
        assert_eq!(note(Lane::Bulk, 3, false), [], "one that was never there");
        assert_eq!(note(Lane::Urgent, 2, false), [(kind(7), false)]);
        assert_eq!(note(Lane::Urgent, 2, false), []);
        assert_eq!(note(Lane::Bulk, 1, true), [(kind(7), true)]);
    }

    #[test]
    fn of_too_many_kinds_the_next_is_told_once_one_is_gone() {
        let mut incompatible = IncompatiblePeers::default();
        let mut note = |version, is_there| {
            incompatible.note(kind(version), Lane::Urgent, of(version as u64), is_there)
        };
        for version in 0..MAX_REPORTED {
            assert_eq!(note(version, true), [(kind(version), true)]);
        }
        for version in MAX_REPORTED..2 * MAX_TOKENS {
            assert_eq!(note(version, true), []);
        }
        assert_eq!(note(MAX_REPORTED + 1, false), [], "it was not told");
        assert_eq!(note(3, false), [(kind(3), false), (kind(MAX_REPORTED), true)]);
        assert!(incompatible.tokens.len() <= MAX_TOKENS);
    }
}
