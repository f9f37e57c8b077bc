//! Figures of nodes, topics and other hosts between two snapshots of a domain.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rnet::inspect::{
    ChannelInfo, Domain, NodeInfo, PublisherInfo, Snapshot, SubscriptionInfo, is_internal,
};
use rnet::msgs::link_status::{Cause, Direction, Lost, Peer, State, Topic};
use rnet::msgs::{LinkStatus, duration_to_ns};
use rnet::{Backlog, Lane, LossCounts, quantile};
use rnet_launch::{Record, RunFolder};
use serde::Serialize;

use crate::link::{self, host_of};
use crate::process::Process;
use crate::qos;
use crate::recorders::{self, Recorder};
use crate::topics::type_names;

/// The language value of nodes that only observe others.
const TOOL: &str = "tool";

/// The state of a domain at one moment.
#[derive(Debug)]
pub struct DomainSnapshot {
    taken: ReadInterval,
    /// The domain's directory, if no node has joined the domain yet.
    pub(crate) missing_dir: Option<PathBuf>,
    /// Its nodes and endpoints.
    pub snapshot: Snapshot,
    /// The last status of the link to other hosts, if one runs.
    pub link: Option<LinkStatus>,
    /// The process of the link, if it was killed and nodes run without a successor.
    pub killed_link: Option<u32>,
    /// The name of this host.
    pub own_host: String,
    /// The status of the domain's recorders.
    pub recorders: Vec<Recorder>,
    processes: BTreeMap<u32, Process>,
    /// The launcher's records of its nodes.
    pub launched: Vec<Record>,
}

impl DomainSnapshot {
    /// Reads the current state: the domain, the processes of its nodes, the launcher's records, and the
    /// link's status.
    ///
    /// # Errors
    /// As [`Domain::snapshot`].
    pub fn new(domain: &mut Domain) -> rnet::Result<DomainSnapshot> {
        let from = Instant::now();
        let snapshot = domain.snapshot()?;
        let taken = ReadInterval { from, to: Instant::now() };
        let folder = RunFolder::of_domain(domain.path(), &|name| std::env::var_os(name));
        // Without a folder for records, no node was launched.
        let launched = folder.map(|folder| Record::all(&folder)).unwrap_or_default();
        let here = snapshot.nodes.iter().filter(|node| node.meta.is_in_our_pid_namespace());
        let pids = here.map(|node| node.meta.pid);
        let processes = pids.filter_map(|pid| Some((pid, Process::read(pid)?))).collect();
        let link = link::last_status(&snapshot);
        let own_host = link::own_host_of(link.as_ref());
        let runs = snapshot.nodes.iter().any(|node| node.meta.language != "tool");
        let killed_link = domain.killed_link().filter(|_| runs && link.is_none());
        let recorders = recorders::read_recorders(domain.path());
        let missing_dir = (!domain.exists()).then(|| domain.path().to_owned());
        Ok(DomainSnapshot {
            taken,
            missing_dir,
            snapshot,
            link,
            killed_link,
            own_host,
            recorders,
            processes,
            launched,
        })
    }

    /// Whether anyone has joined the domain.
    pub fn domain_exists(&self) -> bool {
        self.missing_dir.is_none()
    }

    /// How often `rnet launch` has restarted this process; `None` if it was not launched.
    fn restarts_of(&self, pid: u32) -> Option<u32> {
        let runs = |record: &&Record| {
            let main = record.main.as_ref().filter(|_| record.end.is_none());
            main.is_some_and(|main| u32::try_from(main.pid) == Ok(pid))
        };
        self.launched.iter().find(runs).map(|record| record.restarts)
    }
}

/// The time interval in which the counters of a snapshot were read.
#[derive(Clone, Copy, Debug)]
struct ReadInterval {
    from: Instant,
    to: Instant,
}

impl ReadInterval {
    /// The time between the reads of two snapshots. On a busy machine a snapshot may take longer than the
    /// interval to the next one; the longer estimate is used, so that a delay never inflates a rate.
    fn since(self, before: ReadInterval) -> Duration {
        let (from, to) = (self.from - before.from, self.to - before.to);
        from.max(to)
    }
}

/// Figures of the interval between two snapshots.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Seconds between the two snapshots.
    pub interval_s: f64,
    /// The nodes, those of this host first.
    pub nodes: Vec<NodeRow>,
    /// The topics, by name.
    pub topics: Vec<TopicRow>,
    /// Other hosts known to the link.
    pub hosts: Vec<HostRow>,
    /// Warning if the link is neither encrypted nor authenticated.
    pub insecure: Option<&'static str>,
}

/// Another host, as the link sees it.
#[derive(Clone, Debug, Serialize)]
pub struct HostRow {
    /// Its name, or its address while the name is unknown.
    pub host: String,
    /// `connecting`, `connected`, `lost` or `refused`; `unknown` while the link hangs.
    pub state: &'static str,
    /// Round-trip time, in s.
    pub round_trip_s: Option<f64>,
    /// Offset of its monotonic clock relative to this host's, in s.
    pub clock_offset_s: Option<f64>,
    /// Uncertainty of the offset in either direction, in s.
    pub clock_offset_uncertainty_s: Option<f64>,
    /// Payload received from it in the last second, in bytes.
    pub in_bytes_per_s: f64,
    /// Payload sent to it in the last second, in bytes.
    pub out_bytes_per_s: f64,
    /// Messages lost in transit, so far.
    pub lost: u64,
    /// Topics whose messages wait for capacity of the network or the receiver.
    pub held_back: Vec<String>,
    /// Endpoints of it that its certificate did not allow, so far.
    pub refused_endpoints: u64,
    /// Time until its certificate expires, in s; negative if it has expired.
    pub certificate_expires_in_s: Option<i64>,
}

/// A node. For nodes of other hosts, only names and topics are known.
#[derive(Clone, Debug, Serialize)]
pub struct NodeRow {
    /// Its name; `@host/node` on another host.
    pub node: String,
    /// Its host.
    pub host: String,
    /// Its process id, on this host.
    pub pid: Option<u32>,
    /// `runs`, `stopped`, …; `-` if the process is not visible from here.
    pub state: &'static str,
    /// CPU cores used by its process: 1 is one core. Nodes of one process share the value.
    pub cpu: Option<f64>,
    /// Resident memory of its process in bytes, including shared pages.
    pub rss_bytes: Option<u64>,
    /// Uptime of its process, in s.
    pub uptime_s: Option<f64>,
    /// How often `rnet launch` has restarted its process; `None` if it was not launched.
    pub restarts: Option<u32>,
    /// Messages per second sent by its publishers.
    pub sent_hz: f64,
    /// Messages per second received by its subscriptions.
    pub received_hz: f64,
    /// Topics that it publishes.
    pub publishes: Vec<String>,
    /// Topics that it subscribes to.
    pub subscribes: Vec<String>,
    /// Whether it only observes others, as a command does.
    #[serde(skip)]
    pub is_tool: bool,
}

/// A topic.
#[derive(Clone, Debug, Serialize)]
pub struct TopicRow {
    /// Its name.
    pub topic: String,
    /// The types of its endpoints; more than one if they differ.
    pub types: Vec<String>,
    /// The lane of its first publisher.
    pub lane: Option<Lane>,
    /// Its publishers.
    pub publishers: Vec<Endpoint>,
    /// Its subscriptions.
    pub subscribers: Vec<Endpoint>,
    /// Messages per second of all publishers.
    pub rate_hz: f64,
    /// Payload bytes per second of all publishers.
    pub bytes_per_s: f64,
    /// Latency of the messages received in the interval.
    pub latency: Latency,
    /// Messages lost by all subscriptions so far.
    pub lost: LossCounts,
    /// Messages lost in the interval.
    pub lost_in_interval: u64,
    /// Deadline periods without a message in the interval, sent or received.
    pub missed_in_interval: u64,
    /// Messages that subscribers skipped by their settings in the interval.
    pub skipped_in_interval: u64,
    /// Backlog of the slowest subscription.
    pub behind: Backlog,
    /// Shared memory of its publishers: logs and pools.
    pub memory_bytes: u64,
}

/// A publisher or subscription of a topic.
#[derive(Clone, Debug, Serialize)]
pub struct Endpoint {
    /// Its node.
    pub node: String,
    /// Its quality of service, in words.
    pub qos: String,
    /// Messages per second, sent or received.
    pub rate_hz: f64,
    /// Messages lost so far; for a publisher, those that it knows to be missing.
    pub lost: LossCounts,
    /// Unread messages of a subscription, from all publishers.
    pub behind: Backlog,
}

/// Latency from the publisher's send to the subscriber's receive.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Latency {
    /// Median in ns. `None` if no messages were received.
    pub p50_ns: Option<u64>,
    /// 99th percentile, in ns.
    pub p99_ns: Option<u64>,
    /// Maximum in ns, with the precision of the buckets.
    pub max_ns: Option<u64>,
    /// Counts by bucket, with the bounds `rnet::bucket_low` and `rnet::bucket_high`.
    #[serde(skip)]
    pub counts: Vec<u64>,
}

impl Latency {
    fn new(counts: Vec<u64>) -> Latency {
        let at = |q| quantile(&counts, q);
        Latency { p50_ns: at(0.5), p99_ns: at(0.99), max_ns: at(1.0), counts }
    }
}

impl HostRow {
    fn new(peer: &Peer, link_hangs: bool) -> HostRow {
        let seconds = |duration: &Option<rnet::msgs::Duration>| {
            duration.as_ref().and_then(duration_to_ns).map(|ns| ns as f64 / 1e9)
        };
        let way = |direction| peer.topics.iter().filter(move |t| t.direction() == direction);
        let waits = |t: &&Topic| matches!(t.held_back(), Cause::Credit | Cause::Window);
        let lost = |lost: &Lost| [lost.link, lost.overrun, lost.restart, lost.detached];
        HostRow {
            host: if peer.host.is_empty() { &peer.address } else { &peer.host }.clone(),
            state: match peer.state() {
                _ if link_hangs => "unknown",
                State::Connecting | State::Unspecified => "connecting",
                State::Connected => "connected",
                State::Lost => "lost",
                State::Refused => "refused",
            },
            round_trip_s: seconds(&peer.round_trip),
            clock_offset_s: seconds(&peer.clock_offset),
            clock_offset_uncertainty_s: seconds(&peer.clock_offset_uncertainty),
            in_bytes_per_s: total(way(Direction::In).map(|t| t.bytes_per_s)),
            out_bytes_per_s: total(way(Direction::Out).map(|t| t.bytes_per_s)),
            lost: peer.topics.iter().filter_map(|t| t.lost.as_ref()).flat_map(lost).sum(),
            held_back: peer.topics.iter().filter(waits).map(|t| t.name.clone()).collect(),
            refused_endpoints: peer.refused_endpoints,
            certificate_expires_in_s: peer.certificate.as_ref().and_then(link::expires_in_s),
        }
    }
}

impl Figures {
    /// Figures between two snapshots, including topics and nodes of robot-net itself.
    pub fn new(before: &DomainSnapshot, now: &DomainSnapshot) -> Figures {
        let interval_s = now.taken.since(before.taken).as_secs_f64();
        let builder = FigureBuilder { before, now, interval_s };
        let topics = now.snapshot.topics().into_iter();
        let topics: Vec<TopicRow> = topics.map(|topic| builder.topic(topic)).collect();
        let nodes = now.snapshot.nodes.iter().map(|node| builder.node(node));
        let remote = now.snapshot.remote.iter().map(|node| builder.remote(&node.node));
        let host = |link: &LinkStatus| {
            let link_hangs = link::silence(link).is_some();
            link.peers.iter().map(|peer| HostRow::new(peer, link_hangs)).collect()
        };
        let hosts = now.link.as_ref().map(host).unwrap_or_default();
        let is_insecure = now.link.as_ref().is_some_and(|link| link.insecure);
        let insecure = is_insecure.then_some(link::INSECURE);
        Figures { interval_s, nodes: nodes.chain(remote).collect(), topics, hosts, insecure }
    }

    /// Removes topics and nodes of robot-net itself.
    #[must_use]
    pub fn without_internal(mut self) -> Figures {
        self.topics.retain(|topic| !is_internal(&topic.topic));
        self.nodes.retain(|node| !node.is_tool);
        for node in &mut self.nodes {
            node.publishes.retain(|topic| !is_internal(topic));
            node.subscribes.retain(|topic| !is_internal(topic));
        }
        self
    }
}

struct FigureBuilder<'a> {
    before: &'a DomainSnapshot,
    now: &'a DomainSnapshot,
    interval_s: f64,
}

impl FigureBuilder<'_> {
    fn per_s(&self, now: u64, before: u64) -> f64 {
        now.saturating_sub(before) as f64 / self.interval_s
    }

    fn publisher_before(&self, id: u64) -> Option<&PublisherInfo> {
        self.before.snapshot.publishers.iter().find(|p| p.id == id)
    }

    /// The totals of a subscription in the earlier snapshot.
    fn subscription_before(&self, id: u64) -> Option<&SubscriptionInfo> {
        self.before.snapshot.subscriptions.iter().find(|s| s.id == id)
    }

    fn received_hz(&self, s: &SubscriptionInfo) -> f64 {
        let before = self.subscription_before(s.id);
        self.per_s(sum(s, |c| c.received), before.map_or(0, |s| sum(s, |c| c.received)))
    }

    fn sent_hz(&self, p: &PublisherInfo) -> f64 {
        self.per_s(p.sent, self.publisher_before(p.id).map_or(0, |p| p.sent))
    }

    fn topic(&self, topic: &str) -> TopicRow {
        let publishers = || self.now.snapshot.publishers.iter().filter(|p| p.topic == topic);
        let subscriptions = || self.now.snapshot.subscriptions.iter().filter(|s| s.topic == topic);
        let mut lost = LossCounts::default();
        let (mut lost_in_interval, mut missed_in_interval, mut skipped_in_interval) = (0, 0, 0);
        let (mut behind, mut counts) = (Backlog::default(), Vec::new());
        for s in subscriptions() {
            let before = self.subscription_before(s.id);
            let grown = |of: fn(&ChannelInfo) -> u64| {
                sum(s, of).saturating_sub(before.map_or(0, |before| sum(before, of)))
            };
            lost.add(&lost_of(s));
            lost_in_interval += grown(|c| c.lost.total());
            missed_in_interval += grown(|c| c.deadline_missed);
            skipped_in_interval += grown(|c| c.skipped);
            let worst = s.channels.iter().map(|c| c.behind).max_by_key(|b| (b.age_ns, b.messages));
            behind = worst.into_iter().fold(behind, |a, b| {
                if (b.age_ns, b.messages) > (a.age_ns, a.messages) { b } else { a }
            });
            add_difference(
                &mut counts,
                &histogram(s),
                before.map(histogram).as_deref().unwrap_or(&[]),
            );
        }
        let bytes = |p: &PublisherInfo| {
            self.per_s(p.bytes, self.publisher_before(p.id).map_or(0, |p| p.bytes))
        };
        let missed = |p: &PublisherInfo| {
            let before = self.publisher_before(p.id).map_or(0, |p| p.deadline_missed);
            p.deadline_missed.saturating_sub(before)
        };
        missed_in_interval += publishers().map(missed).sum::<u64>();
        TopicRow {
            topic: topic.to_owned(),
            types: type_names(&self.now.snapshot, topic).into_iter().map(str::to_owned).collect(),
            lane: publishers().map(|p| p.qos.lane).next(),
            rate_hz: total(publishers().map(|p| self.sent_hz(p))),
            bytes_per_s: total(publishers().map(bytes)),
            memory_bytes: publishers().map(|p| p.memory_bytes).sum(),
            publishers: publishers().map(|p| self.publisher(p)).collect(),
            subscribers: subscriptions().map(|s| self.subscriber(s)).collect(),
            latency: Latency::new(counts),
            lost,
            lost_in_interval,
            missed_in_interval,
            skipped_in_interval,
            behind,
        }
    }

    fn publisher(&self, p: &PublisherInfo) -> Endpoint {
        Endpoint {
            node: p.node.clone(),
            qos: qos::of_publisher(&p.qos),
            rate_hz: self.sent_hz(p),
            lost: p.known_lost,
            behind: Backlog::default(),
        }
    }

    fn subscriber(&self, s: &SubscriptionInfo) -> Endpoint {
        let mut behind = Backlog::default();
        s.channels.iter().for_each(|c| behind.add(&c.behind));
        Endpoint {
            node: s.node.clone(),
            qos: qos::of_subscriber(&s.qos),
            rate_hz: self.received_hz(s),
            lost: lost_of(s),
            behind,
        }
    }

    fn node(&self, node: &NodeInfo) -> NodeRow {
        let meta = &node.meta;
        let process = self.now.processes.get(&meta.pid).filter(|_| meta.is_in_our_pid_namespace());
        let before = self.before.processes.get(&meta.pid);
        let cpu = process.zip(before).map(|(now, before)| (now.cpu_s - before.cpu_s).max(0.0));
        let uptime_ns = rnet::boot_ns().saturating_sub(meta.started_boot_ns);
        NodeRow {
            pid: Some(meta.pid),
            state: process.map_or("-", |process| process.state()),
            cpu: cpu.map(|cpu_s| cpu_s / self.interval_s),
            rss_bytes: process.map(|process| process.rss_bytes),
            uptime_s: Some(uptime_ns as f64 / 1e9),
            restarts: process.and_then(|_| self.now.restarts_of(meta.pid)),
            publishes: node.publishes.clone(),
            subscribes: node.subscribes.clone(),
            is_tool: meta.language == TOOL,
            ..self.empty_row(&meta.name, &self.now.own_host)
        }
    }

    fn remote(&self, name: &str) -> NodeRow {
        let found = self.now.snapshot.remote.iter().find(|node| node.node == name);
        let (publishes, subscribes) =
            found.map(|node| (node.publishes.clone(), node.subscribes.clone())).unwrap_or_default();
        NodeRow { publishes, subscribes, ..self.empty_row(name, host_of(name).0.unwrap_or("-")) }
    }

    fn empty_row(&self, name: &str, host: &str) -> NodeRow {
        let publishers = self.now.snapshot.publishers.iter().filter(|p| p.node == name);
        let subscriptions = self.now.snapshot.subscriptions.iter().filter(|s| s.node == name);
        NodeRow {
            node: name.to_owned(),
            host: host.to_owned(),
            pid: None,
            state: "-",
            cpu: None,
            rss_bytes: None,
            uptime_s: None,
            restarts: None,
            sent_hz: total(publishers.map(|p| self.sent_hz(p))),
            received_hz: total(subscriptions.map(|s| self.received_hz(s))),
            publishes: Vec::new(),
            subscribes: Vec::new(),
            is_tool: false,
        }
    }
}

/// Sum that is 0 without values: the standard library returns -0, which would be displayed.
fn total(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |a, b| a + b)
}

/// Sum over all channels of a subscription, including those of gone publishers.
fn sum(s: &SubscriptionInfo, of: impl Fn(&ChannelInfo) -> u64) -> u64 {
    s.channels.iter().chain(&s.past).map(of).fold(0, u64::saturating_add)
}

fn lost_of(s: &SubscriptionInfo) -> LossCounts {
    let mut lost = LossCounts::default();
    s.channels.iter().chain(&s.past).for_each(|c| lost.add(&c.lost));
    lost
}

fn histogram(s: &SubscriptionInfo) -> Vec<u64> {
    let mut counts = Vec::new();
    s.channels.iter().chain(&s.past).for_each(|c| add_difference(&mut counts, &c.latency, &[]));
    counts
}

/// Adds to each bucket the increase from `before` to `now`.
pub(crate) fn add_difference(counts: &mut Vec<u64>, now: &[u64], before: &[u64]) {
    counts.resize(counts.len().max(now.len()), 0);
    for (at, (count, now)) in counts.iter_mut().zip(now).enumerate() {
        let grown = now.saturating_sub(before.get(at).copied().unwrap_or(0));
        *count = count.saturating_add(grown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delayed_snapshot_does_not_inflate_rates() {
        let start = Instant::now();
        let taken = |from: u64, to: u64| ReadInterval {
            from: start + Duration::from_millis(from),
            to: start + Duration::from_millis(to),
        };
        let (before, delayed, next) = (taken(0, 2), taken(250, 490), taken(500, 502));
        // Its counters were read either before or after the delay.
        assert_eq!(delayed.since(before), Duration::from_millis(488));
        assert_eq!(next.since(delayed), Duration::from_millis(250));
        assert_eq!(next.since(before), Duration::from_millis(500));
    }
}
