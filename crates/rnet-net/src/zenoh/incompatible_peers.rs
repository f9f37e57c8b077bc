//! Links of another domain, or of another wire version.

use std::collections::BTreeSet;

use rnet::{DomainId, Lane};

use crate::Presence;

/// The most kinds that are reported at a time.
const MAX_REPORTED: usize = 16;
/// Tokens beyond this limit are ignored: more than can exist, invented by a peer.
const MAX_TOKENS: usize = 1024;

/// The common properties of a kind: the domain and the wire version.
pub type DomainVersion = (DomainId, u32);

/// The incompatible links that are present.
#[derive(Debug, Default)]
pub struct IncompatiblePeers {
    /// One for each token: each link has one on either lane.
    tokens: BTreeSet<(DomainVersion, bool, u64, u64)>,
    reported: BTreeSet<DomainVersion>,
}

impl IncompatiblePeers {
    /// Handles a token that has appeared or gone. Returns the kinds that are present now (`true`), and
    /// those whose last link is gone.
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
    fn kind_is_present_from_first_to_last_token() {
        let mut incompatible = IncompatiblePeers::default();
        let mut note = |lane, host, is_there| incompatible.note(kind(7), lane, of(host), is_there);
        assert_eq!(note(Lane::Bulk, 1, true), [(kind(7), true)]);
        assert_eq!(note(Lane::Urgent, 1, true), []);
        assert_eq!(note(Lane::Urgent, 2, true), []);
        assert_eq!(
            note(Lane::Urgent, 2, true),
            [],
            "the same token again, as after a lost connection"
        );
        assert_eq!(note(Lane::Bulk, 1, false), []);
        assert_eq!(note(Lane::Urgent, 1, false), []);
        assert_eq!(note(Lane::Bulk, 3, false), [], "a token that was never present");
        assert_eq!(note(Lane::Urgent, 2, false), [(kind(7), false)]);
        assert_eq!(note(Lane::Urgent, 2, false), []);
        assert_eq!(note(Lane::Bulk, 1, true), [(kind(7), true)]);
    }

    #[test]
    fn kind_beyond_the_limit_is_reported_once_another_is_gone() {
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
        assert_eq!(note(MAX_REPORTED + 1, false), [], "the kind was not reported");
        assert_eq!(note(3, false), [(kind(3), false), (kind(MAX_REPORTED), true)]);
        assert!(incompatible.tokens.len() <= MAX_TOKENS);
    }
}
