//! Which of this node's subscriptions are traced: those with a subscriber on their trace topic.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rnet_core::{TopicName, fnv1a_64, trace_topic, traced_topic};
use rnet_shm::channel::subscription::SubscriptionMeta;
use rnet_shm::domain::node::{EndpointKind, incarnation_of};

use super::Matching;
use crate::subscriber_state::SubscriberState;

/// A change of the tracing of one subscription.
pub struct TraceChange {
    /// Id of the subscription.
    pub id: u64,
    /// The state of the subscription.
    pub state: Arc<SubscriberState>,
    /// The topic of its records; `None` to stop tracing.
    pub topic: Option<TopicName>,
}

/// The trace state of one of our subscriptions.
pub struct TraceInterest {
    /// The topic of its records, and the hash of the topic.
    topic: TopicName,
    hash: u64,
    /// Whether records are wanted.
    wanted: bool,
}

impl TraceInterest {
    /// The trace state of one of our subscriptions. A subscription that forwards messages is not traced: it
    /// represents receivers on another host.
    pub fn of_subscription(meta: &SubscriptionMeta) -> Option<TraceInterest> {
        if meta.link.is_some() { None } else { TraceInterest::of(&meta.topic) }
    }

    /// The trace state for this topic; `None` if it is not traced: its name is too long, or it is a trace
    /// itself.
    pub fn of(topic: &str) -> Option<TraceInterest> {
        if traced_topic(topic).is_some() {
            return None;
        }
        let topic = TopicName::new(topic).and_then(|topic| trace_topic(&topic)).ok()?;
        Some(TraceInterest { hash: topic.hash(), topic, wanted: false })
    }
}

/// The trace state of the matching.
#[derive(Default)]
pub struct TraceInterests {
    /// Hashes of our topics, by the hashes of their trace topics.
    of: HashMap<u64, u64>,
    /// Topics that we trace.
    ours: BTreeSet<u64>,
    /// Changes to apply after the lock is released.
    changes: Vec<TraceChange>,
}

impl Matching {
    /// One of our subscriptions was added: it may be traced, or subscribe to a trace.
    pub(super) fn note_traced(&mut self, id: u64) {
        let Some(own) = self.subscriptions.get(&id) else { return };
        if let Some(traced) = &own.traced {
            self.traces.of.insert(traced.hash, own.topic_hash);
        }
        if let Some(topic) = traced_topic(&own.meta.topic) {
            // The next refresh rings the nodes that subscribe to it.
            let topic = fnv1a_64(topic.as_bytes());
            self.traces.ours.insert(topic);
            self.pending.insert(topic);
        }
    }

    /// One of our subscriptions of this topic was removed.
    pub(super) fn forget_traced(&mut self, topic: &str, topic_hash: u64) {
        let is_left = |hash| self.subscriptions.values().any(|own| own.topic_hash == hash);
        if let Some(traced) = traced_topic(topic)
            && !is_left(topic_hash)
        {
            let traced = fnv1a_64(traced.as_bytes());
            self.traces.ours.remove(&traced);
            self.ring_subscribers(traced);
            self.pending.insert(traced);
        } else if let Some(traced) = TraceInterest::of(topic)
            && self.traces.of.contains_key(&traced.hash)
            && !is_left(topic_hash)
        {
            self.traces.of.remove(&traced.hash);
        }
    }

    /// Endpoints of this topic were added or removed: starts or stops tracing.
    pub(super) fn update_traces(&mut self, topic: u64) {
        if self.traces.ours.contains(&topic) {
            self.ring_subscribers(topic);
        }
        let of = self.traces.of.get(&topic).copied().unwrap_or(topic);
        let us = self.own.incarnation();
        let entries = self.index.get(&of).into_iter().flatten();
        let ours =
            entries.filter(|e| e.kind == EndpointKind::Subscription && incarnation_of(e.id) == us);
        let ours: Vec<u64> = ours.map(|entry| entry.id).collect();
        for id in ours {
            let Some(own) = self.subscriptions.get_mut(&id) else { continue };
            let Some(traced) = &mut own.traced else { continue };
            let mut on = self.index.get(&traced.hash).into_iter().flatten();
            let wanted = on.any(|entry| entry.kind == EndpointKind::Subscription);
            if std::mem::replace(&mut traced.wanted, wanted) != wanted {
                let topic = wanted.then(|| traced.topic.clone());
                let state = own.state.clone();
                self.traces.changes.push(TraceChange { id, state, topic });
            }
        }
    }

    /// Rings the nodes that subscribe to a topic that we trace, so that they check us.
    fn ring_subscribers(&self, topic: u64) {
        let entries = self.index.get(&topic).into_iter().flatten();
        let nodes: BTreeSet<u64> = entries
            .filter(|entry| entry.kind == EndpointKind::Subscription)
            .map(|entry| incarnation_of(entry.id))
            .collect();
        for peer in nodes.iter().filter_map(|node| self.registry.peer(*node)) {
            self.own.ring(peer.node.folder());
        }
    }

    /// Takes the pending changes, to be applied without this lock.
    pub fn take_trace_changes(&mut self) -> Vec<TraceChange> {
        std::mem::take(&mut self.traces.changes)
    }

    /// Whether records of a subscription are wanted, as far as known now.
    pub fn wants_trace(&self, id: u64) -> bool {
        let traced = self.subscriptions.get(&id).and_then(|own| own.traced.as_ref());
        traced.is_some_and(|traced| traced.wanted)
    }

    /// The tracing of a subscription could not start because of a shortage: it is retried.
    pub fn retry_trace(&mut self, id: u64) {
        if let Some(own) = self.subscriptions.get_mut(&id)
            && let Some(traced) = &mut own.traced
        {
            traced.wanted = false;
            self.pending.insert(own.topic_hash);
            self.has_shortage = true;
        }
    }
}
