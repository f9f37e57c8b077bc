//! What a node's matching knows of its own endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rnet_core::{Lane, MAX_PUBLISHERS_PER_SUBSCRIPTION, Result};
use rnet_shm::channel::{Origin, Reader};
use rnet_shm::node::incarnation_of;
use rnet_shm::publisher::{PeerPublisher, PublisherMeta};
use rnet_shm::reader_table::ReaderTable;
use rnet_shm::subscription::{
    Binding, PeerSubscription, SubscriptionFile, SubscriptionMeta, too_many_publishers,
};

use super::periods::Watched;
use crate::match_event::{MatchEvent, Notice, PeerInfo, PublisherState, push_notice};
use crate::periods::Deadline;
use crate::subscriber_state::SubscriberState;

pub struct OwnPublisher {
    pub topic_hash: u64,
    pub meta: PublisherMeta,
    pub readers: Arc<ReaderTable>,
    pub state: Arc<PublisherState>,
    /// Subscriptions that were looked at.
    pub known: BTreeMap<u64, Known>,
    /// Those of which the user was told that they cannot be served for now.
    pub short: BTreeSet<u64>,
    /// Its own deadline, if it has promised one.
    pub deadline: Option<Deadline>,
    /// The subscriptions that it is to admit; `None` if it admits all.
    pub granted: Option<BTreeSet<u64>>,
}

#[allow(clippy::large_enum_variant, reason = "few are pending at a time")]
pub enum Known {
    /// Fits; waits to bind a page to us.
    Pending(PeerSubscription),
    /// Served. Its file is opened again if it has to be admitted anew: thousands of open files
    /// would be too many.
    Admitted,
    /// Does not fit, or was refused.
    Rejected,
}

pub struct OwnSubscription {
    pub topic_hash: u64,
    pub meta: SubscriptionMeta,
    pub file: Arc<SubscriptionFile>,
    pub state: Arc<SubscriberState>,
    /// Publishers that were looked at, and the names of the nodes of those that fit.
    pub known: BTreeMap<u64, Option<String>>,
    /// Those of which the user was told that they cannot be followed for now.
    pub short: BTreeSet<u64>,
    pub lane: Option<Lane>,
    /// Publishers whose deadline or lease is watched.
    pub watched: BTreeMap<u64, Watched>,
}

impl OwnPublisher {
    pub fn drop_reader(&mut self, id: u64, died: bool, notices: &mut Vec<Notice>) {
        self.short.remove(&id);
        if let Some(granted) = &mut self.granted {
            granted.remove(&id);
            self.state.lock().asking.retain(|p| p.id != id);
        }
        if died {
            self.readers.bury(id);
        } else {
            self.readers.dismiss(id);
        }
        let mut matches = self.state.lock();
        matches.ends.remove(&id);
        let Some(at) = matches.matched.iter().position(|p| p.id == id) else { return };
        let info = matches.matched.swap_remove(at);
        drop(matches);
        self.state.changed.notify_all();
        let event = if died { MatchEvent::Lost(info) } else { MatchEvent::Unmatched(info) };
        push_notice(notices, self.state.hooks.clone(), event);
    }
}

impl OwnSubscription {
    pub fn drop_publisher(&mut self, id: u64, died: bool, notices: &mut Vec<Notice>) {
        self.short.remove(&id);
        let Some(Some(node)) = self.known.remove(&id) else { return };
        self.end_watch(id, &node, died, notices);
        self.tell_liveliness(PeerInfo { id, node: node.clone() }, false, notices);
        self.state.bring(|inbox| inbox.leave(id, died));
        let info = PeerInfo { id, node };
        let event = if died { MatchEvent::Lost(info) } else { MatchEvent::Unmatched(info) };
        push_notice(notices, self.state.hooks.clone(), event);
    }

    pub fn bind(&self, peer: &PeerPublisher, origin: Origin, publisher: u64) -> Result<Reader> {
        // Those that are there. What those that have left leave unread has room besides.
        if self.known.values().flatten().count() >= MAX_PUBLISHERS_PER_SUBSCRIPTION {
            return Err(too_many_publishers(&self.meta.topic));
        }
        let history = match peer.meta.qos.durability {
            rnet_core::Durability::TransientLocal { depth } if self.meta.qos.transient_local => {
                u64::from(depth)
            }
            _ => 0,
        };
        let binding = Binding {
            publisher,
            reliable: self.meta.qos.reliability == rnet_core::Reliability::Reliable,
            history,
            bell: self.state.bell(),
        };
        Reader::bind(&self.file, peer, origin, binding, self.meta.qos.depth())
    }
}

pub fn known_of<'a>(node: u64, known: impl Iterator<Item = &'a u64>) -> Vec<u64> {
    known.filter(|id| incarnation_of(**id) == node).copied().collect()
}
