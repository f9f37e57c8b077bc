//! Matches the publishers and subscriptions of a topic.
//!
//! Each side reads the other's announcement and checks types and quality of service with the same two
//! functions, so both come to the same result. Then the subscriber binds a page of its file to the publisher
//! and rings it; the publisher admits the page and rings back. Whichever side announces first, the second one
//! sees it: a side announces its change before it reads its peers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use rnet_core::Result;
use rnet_shm::channel::publisher::{PeerPublisher, PublisherMeta};
use rnet_shm::channel::reader::PublisherLocation;
use rnet_shm::channel::reader_table::ReaderTable;
use rnet_shm::channel::subscription::{PeerSubscription, SubscriptionFile, SubscriptionMeta};
use rnet_shm::domain::node::{EndpointKind, Entry, OwnNode, incarnation_of};
use rnet_shm::domain::observers::Observers;
use rnet_shm::domain::registry::{Changes, Departure, Registry};
use rnet_shm::os::shortage::is_transient;

use crate::compatibility::{check_compatible, check_same_lane, limit_binding};
use crate::inspection_shortage::InspectionShortage;
use crate::match_event::{MatchEvent, Notice, PeerInfo, PublisherState, push_notice};
use crate::node_event::NodeEvent;
use crate::subscriber_state::SubscriberState;
use crate::types::SchemaCache;

mod deadlines;
mod departures;
mod endpoints;
mod limits;
mod observers;
mod own;
mod passive;
mod peer_locations;
mod peer_types;
mod proxies;
mod refresh;
mod shortages;
mod succession;
pub mod tracing;

use deadlines::NextCheck;
use endpoints::EndpointTracker;
use own::{MatchState, OwnPublisher, OwnSubscription};
use peer_types::TypeCheckBudget;
pub use proxies::visible_node;
pub use succession::SUCCESSOR_TIMEOUT;
use tracing::{TraceInterest, TraceInterests};

/// The matching of one node; protected by the node's only control-plane lock.
pub struct Matching {
    own: Arc<OwnNode>,
    registry: Registry,
    /// The observers.
    observers: Observers,
    /// The protobuf types of peers.
    schemas: SchemaCache,
    /// The time spent on them.
    type_check_budget: TypeCheckBudget,
    publishers: BTreeMap<u64, OwnPublisher>,
    subscriptions: BTreeMap<u64, OwnSubscription>,
    /// All endpoints of the domain by topic, including ours.
    index: HashMap<u64, BTreeSet<Entry>>,
    /// The entries of each node when last indexed.
    indexed: HashMap<u64, Arc<[Entry]>>,
    /// Topics on which one side waits for the other to complete a match.
    pending: BTreeSet<u64>,
    /// Whether a match failed because of a shortage that may end.
    has_shortage: bool,
    /// Why some node cannot be inspected.
    shortage: Arc<InspectionShortage>,
    /// Whether a node has exited, or may have, since the last call of `take_node_ended`.
    ended: bool,
    /// Our endpoints with a watched deadline or lease.
    timed: BTreeSet<u64>,
    next_check: NextCheck,
    endpoints: EndpointTracker,
    traces: TraceInterests,
}

impl Matching {
    pub(crate) fn new(own: Arc<OwnNode>) -> Matching {
        let registry = Registry::new(own.domain().clone(), Some(own.incarnation()));
        let mut observers = Observers::new(own.domain());
        observers.refresh();
        Matching {
            own,
            registry,
            observers,
            schemas: SchemaCache::default(),
            type_check_budget: TypeCheckBudget::default(),
            publishers: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            index: HashMap::new(),
            indexed: HashMap::new(),
            pending: BTreeSet::new(),
            has_shortage: false,
            shortage: Arc::default(),
            ended: false,
            timed: BTreeSet::new(),
            next_check: NextCheck::default(),
            endpoints: EndpointTracker::default(),
            traces: TraceInterests::default(),
        }
    }

    /// The peers of this node.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn registry_mut(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// Whether a node has exited, or may have, since the last call: what it left in the state must be cleaned
    /// up.
    pub fn take_node_ended(&mut self) -> bool {
        std::mem::take(&mut self.ended)
    }

    /// Rings all peers for a new node, so that they watch for its death.
    pub fn greet(&self) {
        for peer in self.registry.peers().values() {
            self.own.greet(peer.node.folder());
        }
    }

    /// Announces a publisher of this node. If `deferred`, it serves only subscriptions that it admits.
    pub(crate) fn add_publisher(
        &mut self,
        id: u64,
        topic_hash: u64,
        meta: PublisherMeta,
        readers: Arc<ReaderTable>,
        deferred: bool,
    ) -> Result<Arc<PublisherState>> {
        let entry = Entry::new(id, topic_hash, EndpointKind::Publisher);
        self.own.announce(entry)?;
        let state = Arc::new(PublisherState::new(self.shortage_reporter()));
        let (known, shortage_reported) = (BTreeMap::new(), BTreeSet::new());
        let (deadline, granted) = (None, deferred.then(BTreeSet::new));
        let state_of = state.clone();
        let own = OwnPublisher {
            topic_hash,
            meta,
            readers,
            state: state_of,
            known,
            shortage_reported,
            deadline,
            granted,
        };
        self.publishers.insert(id, own);
        self.watch_own_deadline(id);
        self.index_own(entry);
        self.observers.ring_endpoints();
        Ok(state)
    }

    /// Announces a subscription of this node. `from` is the first message to forward.
    pub(crate) fn add_subscription(
        &mut self,
        entry: Entry,
        meta: SubscriptionMeta,
        file: Arc<SubscriptionFile>,
        state: Arc<SubscriberState>,
        from: Option<u64>,
    ) -> Result<()> {
        let Entry { id, topic_hash, .. } = entry;
        self.own.announce(entry)?;
        let lane = meta.qos.lane;
        let (known, shortage_reported) = (BTreeMap::new(), BTreeSet::new());
        let (watched, served_by, proxies) = Default::default();
        let traced = TraceInterest::of_subscription(&meta);
        let own = OwnSubscription {
            topic_hash,
            meta,
            file,
            state,
            known,
            shortage_reported,
            lane,
            watched,
            from,
            served_by,
            proxies,
            traced,
        };
        self.subscriptions.insert(id, own);
        self.index_own(entry);
        self.note_traced(id);
        self.observers.ring_endpoints();
        Ok(())
    }

    /// Our own endpoints are indexed one by one: a node with thousands must not read them all again for each.
    fn index_own(&mut self, entry: Entry) {
        self.index.entry(entry.topic_hash).or_default().insert(entry);
        self.pending.insert(entry.topic_hash);
        self.note_own_change();
        self.endpoint_added(entry);
    }

    /// Withdraws an endpoint and notifies its matched peers. The next refresh notifies our own other
    /// endpoints.
    pub fn remove(&mut self, id: u64) {
        self.remove_endpoint(id, false);
    }

    /// As [`Matching::remove`], for a publisher that leaves as if its process had died.
    pub fn remove_as_lost(&mut self, id: u64) {
        self.remove_endpoint(id, true);
    }

    fn remove_endpoint(&mut self, id: u64, lost: bool) {
        let publisher = self.publishers.remove(&id).map(|p| p.topic_hash);
        let subscription = self.subscriptions.remove(&id).map(|s| (s.topic_hash, s.meta.topic));
        let hash = subscription.as_ref().map(|(hash, _)| *hash);
        let Some(topic_hash) = publisher.or(hash) else { return };
        let Some(entry) = self.entry_of(id, topic_hash) else { return };
        self.own.withdraw(id, lost);
        self.unindex(&entry);
        self.note_own_change();
        self.endpoint_removed(&entry);
        self.pending.insert(topic_hash);
        self.ring_counterparts(entry);
        if let Some((hash, topic)) = subscription {
            self.forget_traced(&topic, hash);
        }
        self.observers.ring_endpoints();
    }

    fn entry_of(&self, id: u64, topic_hash: u64) -> Option<Entry> {
        self.index.get(&topic_hash)?.iter().find(|entry| entry.id == id).copied()
    }

    fn unindex(&mut self, entry: &Entry) {
        if let Some(topic) = self.index.get_mut(&entry.topic_hash) {
            topic.remove(entry);
            if topic.is_empty() {
                self.index.remove(&entry.topic_hash);
            }
        }
    }

    /// Rings the nodes that have the opposite kind of endpoint on the topic.
    fn ring_counterparts(&self, entry: Entry) {
        let others = self.index.get(&entry.topic_hash).into_iter().flatten();
        let nodes: BTreeSet<u64> = others
            .filter(|e| e.kind != entry.kind)
            .map(|e| incarnation_of(e.id))
            .filter(|id| *id != self.own.incarnation())
            .collect();
        for node in nodes {
            if let Some(peer) = self.registry.peer(node) {
                self.own.ring(peer.node.folder());
            }
        }
    }

    fn apply_changes(&mut self, changes: Changes) -> Vec<Notice> {
        self.ended |= changes.ended;
        if changes.ended {
            self.observers.ring_endpoints();
        }
        let mut notices = Vec::new();
        let mut topics = std::mem::take(&mut self.pending);
        self.has_shortage = false;
        for (id, meta, departure) in changes.departed {
            let died = departure == Departure::Died;
            self.endpoints_departed(id, died);
            self.reindex(id, Arc::default(), &mut topics);
            self.end_matches_with(id, died, &mut notices);
            notices.push(Notice::Node(NodeEvent::gone(meta.name, departure)));
        }
        for (meta, departure) in changes.unseen {
            notices.push(Notice::Node(NodeEvent::Joined(meta.name.clone())));
            notices.push(Notice::Node(NodeEvent::gone(meta.name, departure)));
        }
        for id in changes.joined {
            if let Some(peer) = self.registry.peer(id) {
                notices.push(Notice::Node(NodeEvent::Joined(peer.node.meta().name.clone())));
            }
        }
        for id in changes.changed {
            let entries = self.registry.peer(id).map(|p| p.node.shared_entries());
            self.update_watching_peer(id);
            self.reindex(id, entries.unwrap_or_default(), &mut topics);
        }
        self.retry_unread();
        for topic in topics {
            self.match_topic(topic, &mut notices);
        }
        self.notify_watchers(&mut notices);
        notices
    }

    /// Updates the index with one node's entries; adds the topics that differ to `touched`.
    fn reindex(&mut self, node: u64, entries: Arc<[Entry]>, touched: &mut BTreeSet<u64>) {
        let now: BTreeSet<Entry> = entries.iter().copied().collect();
        let before = self.indexed.remove(&node).unwrap_or_default();
        let before: BTreeSet<Entry> = before.iter().copied().collect();
        let stay: BTreeSet<_> = now.iter().map(|entry| (entry.id, entry.kind)).collect();
        for gone in before.difference(&now) {
            touched.insert(gone.topic_hash);
            self.unindex(gone);
            if !stay.contains(&(gone.id, gone.kind)) {
                self.endpoint_removed(gone);
            }
        }
        for new in now.difference(&before) {
            touched.insert(new.topic_hash);
            self.index.entry(new.topic_hash).or_default().insert(*new);
            self.endpoint_added(*new);
        }
        if !entries.is_empty() {
            self.indexed.insert(node, entries);
        }
    }

    fn match_topic(&mut self, topic: u64, notices: &mut Vec<Notice>) {
        self.update_traces(topic);
        let entries: Vec<Entry> = self.index.get(&topic).into_iter().flatten().copied().collect();
        self.drop_withdrawn(&entries, notices);
        let own = |entry: &&Entry| incarnation_of(entry.id) == self.own.incarnation();
        let kind = |kind| move |entry: &&Entry| entry.kind == kind;
        let pubs: Vec<Entry> =
            entries.iter().filter(kind(EndpointKind::Publisher)).copied().collect();
        let subs: Vec<Entry> =
            entries.iter().filter(kind(EndpointKind::Subscription)).copied().collect();
        let own_pubs: Vec<u64> = pubs.iter().filter(own).map(|e| e.id).collect();
        let own_subs: Vec<u64> = subs.iter().filter(own).map(|e| e.id).collect();
        for sub in own_subs {
            for publisher in &pubs {
                self.match_publisher(sub, publisher, notices);
            }
        }
        for publisher in own_pubs {
            for sub in &subs {
                self.match_subscription(publisher, sub, notices);
            }
        }
    }

    /// Our subscription meets a publisher: checks it once, then binds a page to it.
    fn match_publisher(&mut self, sub: u64, entry: &Entry, notices: &mut Vec<Notice>) {
        let known = self
            .subscriptions
            .get(&sub)
            .is_none_or(|s| s.known.contains_key(&entry.id) || !s.meta.may_follow(entry.id));
        let Some(peer_location) = self.location_of(entry.id).filter(|_| !known) else { return };
        let path = entry.path(&peer_location.folder);
        // A missing file belonged to a publisher that is leaving; its entry follows. Retried at the next
        // refresh, in case the cause was a lack of file descriptors.
        let opened = PeerPublisher::open(&path, entry.id).and_then(|peer| {
            let types =
                self.load_types(entry.id, &peer_location.folder, &peer.meta.type_desc, sub)?;
            self.bells_of(entry.id).map(|bells| (peer, types, bells))
        });
        let (peer, (theirs, ours), bells) = match opened {
            Ok(all) => all,
            Err(error) => {
                self.pending.insert(entry.topic_hash);
                if is_transient(&error) {
                    self.cannot_follow(sub, entry, error, notices);
                }
                return;
            }
        };
        let us = self.own.name().to_string();
        let own_folder = self.own.folder() == peer_location.folder;
        let Some(subscription) = self.subscriptions.get_mut(&sub) else { return };
        if peer.meta.topic != subscription.meta.topic {
            return;
        }
        let visible_node = visible_node(&peer.meta.proxy, &peer_location.node);
        let info = PeerInfo { id: entry.id, node: visible_node.clone() };
        let ours = (&subscription.meta, &ours);
        let began = Instant::now();
        let fits = check_compatible((&peer.meta, &theirs), ours, &visible_node, &us);
        self.type_check_budget.add(entry.id, began.elapsed());
        let fits =
            fits.and_then(|()| check_same_lane(subscription.lane, &peer.meta, &visible_node, &us));
        if subscription.meta.is_passive() {
            return self.match_passive(sub, entry, (info, &peer_location), fits, notices);
        }
        let fits = fits.and_then(|()| {
            let location = PublisherLocation {
                node: visible_node.clone(),
                folder: peer_location.folder.clone(),
                path: path.clone(),
                bells,
            };
            let watched = subscription.open_watch(&peer)?;
            Ok((subscription.bind(&peer, location, entry.id)?, watched))
        });
        if let Err(error) = fits.as_ref()
            && is_transient(error)
        {
            let error = error.clone();
            self.cannot_follow(sub, entry, error, notices);
            return;
        }
        subscription.shortage_reported.remove(&entry.id);
        subscription.known.insert(entry.id, fits.is_ok().then(|| visible_node.clone()));
        let match_callbacks = subscription.state.match_callbacks.clone();
        match fits {
            Ok((reader, watched)) => {
                subscription.lane = Some(peer.meta.qos.lane);
                subscription.state.set_lane(peer.meta.qos.lane);
                subscription.note_proxy(entry.id, &peer.meta.proxy, notices);
                subscription.state.update_inbox(|inbox| inbox.add(reader));
                push_notice(notices, match_callbacks, MatchEvent::Matched(info.clone()));
                self.watch_peer(sub, entry.id, watched);
                if let Some(subscription) = self.subscriptions.get(&sub) {
                    subscription.notify_liveliness(info, true, notices);
                }
            }
            Err(error) => {
                subscription.state.push_refusal(error.clone());
                push_notice(notices, match_callbacks, MatchEvent::Incompatible(error));
            }
        }
        // Also if it is incompatible: both sides are notified.
        if !own_folder {
            self.own.ring(&peer_location.folder);
        }
    }

    /// Our publisher meets a subscription: checks it once, then admits the page bound to us.
    fn match_subscription(&mut self, publisher: u64, entry: &Entry, notices: &mut Vec<Notice>) {
        let Some(peer_location) = self.location_of(entry.id) else { return };
        let us = self.own.name().to_string();
        let Some(own) = self.publishers.get(&publisher) else { return };
        let is_new = !own.known.contains_key(&entry.id);
        if is_new {
            let path = entry.path(&peer_location.folder);
            let opened = PeerSubscription::open(&path, entry.id).and_then(|peer| {
                let desc = &peer.meta.type_desc;
                let types = self.load_types(entry.id, &peer_location.folder, desc, publisher)?;
                Ok((peer, types))
            });
            let (peer, (theirs, ours)) = match opened {
                Ok(both) => both,
                Err(error) => {
                    self.pending.insert(entry.topic_hash);
                    self.cannot_serve(publisher, entry.id, error, notices);
                    return;
                }
            };
            let Some(own) = self.publishers.get_mut(&publisher) else { return };
            if peer.meta.topic != own.meta.topic {
                return;
            }
            if !peer.meta.may_follow(publisher) {
                own.known.insert(entry.id, MatchState::Rejected);
                return;
            }
            let ours = (&own.meta, &ours);
            let began = Instant::now();
            let fits = check_compatible(
                ours,
                (&peer.meta, &theirs),
                &us,
                &visible_node(&peer.meta.proxy, &peer_location.node),
            );
            self.type_check_budget.add(entry.id, began.elapsed());
            let verdict = match fits {
                Ok(()) => MatchState::Pending(peer),
                Err(error) => {
                    own.note_incompatible(&peer.meta, error, notices);
                    if self.own.folder() != peer_location.folder {
                        // Both sides must know, and the peer may have read its peers before we announced
                        // ourselves.
                        self.own.ring(&peer_location.folder);
                    }
                    MatchState::Rejected
                }
            };
            own.known.insert(entry.id, verdict);
        }
        let Some(own) = self.publishers.get_mut(&publisher) else { return };
        // An evicted reader may have asked again.
        let served = own.readers.serves(entry.id);
        let peer = match own.known.remove(&entry.id) {
            Some(MatchState::Admitted) if !served => {
                match PeerSubscription::open(&entry.path(&peer_location.folder), entry.id) {
                    Ok(peer) => peer,
                    Err(error) => {
                        own.known.insert(entry.id, MatchState::Admitted);
                        self.pending.insert(entry.topic_hash);
                        self.cannot_serve(publisher, entry.id, error, notices);
                        return;
                    }
                }
            }
            Some(MatchState::Pending(peer)) => peer,
            Some(other) => {
                own.known.insert(entry.id, other);
                own.note_endpoint_count(entry, notices);
                return;
            }
            None => return,
        };
        let bound = match peer.binding_to(publisher) {
            Ok(bound) => bound,
            Err(error) => return self.retry_later(publisher, entry, peer, error, notices),
        };
        if bound.as_ref().is_some_and(|bound| own.readers.was_evicted(entry.id, &bound.binding)) {
            // The peer rings after it has asked again.
            own.known.insert(entry.id, MatchState::Admitted);
            return;
        }
        let Some(mut bound) = bound else {
            if peer.meta.is_passive() {
                // The peer rings after it has bound a page.
                own.drop_reader(entry.id, false, notices);
                own.known.insert(entry.id, MatchState::Admitted);
            } else {
                own.known.insert(entry.id, MatchState::Pending(peer));
                self.pending.insert(entry.topic_hash);
            }
            if is_new && self.own.folder() != peer_location.folder {
                // The peer may have read its peers before we announced ourselves.
                self.own.ring(&peer_location.folder);
            }
            return;
        };
        let node = visible_node(&peer.meta.proxy, &peer_location.node);
        let Some(own) = self.publishers.get_mut(&publisher) else { return };
        if !own.admits(&PeerInfo { id: entry.id, node: node.clone() }, notices) {
            own.known.insert(entry.id, MatchState::Pending(peer));
            return;
        }
        bound.binding = limit_binding(&own.meta, &peer.meta, bound.binding);
        let bells = match self.bells_of(entry.id) {
            Ok(bells) => bells,
            Err(error) => return self.retry_later(publisher, entry, peer, error, notices),
        };
        let Some(own) = self.publishers.get_mut(&publisher) else { return };
        if peer.meta.proxy.is_some() && peer.meta.counts() {
            own.state.lock().endpoint_counts.insert(entry.id, entry.endpoint_count);
        }
        let info = PeerInfo { id: entry.id, node };
        match own.readers.admit(entry.id, &info.node, &peer.meta.topic, bound, bells) {
            Ok(_) => {
                own.shortage_reported.remove(&entry.id);
                own.known.insert(entry.id, MatchState::Admitted);
                if peer.meta.counts() {
                    own.note_match(info, notices);
                }
            }
            Err(error) => self.retry_later(publisher, entry, peer, error, notices),
        }
    }
}
