//! The status of the link, published once a second and at each change of its hosts: `rnet link status`
//! reads it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use rnet::msgs::{LinkStatus, Timestamp, duration_from_ns, link_status, timestamp_now};
use rnet::{Lane, LossCounts, Result};
use rnet_keys::HostCertificate;

use crate::stream::ClockOffset;
use crate::transport::{Connection, HostId};

use super::LinkContext;
use super::control_state::ControlState;
use super::host::{HoldReason, Host, TrafficCounts};

/// Topic of the status; it stays on its host.
pub const TOPIC: &str = "/_rnet/link";
const STATUS_INTERVAL: Duration = Duration::from_secs(1);
/// How often a known address is checked again while the host does not change: to list its connections,
/// Linux walks the whole connection table, which takes up to 10 ms.
const ADDRESS_INTERVAL: Duration = Duration::from_secs(10);
/// The most absent hosts that are still shown.
const MAX_GONE: usize = 64;
/// How long they are shown, in seconds: a day.
const GONE_SHOWN_S: i64 = 86_400;
/// The most clock steps that are shown.
const MAX_STEPS: usize = 8;
/// The most absent topics per host that are shown separately: each client of a service has its own topics.
const MAX_ENDED: usize = 64;
/// Placeholder name for the other ones. No topic has this name.
const ENDED_TOPIC: &str = "(ended)";

/// After this time, a session knows a clock as well as it ever will: its first stamps may have been delayed
/// for long.
const CLOCK_SETTLED_NS: u64 = 2_000_000_000;

type Publisher = rnet::Publisher<LinkStatus>;
/// A topic, and whether it is inbound.
type TopicKey = (String, bool);

pub struct Status {
    publisher: Publisher,
    sent: Option<Instant>,
    /// When the connections were last read.
    connected: Option<Instant>,
    records: BTreeMap<HostId, HostRecord>,
    /// The problems as last sent.
    problems: Vec<String>,
}

/// A host as last reported, and its traffic since the link started, including while it is absent.
struct HostRecord {
    state: link_status::State,
    since: Timestamp,
    name: String,
    release: String,
    address: String,
    /// The reason for the last loss.
    why_lost: String,
    /// Its refused endpoints of earlier sessions.
    refused_before: u64,
    /// Its only connected lane, if just one is.
    half_connected_lane: Option<Lane>,
    /// Whether both of its lanes were connected at some time.
    was_met: bool,
    /// Last counters of each channel.
    seen: HashMap<(bool, (u64, u32)), TrafficCounts>,
    sums: BTreeMap<TopicKey, TrafficCounts>,
    /// The sums of the last message.
    before: BTreeMap<TopicKey, TrafficCounts>,
    /// The last known clock offset, and when it was read, in ns of CLOCK_MONOTONIC.
    clock: Option<(ClockOffset, u64)>,
    /// Since when this session has measured the clock, in ns of CLOCK_MONOTONIC, while `clock` comes from
    /// an earlier session.
    measured_ns: Option<u64>,
    is_clock_old: bool,
    /// Clock steps seen since the host appeared.
    steps_seen: u64,
    steps: Vec<link_status::ClockStep>,
}

impl HostRecord {
    /// Updates the name and the release of a greeted host.
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
            refused_before: 0,
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

    /// Sets the state; returns whether it has changed.
    fn set_state(&mut self, state: link_status::State) -> bool {
        let changed = self.state != state;
        if changed {
            (self.state, self.since) = (state, timestamp_now());
        }
        changed
    }

    /// Counts the traffic and determines what blocks more of it. Adds the present topics to `here`.
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

    /// Ends the session: another session measures the clock from here on.
    fn end_session(&mut self) {
        (self.is_clock_old, self.measured_ns, self.steps_seen) = (true, None, 0);
    }

    /// Sums up the absent topics, except those with the most traffic.
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

    /// The size of a clock step, if one occurred in this session or since the previous one. A host that was
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

    /// Records a clock step and reports it once.
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
    /// The errors of opening the publisher.
    pub fn new(shared: &Arc<LinkContext>) -> Result<Status> {
        let publisher = shared.node.publisher(TOPIC).transient_local(1).open()?;
        Ok(Status {
            publisher,
            sent: None,
            connected: None,
            records: BTreeMap::new(),
            problems: Vec::new(),
        })
    }

    /// Records that the host is disconnected because of `why`, and counts its traffic a last time.
    pub fn lose(&mut self, control: &ControlState, id: HostId, host: &Host, why: String) {
        let record = self.records.entry(id).or_insert_with(HostRecord::new);
        record.note_name(host);
        record.count(control, host, &mut BTreeSet::new());
        record.seen.clear();
        record.end_session();
        // This includes a host that came and went between two checks.
        record.was_met = true;
        record.why_lost = why;
        record.refused_before += host.refused_endpoints;
    }

    /// Assigns the host the name and the counters of an absent host that had the name before. Returns the
    /// id of that host.
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
        // The topic keeps one message. A send fails only without memory, which other errors report.
        let _ = self.publisher.send(&status);
    }

    /// The connections, if they are due to be read.
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
        let is_half = self.records.values().any(|record| record.half_connected_lane.is_some());
        let sole_unknown = connections.as_ref().filter(|_| !is_half);
        let sole_unknown = sole_unknown.and_then(|all| sole_unknown_address(all, hosts));
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
                        let address = host.address(connections);
                        record.address = address.or(sole_unknown.clone()).unwrap_or_default();
                    }
                }
                reasons.extend(record.count(control, host, &mut here));
                fill_clock(&mut peer, host);
                peer.nodes = host.node_count();
                peer.certificate = host.certificate().map(|one| certificate_of(one));
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
            let refused = hosts.get(id).map_or(0, |host| host.refused_endpoints);
            peer.refused_endpoints = record.refused_before + refused;
            peer.host.clone_from(&record.name);
            peer.version.clone_from(&record.release);
            peer.address.clone_from(&record.address);
            for topic_key in reasons.keys() {
                record.sums.entry(topic_key.clone()).or_default();
            }
            here.extend(reasons.keys().cloned());
            // For an absent host, or one without an announcement, no topic has ended.
            if hosts.get(id).is_some_and(Host::has_announced) {
                record.fold_ended(&here);
            }
            for (topic_key, sum) in &record.sums {
                let more = sum.since(&record.before.get(topic_key).copied().unwrap_or_default());
                peer.topics.push(topic_of(topic_key, sum, &more, elapsed, reasons.get(topic_key)));
            }
            record.before.clone_from(&record.sums);
            // A topic without traffic is shown only while it exists.
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
            insecure: control.certificate.is_none() && shared.config.exposing_setting().is_some(),
            certificate: control.certificate.as_deref().map(certificate_of),
            authority: shared.transport().and_then(|net| net.authority()).unwrap_or_default(),
        }
    }
}

fn certificate_of(certificate: &HostCertificate) -> link_status::Certificate {
    let expires = certificate.not_after.duration_since(UNIX_EPOCH).unwrap_or_default();
    link_status::Certificate {
        serial: certificate.serial.clone(),
        expires: Some(Timestamp {
            seconds: i64::try_from(expires.as_secs()).unwrap_or(i64::MAX),
            nanos: 0,
        }),
    }
}

/// Explains why a host with only this lane is not connected.
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

/// The address of the only connected host that does not report it, such as a host on the same machine or
/// behind a router.
fn sole_unknown_address(
    connections: &[Connection],
    hosts: &BTreeMap<HostId, Host>,
) -> Option<String> {
    let is_unknown = |host: &&Host| host.hello.is_some() && host.address(connections).is_none();
    let is_sole = hosts.values().filter(is_unknown).count() == 1;
    is_sole.then(|| only_unknown_address(connections, hosts)).flatten()
}

/// The remote address of connections that belong to none of these hosts, if there is exactly one: that of a
/// host that has not identified itself.
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

/// Removes hosts that are absent for long, and the earliest lost ones beyond the limit: each boot creates a
/// new host.
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
        HoldReason::OwnRights(text) | HoldReason::PeerRights(text) => (Cause::Rights, text.clone()),
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
    fn absent_hosts_are_removed() {
        let now_s = 1_000_000;
        // Each was lost a second before the next one; the last is present, longer than all others.
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
            "removes the hosts that were lost first"
        );
        forget_gone_hosts(&mut records, is_here, now_s - 2 + GONE_SHOWN_S);
        assert_eq!(records.keys().copied().collect::<Vec<_>>(), [HostId(99), HostId(100)]);
    }
}
