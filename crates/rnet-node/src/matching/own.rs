//! What a node's matching knows of its own endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rnet_core::{Durability, Error, Lane, MAX_PUBLISHERS_PER_SUBSCRIPTION, Result, is_internal};
use rnet_shm::channel::publisher::{PeerPublisher, PublisherMeta};
use rnet_shm::channel::reader::{PublisherLocation, Reader};
use rnet_shm::channel::reader_table::ReaderTable;
use rnet_shm::channel::subscription::{
    Binding, PassivePage, PeerSubscription, SubscriptionFile, SubscriptionMeta, too_many_publishers,
};
use rnet_shm::domain::node::incarnation_of;
use rnet_shm::ring::binding::HistoryRequest;

use super::deadlines::WatchedPublisher;
use super::succession::ProxyTracker;
use super::tracing::TraceInterest;
use crate::deadlines::Deadline;
use crate::match_event::{MatchEvent, Notice, PeerInfo, PublisherState, push_notice};
use crate::subscriber_state::SubscriberState;

pub struct OwnPublisher {
    pub topic_hash: u64,
    pub meta: PublisherMeta,
    pub readers: Arc<ReaderTable>,
    pub state: Arc<PublisherState>,
    /// Subscriptions that were looked at.
    pub known: BTreeMap<u64, MatchState>,
    /// Those of which the user was told that they cannot be served for now.
    pub shortage_reported: BTreeSet<u64>,
    /// Its own deadline, if it has promised one.
    pub deadline: Option<Deadline>,
    /// The subscriptions that it is to admit; `None` if it admits all.
    pub granted: Option<BTreeSet<u64>>,
}

#[allow(clippy::large_enum_variant, reason = "few are pending at a time")]
pub enum MatchState {
    /// Fits; waits to bind a page to us.
    Pending(PeerSubscription),
    /// Served, or passive. Its file is opened again if it has to be admitted anew: thousands of open files
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
    pub shortage_reported: BTreeSet<u64>,
    pub lane: Option<Lane>,
    /// Publishers whose deadline or lease is watched.
    pub watched: BTreeMap<u64, WatchedPublisher>,
    /// From which message on it forwards.
    pub from: Option<u64>,
    /// The publishers that are to serve it if it is passive, and the pages that are bound to them.
    pub served_by: BTreeMap<u64, Option<PassivePage>>,
    pub proxies: ProxyTracker,
    /// Whether it is traced; `None` if it never is.
    pub traced: Option<TraceInterest>,
}

impl OwnPublisher {
    /// A subscription is served from now on.
    pub fn note_match(&self, peer: PeerInfo, notices: &mut Vec<Notice>) {
        let mut matches = self.state.lock();
        if !matches.matched.contains(&peer) {
            matches.matched.push(peer.clone());
        }
        drop(matches);
        self.state.changed.notify_all();
        push_notice(notices, self.state.match_callbacks.clone(), MatchEvent::Matched(peer));
    }

    /// A subscription does not fit. One that is not counted is its own node's to tell of.
    pub fn note_incompatible(
        &self,
        meta: &SubscriptionMeta,
        error: Error,
        notices: &mut Vec<Notice>,
    ) {
        if meta.counts() {
            self.state.lock().push_incompatible(error.clone());
            self.state.changed.notify_all();
            // Of a proxy, the node for which it stands tells. Servers and clients of calls tell of theirs by themselves.
            if self.meta.proxy.is_none() && !is_internal(&self.meta.topic) {
                notices.push(Notice::Report(error.clone()));
            }
            push_notice(
                notices,
                self.state.match_callbacks.clone(),
                MatchEvent::Incompatible(error),
            );
        }
    }

    pub fn drop_reader(&mut self, id: u64, died: bool, notices: &mut Vec<Notice>) {
        self.shortage_reported.remove(&id);
        if let Some(granted) = &mut self.granted {
            granted.remove(&id);
            self.state.lock().awaiting_admission.retain(|p| p.id != id);
        }
        if died {
            self.readers.remove_dead(id);
        } else {
            self.readers.remove(id);
        }
        let mut matches = self.state.lock();
        matches.endpoint_counts.remove(&id);
        let Some(at) = matches.matched.iter().position(|p| p.id == id) else { return };
        let info = matches.matched.swap_remove(at);
        drop(matches);
        self.state.changed.notify_all();
        let event = if died { MatchEvent::Lost(info) } else { MatchEvent::Unmatched(info) };
        push_notice(notices, self.state.match_callbacks.clone(), event);
    }
}

impl OwnSubscription {
    pub fn drop_publisher(&mut self, id: u64, died: bool, notices: &mut Vec<Notice>) {
        self.shortage_reported.remove(&id);
        if self.proxies.is_awaited(id) {
            return;
        }
        if self.meta.is_passive() {
            if let Some(Some(node)) = self.known.remove(&id) {
                self.drop_passive(PeerInfo { id, node }, died, notices);
            }
            return;
        }
        if self.end_match(id, died, notices).is_some() {
            self.state.update_inbox(|inbox| inbox.publisher_left(id, died));
        }
    }

    /// The match is over; gives the publisher's node.
    pub fn end_match(&mut self, id: u64, died: bool, notices: &mut Vec<Notice>) -> Option<String> {
        self.proxies.forget(id);
        let node = self.known.remove(&id)??;
        self.stop_watching_publisher(id, &node, died, notices);
        let info = PeerInfo { id, node: node.clone() };
        self.notify_liveliness(info.clone(), false, notices);
        let event = if died { MatchEvent::Lost(info) } else { MatchEvent::Unmatched(info) };
        push_notice(notices, self.state.match_callbacks.clone(), event);
        Some(node)
    }

    pub fn bind(
        &self,
        peer: &PeerPublisher,
        location: PublisherLocation,
        publisher: u64,
    ) -> Result<Reader> {
        // Those that are there. What those that have left leave unread has room besides.
        let there =
            self.known.iter().filter(|(id, n)| n.is_some() && !self.proxies.is_awaited(**id));
        if there.count() >= MAX_PUBLISHERS_PER_SUBSCRIPTION {
            return Err(too_many_publishers(&self.meta.topic));
        }
        let past = match (self.from, peer.meta.qos.durability) {
            (Some(seq), _) => HistoryRequest::From(seq),
            (None, Durability::TransientLocal { depth }) if self.meta.qos.transient_local => {
                HistoryRequest::Newest(depth.into())
            }
            _ => HistoryRequest::Newest(0),
        };
        let binding = Binding {
            publisher,
            reliable: self.meta.qos.reliability == rnet_core::Reliability::Reliable,
            history: past.to_word(),
            bell: self.state.bell(),
        };
        Reader::bind(&self.file, peer, location, binding, self.meta.qos.depth())
    }
}

pub fn endpoints_of_node<'a>(node: u64, known: impl Iterator<Item = &'a u64>) -> Vec<u64> {
    known.filter(|id| incarnation_of(**id) == node).copied().collect()
}
