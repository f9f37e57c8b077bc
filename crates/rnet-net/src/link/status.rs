//! What the link says of itself, once a second and at each change of its hosts: `rnet link status` reads it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet::msgs::{LinkStatus, Timestamp, duration_from_ns, link_status, timestamp_now};
use rnet::{Lane, LossCounts, PublisherOptions, Result};

use crate::stream::ClockOffset;
use crate::transport::{Connection, HostId};

use super::LinkContext;
use super::control_state::ControlState;
use super::host::{HoldReason, Host, TrafficCounts};

/// Where it is published; the topic stays on its host.
pub const TOPIC: &str = "/_rnet/link";
const STATUS_INTERVAL: Duration = Duration::from_secs(1);
/// How often a known address is looked for again, unless a host has changed: to list its connections Linux walks all
/// for which it has room, which takes up to 10 ms.
const ADDRESS_INTERVAL: Duration = Duration::from_secs(10);
/// Hosts that are gone and still shown.
const MAX_GONE: usize = 64;
/// For how long they are, in seconds: a day.
const GONE_SHOWN_S: i64 = 86_400;
/// Steps of a clock that are shown.
const MAX_STEPS: usize = 8;
/// Topics of each host that are gone and shown each by itself: each client of a service has topics of its own.
const MAX_ENDED: usize = 64;
/// Stands for the other ones, in the place of a name. No topic has this one.
const ENDED_TOPIC: &str = "(ended)";

/// After so long a session knows a clock as well as it will: its first stamps may have waited for long.
const CLOCK_SETTLED_NS: u64 = 2_000_000_000;

type Publisher = rnet::Publisher<LinkStatus>;
/// A topic, and whether it comes to this host.
type TopicKey = (String, bool);

pub struct Status {
    publisher: Publisher,
    sent: Option<Instant>,
    /// When the connections were looked at.
    connected: Option<Instant>,
    records: BTreeMap<HostId, HostRecord>,
    /// What has gone wrong, as it was told last.
    problems: Vec<String>,
}

/// A host as it was told last, and what has crossed since the link runs: also while it is gone.
struct HostRecord {
    state: link_status::State,
    since: Timestamp,
    name: String,
    release: String,
    address: String,
    /// Why it was lost last, in words.
    why_lost: String,
    /// The only lane of it that is there, while it is one.
    half_connected_lane: Option<Lane>,
    /// Whether it was met, and not only one lane of it.
    was_met: bool,
    /// What was counted of each channel.
    seen: HashMap<(bool, (u64, u32)), TrafficCounts>,
    sums: BTreeMap<TopicKey, TrafficCounts>,
    /// The sums of the last message.
    before: BTreeMap<TopicKey, TrafficCounts>,
    /// How far its clock was ahead last, and when that was asked, ns of CLOCK_MONOTONIC.
    clock: Option<(ClockOffset, u64)>,
    /// Since when this session has measured it, ns of CLOCK_MONOTONIC, while that is of a session before.
    measured_ns: Option<u64>,
    is_clock_old: bool,
    /// How many steps of its clock were seen since it is there.
    steps_seen: u64,
    steps: Vec<link_status::ClockStep>,
}

impl HostRecord {
    /// The name and the release of a host that has said them.
    fn note_name(&mut self, host: &Host) {
        if let Some(hello) = &host.hello {
            (self.name, self.release) = (host.name(), hello.release.clone());
        }
    }

    fn new() -> HostRecord {
        HostRecord {
            state: link_status::State::Unspecified,
            since: timestamp_now(),
            name: String::new(),
            release: String::new(),
            address: String::new(),
            why_lost: String::new(),
            half_connected_lane: None,
            was_met: false,
            seen: HashMap::new(),
            sums: BTreeMap::new(),
            before: BTreeMap::new(),
            clock: None,
            measured_ns: None,
            is_clock_old: false,
            steps_seen: 0,
            steps: Vec::new(),
        }
    }

    /// Whether the state is another than before.
    fn set_state(&mut self, state: link_status::State) -> bool {
        let changed = self.state != state;
        if changed {
            (self.state, self.since) = (state, timestamp_now());
        }
        changed
    }

    /// Counts what has crossed, and says what keeps more from it. Adds the topics that are there to `here`.
    fn count(
        &mut self,
        control: &ControlState,
        host: &Host,
        here: &mut BTreeSet<TopicKey>,
    ) -> BTreeMap<TopicKey, HoldReason> {
        let mut reasons = BTreeMap::new();
        let mut seen = HashMap::new();
        for channel in host.traffic(control) {
            let (key, topic_key) =
                ((channel.is_inbound, channel.source), (channel.topic, channel.is_inbound));
            let before = self.seen.get(&key).copied().unwrap_or_default();
            self.sums.entry(topic_key.clone()).or_default().add(&channel.counts.since(&before));
            seen.insert(key, channel.counts);
            if let Some(reason) = channel.reason {
                reasons.insert(topic_key.clone(), reason);
            }
            here.insert(topic_key);
        }
        self.seen = seen;
        reasons
    }

    /// What its clock does from here on is measured by another session.
    fn end_session(&mut self) {
        (self.is_clock_old, self.measured_ns, self.steps_seen) = (true, None, 0);
    }

    /// Adds up the topics that are gone, but for those of which most has crossed.
    fn fold_ended(&mut self, here: &BTreeSet<TopicKey>) {
        let is_ended =
            |topic_key: &&TopicKey| topic_key.0 != ENDED_TOPIC && !here.contains(*topic_key);
        let mut ended: Vec<TopicKey> = self.sums.keys().filter(is_ended).cloned().collect();
        ended.sort_by_key(|topic_key| std::cmp::Reverse(self.sums[topic_key].messages));
        for topic_key in ended.into_iter().skip(MAX_ENDED) {
            for sums in [&mut self.sums, &mut self.before] {
                let sum = sums.remove(&topic_key).unwrap_or_default();
                sums.entry((ENDED_TOPIC.to_owned(), topic_key.1)).or_default().add(&sum);
            }
        }
    }

    /// By how much its clock has stepped, if it has: in this session, or since the one before. A host that was
    /// suspended is lost meanwhile.
    fn step(&mut self, host: &Host) -> Option<i64> {
        let (count, by_ns) = host.clock_steps();
        let in_session = (count > self.steps_seen).then_some(by_ns);
        self.steps_seen = count;
        self.is_clock_old &= in_session.is_none();
        let Some(clock) = host.clock() else { return in_session };
        let now_ns = rnet::now_ns();
        let measured_ns = *self.measured_ns.get_or_insert(now_ns);
        if self.is_clock_old && now_ns.saturating_sub(measured_ns) < CLOCK_SETTLED_NS {
            return in_session;
        }
        let before = self.clock.replace((clock, now_ns)).filter(|_| self.is_clock_old);
        self.is_clock_old = false;
        let since = |(before, at_ns): (ClockOffset, u64)| {
            clock.step_since(&before, now_ns.saturating_sub(at_ns))
        };
        in_session.or_else(|| before.and_then(since))
    }

    /// Notes a step of its clock, and says it once.
    fn note_steps(&mut self, host: &Host) -> bool {
        let step_ns = self.step(host);
        if let Some(by_ns) = step_ns {
            eprintln!(
                "rnet-link: the clock of host {} has stepped by {:.6} s relative to this host's",
                host.name(),
                by_ns as f64 / 1e9
            );
            if self.steps.len() == MAX_STEPS {
                self.steps.remove(0);
            }
            self.steps.push(link_status::ClockStep {
                timestamp: Some(timestamp_now()),
                step: Some(duration_from_ns(by_ns)),
            });
        }
        step_ns.is_some()
    }
}

impl Status {
    /// # Errors
    /// Of opening the publisher.
    pub fn new(shared: &Arc<LinkContext>) -> Result<Status> {
        let options = PublisherOptions::new().transient_local(1);
        let publisher = shared.node.publisher_with(TOPIC, options)?;
        Ok(Status {
            publisher,
            sent: None,
            connected: None,
            records: BTreeMap::new(),
            problems: Vec::new(),
        })
    }

    /// The host is given up, for the reason `why`: what has crossed is counted a last time.
    pub fn lose(&mut self, control: &ControlState, id: HostId, host: &Host, why: String) {
        let record = self.records.entry(id).or_insert_with(HostRecord::new);
        record.note_name(host);
        record.count(control, host, &mut BTreeSet::new());
        record.seen.clear();
        record.end_session();
        // Also where it came and went between two looks.
        record.was_met = true;
        record.why_lost = why;
    }

    /// A host has this name from now on, which one that is gone had before: what was counted of that one is its own.
    /// Returns which one that is.
    pub fn inherit(
        &mut self,
        id: HostId,
        name: &str,
        is_here: impl Fn(&HostId) -> bool,
    ) -> Option<HostId> {
        let before = self.records.iter().find(|(other, record)| {
            **other != id
                && record.name == name
                && record.half_connected_lane.is_none()
                && !is_here(other)
        });
        let before = before.map(|(other, _)| *other)?;
        if let Some(gone) = self.records.remove(&before) {
            let record = self.records.entry(id).or_insert_with(HostRecord::new);
            (record.sums, record.before, record.steps) = (gone.sums, gone.before, gone.steps);
        }
        Some(before)
    }

    /// Sends the status if it is due.
    pub fn publish_if_due(
        &mut self,
        control: &ControlState,
        hosts: &BTreeMap<HostId, Host>,
        is_refused: impl Fn(&HostId) -> bool,
    ) {
        let mut changed = !control.problems.texts().eq(self.problems.iter().map(String::as_str));
        if changed {
            self.problems = control.problems.texts().map(str::to_owned).collect();
        }
        let network = control.shared.transport();
        let half = network.map(|network| network.half_connected()).unwrap_or_default();
        let half: BTreeMap<HostId, Lane> = half.into_iter().collect();
        for id in half.keys() {
            self.records.entry(*id).or_insert_with(HostRecord::new);
        }
        let count = self.records.len();
        self.records
            .retain(|id, record| record.was_met || hosts.contains_key(id) || half.contains_key(id));
        changed |= self.records.len() < count;
        for (id, host) in hosts {
            let record = self.records.entry(*id).or_insert_with(HostRecord::new);
            record.was_met |= host.is_greeted();
            record.half_connected_lane = half.get(id).copied();
            changed |= record.set_state(host.state());
            changed |= record.note_steps(host);
        }
        for (id, record) in self.records.iter_mut().filter(|(id, _)| !hosts.contains_key(id)) {
            record.end_session();
            record.half_connected_lane = half.get(id).copied();
            changed |= record.set_state(match (is_refused(id), record.half_connected_lane) {
                (true, _) => link_status::State::Refused,
                (false, Some(_)) => link_status::State::Connecting,
                (false, None) => link_status::State::Lost,
            });
        }
        let elapsed = self.sent.map(|sent| sent.elapsed());
        if !changed && elapsed.is_some_and(|elapsed| elapsed < STATUS_INTERVAL) {
            return;
        }
        forget_gone_hosts(&mut self.records, |id| hosts.contains_key(id), timestamp_now().seconds);
        self.sent = Some(Instant::now());
        if changed {
            self.connected = None;
        }
        let status = self.build(control, hosts, elapsed.unwrap_or(STATUS_INTERVAL));
        // It keeps one message; a send fails where there is no memory, which others are told of.
        let _ = self.publisher.send(&status);
    }

    /// The connections, if they have to be looked at.
    fn connections(
        &mut self,
        shared: &LinkContext,
        hosts: &BTreeMap<HostId, Host>,
    ) -> Option<Vec<Connection>> {
        let is_known = |(id, host): (&HostId, &Host)| {
            host.hello.is_none()
                || self.records.get(id).is_some_and(|record| !record.address.is_empty())
        };
        let is_recent = |at: Instant| at.elapsed() < ADDRESS_INTERVAL;
        if self.connected.is_some_and(is_recent) && hosts.iter().all(is_known) {
            return None;
        }
        self.connected = Some(Instant::now());
        Some(shared.transport()?.connections())
    }

    fn build(
        &mut self,
        control: &ControlState,
        hosts: &BTreeMap<HostId, Host>,
        elapsed: Duration,
    ) -> LinkStatus {
        let shared = &control.shared;
        let connections = self.connections(shared, hosts);
        let mut peers = Vec::new();
        for (id, record) in &mut self.records {
            let mut peer = link_status::Peer {
                id: id.to_string(),
                state: record.state.into(),
                since: Some(record.since),
                clock_steps: record.steps.clone(),
                ..Default::default()
            };
            let (mut reasons, mut here) = (BTreeMap::new(), BTreeSet::new());
            if let Some(host) = hosts.get(id) {
                record.note_name(host);
                if host.hello.is_some() {
                    reasons = host.not_crossing(control);
                    if let Some(connections) = &connections {
                        record.address = host.address(connections).unwrap_or_default();
                    }
                }
                reasons.extend(record.count(control, host, &mut here));
                fill_clock(&mut peer, host);
                peer.nodes = host.node_count();
            }
            use link_status::State::{Connected, Lost, Refused};
            let host = hosts.get(id);
            let others = host.and_then(Host::unreachable_remark);
            let remarks = host.map(Host::remark).into_iter().filter(|one| !one.is_empty());
            let remark = remarks.chain(others).collect::<Vec<_>>().join("; ");
            peer.text = match record.half_connected_lane.filter(|_| record.state != Connected) {
                Some(lane) => half_text(lane).to_owned(),
                None if remark.is_empty() && matches!(record.state, Lost | Refused) => {
                    record.why_lost.clone()
                }
                None => remark,
            };
            if record.half_connected_lane.is_some()
                && record.address.is_empty()
                && let Some(connections) = &connections
            {
                record.address = only_unknown_address(connections, hosts).unwrap_or_default();
            }
            peer.host.clone_from(&record.name);
            peer.version.clone_from(&record.release);
            peer.address.clone_from(&record.address);
            for topic_key in reasons.keys() {
                record.sums.entry(topic_key.clone()).or_default();
            }
            here.extend(reasons.keys().cloned());
            // Of a host that is away, and of one that has not told what it has, nothing has ended.
            if hosts.get(id).is_some_and(Host::has_announced) {
                record.fold_ended(&here);
            }
            for (topic_key, sum) in &record.sums {
                let more = sum.since(&record.before.get(topic_key).copied().unwrap_or_default());
                peer.topics.push(topic_of(topic_key, sum, &more, elapsed, reasons.get(topic_key)));
            }
            record.before.clone_from(&record.sums);
            // What has never crossed is shown for as long as it exists.
            record.sums.retain(|_, sum| *sum != TrafficCounts::default());
            peers.push(peer);
        }
        LinkStatus {
            timestamp: Some(timestamp_now()),
            host: shared.name.clone(),
            id: shared.presence.host.to_string(),
            term: shared.presence.term,
            pid: std::process::id(),
            version: rnet::VERSION.to_owned(),
            mode: shared.config.mode.to_string(),
            listen: shared.config.listen.iter().map(ToString::to_string).collect(),
            peers,
            problems: self.problems.clone(),
            connect: shared.config.connect.iter().map(ToString::to_string).collect(),
            interfaces: shared.config.interfaces.iter().map(|one| one.value.clone()).collect(),
            insecure: shared.config.exposing_setting().is_some(),
        }
    }
}

/// Why a host is not met of which only this lane is there.
fn half_text(lane: Lane) -> &'static str {
    match lane {
        Lane::Urgent => {
            "its urgent lane is connected, but its bulk lane, on the next port, is not; a firewall \
             may let only the lower of the two ports through"
        }
        Lane::Bulk => {
            "its bulk lane is connected, but its urgent lane, on the port below, is not; a firewall \
             may let only the upper of the two ports through"
        }
    }
}

/// The address to which connections go that are of none of these hosts, if it is one: that of a host that has not said
/// who it is.
fn only_unknown_address(
    connections: &[Connection],
    hosts: &BTreeMap<HostId, Host>,
) -> Option<String> {
    let is_known = |one: &&Connection| {
        hosts.values().any(|host| host.address(std::slice::from_ref(one)).is_some())
    };
    let others: BTreeSet<IpAddr> =
        connections.iter().filter(|one| !is_known(one)).map(|one| one.peer.ip()).collect();
    let mut others = others.into_iter();
    others.next().filter(|_| others.next().is_none()).map(|ip| ip.to_string())
}

/// Forgets hosts that are gone for long, and those that were lost first: each boot makes another one.
fn forget_gone_hosts(
    records: &mut BTreeMap<HostId, HostRecord>,
    is_here: impl Fn(&HostId) -> bool,
    now_s: i64,
) {
    records.retain(|id, record| {
        is_here(id) || now_s.saturating_sub(record.since.seconds) < GONE_SHOWN_S
    });
    loop {
        let gone = records.iter().filter(|(id, _)| !is_here(id));
        let gone = gone.map(|(id, record)| ((record.since.seconds, record.since.nanos), *id));
        let (count, first) = gone.fold((0, None), |(count, first), one| {
            (count + 1, Some(first.map_or(one, |first: (_, _)| one.min(first))))
        });
        match first {
            Some((_, id)) if count > MAX_GONE => drop(records.remove(&id)),
            _ => return,
        }
    }
}

fn fill_clock(peer: &mut link_status::Peer, host: &Host) {
    if let Some(clock) = host.clock() {
        let ns = |ns: u64| Some(duration_from_ns(ns.try_into().unwrap_or(i64::MAX)));
        peer.round_trip = ns(clock.round_trip_ns);
        peer.clock_offset = Some(duration_from_ns(clock.offset_ns));
        peer.clock_offset_uncertainty = ns(clock.uncertainty_ns);
    }
    if let Some(drift) = host.clock_drift() {
        (peer.clock_drift, peer.clock_drift_uncertainty) = (drift.rate, drift.uncertainty);
    }
}

fn topic_of(
    (topic, is_inbound): &TopicKey,
    sum: &TrafficCounts,
    more: &TrafficCounts,
    elapsed: Duration,
    reason: Option<&HoldReason>,
) -> link_status::Topic {
    use link_status::Direction;
    let rate = |count: u64| count as f64 / elapsed.as_secs_f64();
    let direction = if *is_inbound { Direction::In } else { Direction::Out };
    let (cause, text) = reason.map_or_else(Default::default, |reason| explain(reason, *is_inbound));
    let LossCounts { overrun, link, restart, detached } = sum.lost;
    link_status::Topic {
        name: topic.clone(),
        direction: direction.into(),
        rate_hz: rate(more.messages),
        bytes_per_s: rate(more.bytes),
        messages: sum.messages,
        lost: Some(link_status::Lost { link, overrun, restart, detached }),
        skipped: sum.skipped,
        held_back: cause.into(),
        held_back_text: text,
        waited: match reason {
            Some(HoldReason::Window(waited) | HoldReason::Credit(waited)) if !waited.is_zero() => {
                i64::try_from(waited.as_nanos()).ok().map(duration_from_ns)
            }
            _ => None,
        },
    }
}

fn explain(reason: &HoldReason, is_inbound: bool) -> (link_status::Cause, String) {
    use link_status::Cause;
    let of = |cause, text: &str| (cause, text.to_owned());
    match reason {
        HoldReason::Credit(_) if is_inbound => {
            of(Cause::Credit, "a reliable subscriber here is full")
        }
        HoldReason::Credit(_) => {
            of(Cause::Credit, "the other host is full: its subscribers are behind")
        }
        HoldReason::Window(_) => of(Cause::Window, "the network is saturated"),
        HoldReason::NoSubscriber if is_inbound => of(Cause::NoSubscriber, "no subscriber here"),
        HoldReason::NoSubscriber => of(Cause::NoSubscriber, "no subscriber there"),
        HoldReason::Rule(rule) => (Cause::Rule, rule.clone()),
        HoldReason::Configured(shaping) => match shaping.rate_limit_hz {
            Some(hz) => (Cause::RateLimit, format!("at most {hz} Hz cross")),
            None if shaping.newest_only => of(Cause::LeftOut, "only the newest crosses"),
            None => (Cause::LeftOut, format!("1 of {} crosses", shaping.every)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_are_gone_are_forgotten() {
        let now_s = 1_000_000;
        // Each was lost a second before the next one; the last is here, for longer than all.
        let mut records: BTreeMap<HostId, HostRecord> = (0..=100)
            .map(|n| {
                let since = Timestamp { seconds: now_s - 100 + n as i64, nanos: 0 };
                (HostId(n), HostRecord { since, ..HostRecord::new() })
            })
            .collect();
        records.get_mut(&HostId(100)).unwrap().since.seconds = 0;
        let is_here = |id: &HostId| id.0 == 100;
        forget_gone_hosts(&mut records, is_here, now_s);
        assert_eq!(records.len(), MAX_GONE + 1);
        assert!(
            records.keys().all(|id| id.0 >= 100 - MAX_GONE as u64),
            "those that were lost first"
        );
        forget_gone_hosts(&mut records, is_here, now_s - 2 + GONE_SHOWN_S);
        assert_eq!(records.keys().copied().collect::<Vec<_>>(), [HostId(99), HostId(100)]);
    }
}
