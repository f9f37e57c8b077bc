//! The matching state of a node's own endpoints.

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
    /// Subscriptions that were checked.
    pub known: BTreeMap<u64, MatchState>,
    /// Subscriptions with a shortage that was reported to the user.
    pub shortage_reported: BTreeSet<u64>,
    /// Its own deadline, if it declares one.
    pub deadline: Option<Deadline>,
    /// The subscriptions to admit; `None` if it admits all.
    pub granted: Option<BTreeSet<u64>>,
}

#[allow(clippy::large_enum_variant, reason = "few are pending at a time")]
pub enum MatchState {
    /// Compatible; waits for it to bind a page to us.
    Pending(PeerSubscription),
    /// Served, or passive. If it must be admitted again, its file is reopened: thousands of open files would
    /// be too many.
    Admitted,
    /// Incompatible, or refused.
    Rejected,
}

pub struct OwnSubscription {
    pub topic_hash: u64,
    pub meta: SubscriptionMeta,
    pub file: Arc<SubscriptionFile>,
    pub state: Arc<SubscriberState>,
    /// Publishers that were checked; for compatible ones the name of the node.
    pub known: BTreeMap<u64, Option<String>>,
    /// Publishers with a shortage that was reported to the user.
    pub shortage_reported: BTreeSet<u64>,
    pub lane: Option<Lane>,
    /// Publishers with a watched deadline or lease.
    pub watched: BTreeMap<u64, WatchedPublisher>,
    /// The first message to forward.
    pub from: Option<u64>,
    /// The publishers that serve it if it is passive, and the pages bound to them.
    pub served_by: BTreeMap<u64, Option<PassivePage>>,
    pub proxies: ProxyTracker,
    /// Whether it is traced; `None` if it is never traced.
    pub traced: Option<TraceInterest>,
}

impl OwnPublisher {
    /// Notes that a subscription is served.
    pub fn note_match(&self, peer: PeerInfo, notices: &mut Vec<Notice>) {
        let mut matches = self.state.lock();
        if !matches.matched.contains(&peer) {
            matches.matched.push(peer.clone());
        }
        drop(matches);
        self.state.changed.notify_all();
        push_notice(notices, self.state.match_callbacks.clone(), MatchEvent::Matched(peer));
    }

    /// Notes an incompatible subscription. If the subscription is not counted, its own node reports it.
    pub fn note_incompatible(
        &self,
        meta: &SubscriptionMeta,
        error: Error,
        notices: &mut Vec<Notice>,
    ) {
        if meta.counts() {
            self.state.lock().push_incompatible(error.clone());
            self.state.changed.notify_all();
            // A proxy's error is reported by the node that it represents. Servers and clients of calls report
            // their own.
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

    /// Ends the match; returns the name of the publisher's node.
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
        // Counts present publishers. Unread messages of publishers that have left have separate capacity.
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
