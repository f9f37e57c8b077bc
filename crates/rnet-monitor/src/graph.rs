//! The graph of a domain: nodes by host, and topics with their publishers and subscribers.

mod dot;
mod mermaid;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use rnet::Lane;
use rnet::inspect::{PublisherInfo, Snapshot, SubscriptionInfo, is_internal};
use serde::Serialize;

use crate::link::host_of;
use crate::{type_name, type_names};
use rnet_format::units;

/// What is published and subscribed to, by whom.
pub struct NodeGraph<'a> {
    /// The own host first, the others by name.
    pub hosts: Vec<Host<'a>>,
    /// The topics by name.
    pub topics: Vec<Topic<'a>>,
}

/// A host and its nodes, as they are shown: `/arm`, or `@robot2/arm` if they are of another host.
#[derive(Debug, Serialize)]
pub struct Host<'a> {
    /// Its name.
    pub host: &'a str,
    /// Names of its nodes.
    pub nodes: Vec<&'a str>,
}

/// A topic of the graph.
#[derive(Debug, Serialize)]
pub struct Topic<'a> {
    /// Its name.
    pub topic: &'a str,
    /// More than one if its ends do not agree.
    pub types: Vec<&'a str>,
    /// The lane of its publishers. `None` without any.
    pub lane: Option<Lane>,
    /// Of all its publishers. `None` if no rates were measured.
    pub rate: Option<Rate>,
    /// Nodes that publish it.
    pub publishers: Vec<Source<'a>>,
    /// Nodes that subscribe to it.
    pub subscribers: Vec<Sink<'a>>,
}

/// A node that publishes a topic.
#[derive(Debug, Serialize)]
pub struct Source<'a> {
    /// Its name.
    pub node: &'a str,
    /// What it publishes there; `None` if no rates were measured.
    pub rate: Option<Rate>,
}

/// A node that subscribes to a topic.
#[derive(Debug, Serialize)]
pub struct Sink<'a> {
    /// Its name.
    pub node: &'a str,
    /// Messages that its subscriptions have lost so far.
    pub lost: u64,
    /// Why a subscription of the node and a publisher do not match, in words.
    pub problem: Option<String>,
}

/// What a node or all nodes publish on a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rate {
    /// Messages per second.
    pub rate_hz: f64,
    /// Payload bytes per second.
    pub bytes_per_s: f64,
}

impl<'a> NodeGraph<'a> {
    /// What there is in `snapshot`, whose own host is `own`. Rates are of the time since an earlier snapshot, with
    /// the seconds between the two.
    pub fn new(
        snapshot: &'a Snapshot,
        own: &'a str,
        since: Option<(&Snapshot, f64)>,
        all: bool,
    ) -> NodeGraph<'a> {
        let shown = |topic: &&str| all || !is_internal(topic);
        let topics: Vec<Topic<'a>> = snapshot
            .topics()
            .into_iter()
            .filter(shown)
            .map(|topic| topic_of(snapshot, topic, since))
            .collect();
        let mut hosts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let local = snapshot.nodes.iter().map(|node| node.meta.name.as_str());
        for node in local.chain(snapshot.remote.iter().map(|node| node.node.as_str())) {
            hosts.entry(host_of(node).0.unwrap_or(own)).or_default().insert(node);
        }
        // A node with nothing but topics of robot-net, such as this command's, is no part of the robot.
        let ends = topics.iter().flat_map(Topic::nodes).collect::<BTreeSet<&str>>();
        let hosts = hosts.into_iter().map(|(host, nodes)| {
            let nodes = nodes.into_iter().filter(|node| all || ends.contains(node));
            Host { host, nodes: nodes.collect() }
        });
        let mut hosts: Vec<Host<'a>> = hosts.filter(|host| !host.nodes.is_empty()).collect();
        hosts.sort_by_key(|host| host.host != own);
        NodeGraph { hosts, topics }
    }

    /// Whether it has no topics.
    pub fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }

    /// The graph as indented lines.
    pub fn to_text(&self) -> String {
        text::draw(self)
    }

    /// The graph in the language of Graphviz.
    pub fn to_dot(&self) -> String {
        dot::draw(self)
    }

    /// The graph as a flowchart of Mermaid.
    pub fn to_mermaid(&self) -> String {
        mermaid::draw(self)
    }
}

impl<'a> Topic<'a> {
    fn nodes(&self) -> impl Iterator<Item = &'a str> {
        let sources = self.publishers.iter().map(|source| source.node);
        sources.chain(self.subscribers.iter().map(|sink| sink.node))
    }

    fn is_urgent(&self) -> bool {
        self.lane == Some(Lane::Urgent)
    }

    /// What stands beside its name: type, lane and rate.
    fn details(&self) -> Vec<String> {
        let lane = self.is_urgent().then(|| "urgent".to_owned());
        let types = Some(self.types.join(", ")).filter(|types| !types.is_empty());
        types.into_iter().chain(lane).chain(self.rate.map(Rate::text)).collect()
    }
}

impl Rate {
    fn sum(rates: impl Iterator<Item = Option<Rate>>) -> Option<Rate> {
        let add = |a: Rate, b: Rate| Rate {
            rate_hz: a.rate_hz + b.rate_hz,
            bytes_per_s: a.bytes_per_s + b.bytes_per_s,
        };
        // Without a publisher there is no rate, which is not the same as none measured.
        rates.collect::<Option<Vec<Rate>>>().map(|all| all.into_iter().fold(Rate::default(), add))
    }

    /// `30.0 Hz 27.6 MB/s`.
    fn text(self) -> String {
        match self.rate_hz {
            0.0 => "silent".to_owned(),
            hz => format!("{hz:.1} Hz {}/s", units::bytes(self.bytes_per_s)),
        }
    }
}

fn topic_of<'a>(
    snapshot: &'a Snapshot,
    topic: &'a str,
    since: Option<(&Snapshot, f64)>,
) -> Topic<'a> {
    let publishers = || snapshot.publishers.iter().filter(|p| p.topic == topic);
    let mut sources: BTreeMap<&str, Vec<&PublisherInfo>> = BTreeMap::new();
    for publisher in publishers() {
        sources.entry(&publisher.node).or_default().push(publisher);
    }
    let sources = sources.into_iter().map(|(node, all)| Source {
        node,
        rate: since.and_then(|(earlier, elapsed_s)| {
            Rate::sum(all.iter().map(|publisher| Some(rate_of(publisher, earlier, elapsed_s))))
        }),
    });
    let sources: Vec<Source<'a>> = sources.collect();
    let mut sinks: BTreeMap<&str, Sink<'a>> = BTreeMap::new();
    for subscription in snapshot.subscriptions.iter().filter(|s| s.topic == topic) {
        let node: &str = &subscription.node;
        let sink = sinks.entry(node).or_insert(Sink { node, lost: 0, problem: None });
        sink.lost += lost(subscription);
        sink.problem = sink.problem.take().or_else(|| problem(snapshot, subscription));
    }
    Topic {
        topic,
        types: type_names(snapshot, topic),
        lane: publishers().map(|p| p.qos.lane).next(),
        rate: since.and_then(|_| Rate::sum(sources.iter().map(|source| source.rate))),
        publishers: sources,
        subscribers: sinks.into_values().collect(),
    }
}

/// A publisher that is new since the earlier snapshot has sent all that it has sent since.
fn rate_of(publisher: &PublisherInfo, earlier: &Snapshot, elapsed_s: f64) -> Rate {
    let before = earlier.publishers.iter().find(|p| p.id == publisher.id);
    let grown = |now: u64, then: u64| now.saturating_sub(then) as f64 / elapsed_s;
    Rate {
        rate_hz: grown(publisher.sent, before.map_or(0, |p| p.sent)),
        bytes_per_s: grown(publisher.bytes, before.map_or(0, |p| p.bytes)),
    }
}

fn lost(subscription: &SubscriptionInfo) -> u64 {
    let channels = subscription.channels.iter().chain(&subscription.past);
    channels.map(|channel| channel.lost.total()).sum()
}

fn problem(snapshot: &Snapshot, subscription: &SubscriptionInfo) -> Option<String> {
    let mut pairs = snapshot.pairs().filter(|pair| pair.subscription.id == subscription.id);
    pairs.find_map(|pair| {
        let mismatch = || {
            pair.type_mismatch().map(|_| {
                let (offered, asked) = (&pair.publisher.type_desc, &subscription.type_desc);
                format!("type {} is not {}", type_name(offered), type_name(asked))
            })
        };
        pair.qos_mismatch().or_else(mismatch)
    })
}
