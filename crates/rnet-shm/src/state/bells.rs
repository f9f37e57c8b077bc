//! The bells of the nodes that follow the state: whoever writes rings a follower at the bell of its node that it
//! has named, as publishers ring subscribers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::node::OwnNode;
use crate::domain::presence;
use crate::os::bell::{Bells, MAX_SLEEP};

/// A node whose bells cannot be found is looked for again after so long, and not at every ring: its watches
/// look by themselves in each [`MAX_SLEEP`].
const RETRY_INTERVAL_NS: u64 = MAX_SLEEP.as_nanos() as u64;

/// What is known of another node.
struct Peer {
    incarnation: u64,
    /// Its bells, or when they were looked for in vain.
    bells: Result<Arc<Bells>, u64>,
}

/// The bells of other nodes, by process slot.
#[derive(Default)]
pub(super) struct PeerBells(Mutex<BTreeMap<usize, Peer>>);

impl PeerBells {
    /// Those of the node that has the process slot, mapped at their first use if it lives. `None` if it has
    /// none: it has ended, or is not there any more.
    pub(super) fn of(
        &self,
        own: &OwnNode,
        process_slot: usize,
        incarnation: u64,
        now_ns: impl Fn() -> u64,
        lives: impl FnOnce() -> bool,
    ) -> Option<Arc<Bells>> {
        if incarnation == own.incarnation() {
            return Some(own.bells().clone());
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(peer) = known.get(&process_slot).filter(|peer| peer.incarnation == incarnation)
        {
            match &peer.bells {
                Ok(bells) => return Some(bells.clone()),
                Err(looked_ns) if now_ns().saturating_sub(*looked_ns) < RETRY_INTERVAL_NS => {
                    return None;
                }
                Err(_) => {}
            }
        }
        // Asked with the list locked, so that a death behind this is seen by `forget`.
        if !lives() {
            return None;
        }
        let folder = presence::find_folder(own.domain(), incarnation);
        let bells = folder.and_then(|folder| Bells::open(&folder.join("bells")).ok()).map(Arc::new);
        let peer = Peer { incarnation, bells: bells.clone().ok_or_else(now_ns) };
        known.insert(process_slot, peer);
        bells
    }

    /// Whether something is known of a node for which this is true.
    pub(super) fn has(&self, is: impl Fn(u64) -> bool) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.values().any(|peer| is(peer.incarnation))
    }

    /// Lets go of the bells of nodes that do not live any more, by process slot and incarnation.
    pub(super) fn forget(&self, lives: impl Fn(usize, u64) -> bool) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|process_slot, peer| lives(*process_slot, peer.incarnation));
    }
}

#[cfg(test)]
mod tests {
    use rnet_core::NodeName;

    use super::*;
    use crate::domain::directory::{DomainConfig, DomainDir};
    use crate::os::random::random_u64;

    #[test]
    fn a_peer_without_a_folder_is_not_looked_for_at_every_ring() {
        let base = std::env::temp_dir().join(format!("rnet-peer-bells-{:x}", random_u64()));
        std::fs::create_dir(&base).unwrap();
        let config = DomainConfig { base: Some(base.clone()), ..DomainConfig::default() };
        let dir = DomainDir::open_or_create(&config).unwrap();
        let open =
            |name| OwnNode::create(&dir, &NodeName::new(name).unwrap(), "rust", "0").unwrap();
        let (own, peer) = (open("own"), open("peer"));
        let folder = presence::find_folder(&dir, peer.incarnation()).unwrap();
        let bells = PeerBells::default();
        let find = |now_ns| bells.of(&own, 3, peer.incarnation(), || now_ns, || true).is_some();
        std::fs::rename(&folder, base.join("away")).unwrap();
        assert!(!find(1));
        std::fs::rename(base.join("away"), &folder).unwrap();
        assert!(!find(RETRY_INTERVAL_NS), "it is not looked for yet");
        // Another node that has the slot now is.
        let third = open("third");
        assert!(bells.of(&own, 3, third.incarnation(), || 2, || true).is_some());
        std::fs::rename(&folder, base.join("away")).unwrap();
        assert!(!find(3));
        std::fs::rename(base.join("away"), &folder).unwrap();
        assert!(find(3 + RETRY_INTERVAL_NS));
        assert!(find(3), "it is known");
        // Once it has ended nobody has its bells any more.
        bells.forget(|_, _| false);
        assert!(!bells.has(|_| true));
        assert!(bells.of(&own, 3, peer.incarnation(), || 4, || false).is_none());
        drop((own, peer, third));
        std::fs::remove_dir_all(base).unwrap();
    }
}
