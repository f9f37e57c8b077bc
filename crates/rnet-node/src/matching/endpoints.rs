//! The endpoints of the domain, for those who watch them come and go.
//!
//! A node that watches says so in its header, and nodes ring it after each change of their lists. Its
//! control thread then reads the lists as for matching, and here the description of each new entry.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rnet_core::{Error, Result, TopicName};
use rnet_shm::channel::publisher::PeerPublisher;
use rnet_shm::channel::subscription::PeerSubscription;
use rnet_shm::domain::node::{EndpointKind, Entry, incarnation_of};
use rnet_shm::os::clock;
use rnet_shm::os::shortage::is_transient;

use super::Matching;
use super::own::endpoints_of_node;
use super::proxies::visible_node;
use crate::endpoints::{Endpoint, EndpointEvent, EndpointQos, EndpointWatcher};
use crate::match_event::Notice;
use crate::remote_nodes::{NODES_TOPIC, ProxyEnd, RemoteNodes};

/// Who watches, and what they were told.
#[derive(Default)]
pub struct EndpointTracker {
    watchers: Vec<Arc<EndpointWatcher>>,
    /// Those that the watchers were told of, by id.
    announced: BTreeMap<u64, Arc<Endpoint>>,
    /// Those whose description could not be read, and may be with the next look; by id.
    unread: BTreeMap<u64, Entry>,
    /// Peers that watch.
    watching_peers: BTreeSet<u64>,
    /// Whether our own list has changed since they were rung.
    own_changed: bool,
    /// Nodes of other hosts, of which our user is told; the hash of their topic, while he is.
    remote: RemoteNodes,
    nodes_topic: Option<u64>,
}

impl EndpointTracker {
    fn push(&self, event: EndpointEvent) {
        // What stands for a node is nobody's endpoint.
        if is_node(event.endpoint()) {
            return;
        }
        self.watchers.iter().for_each(|watcher| watcher.push(event.clone()));
    }

    /// Whether somebody is told of this endpoint.
    fn is_watched(&self, topic_hash: u64) -> bool {
        !self.watchers.is_empty() || self.nodes_topic == Some(topic_hash)
    }

    /// Whether endpoints of other nodes are looked at without a watcher.
    fn is_watching(&self) -> bool {
        !self.watchers.is_empty() || self.nodes_topic.is_some()
    }

    /// It is told of by `event`, and, if it stands for a node, that this one has ended so.
    fn remove(&mut self, endpoint: Arc<Endpoint>, lost: bool, end: ProxyEnd) {
        if is_node(&endpoint) {
            self.remote.remove_proxy(endpoint.id, &endpoint.node, end, clock::now_ns());
        }
        self.push(if lost { EndpointEvent::Lost } else { EndpointEvent::Closed }(endpoint));
    }
}

/// Whether it stands for a node of another host.
fn is_node(endpoint: &Endpoint) -> bool {
    endpoint.topic == NODES_TOPIC
        && endpoint.proxy.is_some()
        && matches!(endpoint.qos, EndpointQos::Publisher(_))
}

impl Matching {
    /// Tells of nodes of other hosts from now on, of those that are there already only when they go.
    ///
    /// # Errors
    /// As [`Matching::watch_endpoints`].
    pub fn watch_remote_nodes(&mut self) -> Result<Vec<Notice>> {
        if self.endpoints.nodes_topic.is_some() {
            return Ok(Vec::new());
        }
        let hash = TopicName::new(NODES_TOPIC)?.hash();
        self.start_watching()?;
        self.endpoints.nodes_topic = Some(hash);
        let known: Vec<Entry> = self.index.get(&hash).into_iter().flatten().copied().collect();
        known.into_iter().for_each(|entry| self.endpoint_added(entry));
        // Nobody rang us before. Who is there already has not joined now.
        let mut notices = self.refresh_lists();
        notices.retain(|notice| !matches!(notice, Notice::Node(event) if event.is_remote()));
        self.endpoints.remote.take_events();
        Ok(notices)
    }

    /// Others ring us from now on when their lists change.
    fn start_watching(&mut self) -> Result<()> {
        if !self.endpoints.is_watching() {
            // Before the lists are read: who changes its own afterwards sees that we watch.
            self.own.set_watching(true)?;
            self.greet();
        }
        Ok(())
    }

    /// Gives up nodes of other hosts whose link has had no successor.
    pub fn expire_remote_nodes(&mut self, now_ns: u64, notices: &mut Vec<Notice>) {
        self.endpoints.remote.expire(now_ns);
        self.notify_remote_nodes(notices);
    }

    fn notify_remote_nodes(&mut self, notices: &mut Vec<Notice>) {
        let events = self.endpoints.remote.take_events();
        if self.endpoints.nodes_topic.is_some() {
            notices.extend(events.into_iter().map(Notice::Node));
        }
        if let Some(due_ns) = self.endpoints.remote.due_ns() {
            self.next_check.schedule(due_ns);
        }
    }

    /// Tells a watcher of all endpoints; call [`Matching::refresh`] afterwards, which also has it called.
    ///
    /// # Errors
    /// `Io`, `OutOfMemory` if the node cannot say that it watches.
    pub fn watch_endpoints(&mut self, watcher: &Arc<EndpointWatcher>) -> Result<()> {
        for endpoint in self.endpoints.announced.values().filter(|endpoint| !is_node(endpoint)) {
            watcher.push(EndpointEvent::Opened(endpoint.clone()));
        }
        let first = self.endpoints.watchers.is_empty();
        self.start_watching()?;
        self.endpoints.watchers.push(watcher.clone());
        if first {
            let entries: Vec<Entry> = self.index.values().flatten().copied().collect();
            entries.into_iter().for_each(|entry| self.endpoint_added(entry));
        }
        Ok(())
    }

    /// Tells a watcher of nothing more.
    pub fn unwatch_endpoints(&mut self, watcher: &Arc<EndpointWatcher>) {
        self.endpoints.watchers.retain(|other| !Arc::ptr_eq(other, watcher));
        if self.endpoints.watchers.is_empty() {
            let nodes = self.endpoints.nodes_topic;
            self.endpoints.announced.retain(|_, endpoint| nodes.is_some() && is_node(endpoint));
            self.endpoints.unread.retain(|_, entry| nodes == Some(entry.topic_hash));
            if nodes.is_none() {
                self.endpoints.remote = RemoteNodes::default();
                // Failing to write costs rings that find nothing.
                let _ = self.own.set_watching(false);
            }
        }
    }

    /// Notes that our own list has changed: the next refresh rings who watches.
    pub fn note_own_change(&mut self) {
        self.endpoints.own_changed = true;
    }

    /// There is an entry that was not there before.
    pub fn endpoint_added(&mut self, entry: Entry) {
        if !self.endpoints.is_watched(entry.topic_hash) {
            return;
        }
        self.endpoints.unread.remove(&entry.id);
        if let Some(told) = self.endpoints.announced.get_mut(&entry.id) {
            if told.proxy.is_some() && told.endpoint_count != entry.endpoint_count {
                let changed =
                    Arc::new(Endpoint { endpoint_count: entry.endpoint_count, ..(**told).clone() });
                *told = changed.clone();
                self.endpoints.push(EndpointEvent::Changed(changed));
            }
            return;
        }
        match self.describe(&entry) {
            // What forwards messages between hosts is no subscription of anybody.
            Ok(None) => {}
            Ok(Some(endpoint)) => {
                let endpoint = Arc::new(endpoint);
                if is_node(&endpoint) {
                    self.endpoints.remote.add_proxy(endpoint.id, &endpoint.node);
                }
                self.endpoints.push(EndpointEvent::Opened(endpoint.clone()));
                self.endpoints.announced.insert(entry.id, endpoint);
            }
            // What contradicts itself is nobody's endpoint.
            Err(Error::Corrupt { .. } | Error::BadName { .. } | Error::LayoutVersion { .. }) => {}
            // Closed again, or there is no file descriptor for it.
            Err(error) => {
                self.has_shortage |= is_transient(&error);
                self.endpoints.unread.insert(entry.id, entry);
            }
        }
    }

    /// What the files of an endpoint say of it.
    fn describe(&self, entry: &Entry) -> Result<Option<Endpoint>> {
        let closed = || Error::closed("the peer");
        let peer_location = self.location_of(entry.id).ok_or_else(closed)?;
        let (id, path) = (entry.id, entry.path(&peer_location.folder));
        let mut last_will = false;
        let (topic, type_desc, qos, proxy) = match entry.kind {
            EndpointKind::Publisher => {
                let meta = PeerPublisher::open(&path, id)?.meta;
                last_will = meta.will;
                (meta.topic, meta.type_desc, EndpointQos::Publisher(meta.qos), meta.proxy)
            }
            EndpointKind::Subscription => {
                let meta = PeerSubscription::open(&path, id)?.meta;
                if !meta.counts() {
                    return Ok(None);
                }
                (meta.topic, meta.type_desc, EndpointQos::Subscriber(meta.qos), meta.proxy)
            }
        };
        if TopicName::new(&topic)?.hash() != entry.topic_hash {
            let what = "its entry and its file name different topics".to_owned();
            return Err(Error::Corrupt { topic, publisher_node: peer_location.node, what });
        }
        let (node, folder) = (visible_node(&proxy, &peer_location.node), peer_location.folder);
        let endpoint_count = if proxy.is_some() { entry.endpoint_count } else { 1 };
        Ok(Some(Endpoint {
            id,
            topic,
            node,
            type_desc,
            qos,
            proxy,
            endpoint_count,
            last_will,
            folder,
        }))
    }

    /// An entry is no longer there.
    pub fn endpoint_removed(&mut self, entry: &Entry) {
        self.endpoints.unread.remove(&entry.id);
        if let Some(endpoint) = self.endpoints.announced.remove(&entry.id) {
            let lost = self.was_lost(entry.id);
            self.endpoints.remove(
                endpoint,
                lost,
                if lost { ProxyEnd::Died } else { ProxyEnd::Left },
            );
        }
    }

    /// A node is gone, and with it what it had.
    pub fn endpoints_departed(&mut self, node: u64, died: bool) {
        for id in endpoints_of_node(node, self.endpoints.announced.keys()) {
            if let Some(endpoint) = self.endpoints.announced.remove(&id) {
                self.endpoints.remove(endpoint, died, ProxyEnd::LinkDied);
            }
        }
        self.endpoints.unread.retain(|id, _| incarnation_of(*id) != node);
        self.endpoints.watching_peers.remove(&node);
    }

    /// Notes whether a peer whose list has changed watches.
    pub fn update_watching_peer(&mut self, node: u64) {
        let Some(peer) = self.registry.peer(node) else { return };
        if !peer.node.is_watching() {
            self.endpoints.watching_peers.remove(&node);
        } else if self.endpoints.watching_peers.insert(node) {
            // Our list may have changed after it was read there, and before we knew.
            self.own.ring(peer.node.folder());
        }
    }

    /// Reads again what could not be read.
    pub fn retry_unread(&mut self) {
        let unread = std::mem::take(&mut self.endpoints.unread);
        unread.into_values().for_each(|entry| self.endpoint_added(entry));
    }

    /// Rings who watches if our own list has changed, and has our own watchers called.
    pub fn notify_watchers(&mut self, notices: &mut Vec<Notice>) {
        self.notify_remote_nodes(notices);
        if std::mem::take(&mut self.endpoints.own_changed) {
            for peer in
                self.endpoints.watching_peers.iter().filter_map(|id| self.registry.peer(*id))
            {
                self.own.ring(peer.node.folder());
            }
        }
        for watcher in self.endpoints.watchers.iter().filter(|watcher| watcher.schedule()) {
            let watcher = watcher.clone();
            notices.push(Notice::Call(Box::new(move || watcher.run())));
        }
    }
}
