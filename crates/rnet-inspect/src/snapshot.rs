//! The result of one inspection of a domain, and values derived from it.

use std::collections::{BTreeMap, BTreeSet};

use rnet_core::Backlog;
use rnet_node::remote_nodes::NODES_TOPIC;
use rnet_shm::channel::publisher::PeerPublisher;

use serde::Serialize;

use super::{Domain, NodeInfo, NodeMeta, PublisherInfo, Snapshot, SubscriptionInfo};

/// A node of another host, as far as proxies represent its endpoints here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RemoteNode {
    /// Host and name: `@host/node`.
    pub node: String,
    /// Topics of its publishers that reach this host.
    pub publishes: Vec<String>,
    /// Topics of this host that it subscribes to.
    pub subscribes: Vec<String>,
}

impl Domain {
    /// The nodes of this host as of the last scan of any kind.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeMeta> {
        self.registry.iter().flat_map(|registry| registry.peers().values().map(|p| p.node.meta()))
    }
}

impl Snapshot {
    pub(super) fn sort(&mut self) {
        self.nodes.sort_by(|a, b| a.meta.name.cmp(&b.meta.name));
        for node in &mut self.nodes {
            node.publishes.sort_unstable();
            node.subscribes.sort_unstable();
        }
        self.publishers.sort_by(|a, b| (&a.topic, &a.node, a.id).cmp(&(&b.topic, &b.node, b.id)));
        let by_topic = |a: &SubscriptionInfo, b: &SubscriptionInfo| {
            (&a.topic, &a.node, a.id).cmp(&(&b.topic, &b.node, b.id))
        };
        self.subscriptions.sort_by(by_topic);
        self.forwarders.sort_by(by_topic);
    }

    /// Publishers do not count the subscriptions that forward their messages.
    pub(super) fn leave_out_forwarders(&mut self) {
        let ids: BTreeSet<u64> = self.forwarders.iter().map(|f| f.id).collect();
        for publisher in &mut self.publishers {
            let counts = publisher.admitted.iter().filter(|a| !ids.contains(&a.subscription));
            publisher.readers = counts.count() as u64;
        }
    }

    /// Makes the list of nodes of other hosts.
    pub(super) fn find_remote(&mut self) {
        let mut found: BTreeMap<&str, [BTreeSet<&str>; 2]> = BTreeMap::new();
        for p in self.publishers.iter().filter(|p| p.via.is_some()) {
            let topics = &mut found.entry(&p.node).or_default()[0];
            // It represents the node itself, which may have no other proxy.
            if p.topic != NODES_TOPIC {
                topics.insert(&p.topic);
            }
        }
        for s in self.subscriptions.iter().filter(|s| s.via.is_some()) {
            found.entry(&s.node).or_default()[1].insert(&s.topic);
        }
        let list = |topics: BTreeSet<&str>| topics.into_iter().map(str::to_owned).collect();
        let remote = found.into_iter().map(|(node, [publishes, subscribes])| RemoteNode {
            node: node.to_owned(),
            publishes: list(publishes),
            subscribes: list(subscribes),
        });
        self.remote = remote.collect();
        self.publishers.retain(|p| p.via.is_none() || p.topic != NODES_TOPIC);
    }

    /// Number of subscriptions of a topic, including those that proxies represent.
    pub fn subscription_count(&self, topic: &str) -> usize {
        let ends = self
            .subscriptions
            .iter()
            .filter(|s| s.topic == topic)
            .map(|s| s.endpoint_count as usize);
        ends.sum()
    }

    /// The node of this name, written with or without its leading `/`.
    pub fn node(&self, name: &str) -> Option<&NodeInfo> {
        let name = name.trim_start_matches('/');
        self.nodes.iter().find(|n| n.meta.name.trim_start_matches('/') == name)
    }

    /// Fills in how far each subscription is behind; needs both endpoints.
    pub(super) fn fill_behind(&mut self) {
        for subscription in self.subscriptions.iter_mut().chain(&mut self.forwarders) {
            for channel in &mut subscription.channels {
                let from = self.publishers.iter().find(|p| p.id == channel.publisher);
                channel.behind = from.map_or_else(Backlog::default, |p| {
                    behind_of(p, subscription.id, channel.cursor, channel.next_seq)
                });
            }
        }
    }

    /// All topics, sorted.
    pub fn topics(&self) -> Vec<&str> {
        let publishers = self.publishers.iter().map(|p| p.topic.as_str());
        let mut topics: Vec<&str> =
            publishers.chain(self.subscriptions.iter().map(|s| s.topic.as_str())).collect();
        topics.sort_unstable();
        topics.dedup();
        topics
    }
}

/// How far a subscription is behind a publisher. One that has not read yet gets the messages sent since it
/// was admitted.
fn behind_of(p: &PublisherInfo, subscription: u64, cursor: u64, next_seq: u64) -> Backlog {
    let start = p.admitted.iter().find(|a| a.subscription == subscription).map(|a| a.start_seq);
    let Some(next) = start.max((next_seq > 0).then_some(next_seq)) else {
        return Backlog::default();
    };
    let messages = p.sent.saturating_sub(next);
    let age_ns = if messages == 0 { 0 } else { age_of(p, cursor, next).unwrap_or(0) };
    Backlog { messages, age_ns }
}

/// Age of the oldest message in the log with number `next` or higher. `None` if that cannot be read.
fn age_of(p: &PublisherInfo, cursor: u64, next: u64) -> Option<u64> {
    let map = PeerPublisher::open(&p.path, p.id).and_then(|peer| peer.map()).ok()?;
    Some(map.behind(cursor, next).age_ns)
}
