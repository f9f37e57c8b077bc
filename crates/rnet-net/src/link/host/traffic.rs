//! The state of the link with a host and its traffic, for the status.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rnet::msgs::link_status::State;
use rnet::{Lane, LossCounts};

use crate::config::Shaping;
use crate::stream::{ClockDrift, ClockOffset};

use super::super::control_state::ControlState;
use super::super::forwarder::{BlockReason, ForwardStats};
use super::super::lock::lock;
use super::super::proxy::ReceiveStats;
use super::super::rights::Side;
use super::Host;
use super::crossing::Hidden;

/// Anything that takes longer than this is reported.
const REMARK_AFTER: Duration = Duration::from_secs(2);
/// The most topics of a host that are reported as not crossing.
const MAX_NOT_CROSSING: usize = 256;

/// Counters of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCounts {
    pub messages: u64,
    pub bytes: u64,
    pub lost: LossCounts,
    pub skipped: u64,
}

impl TrafficCounts {
    pub fn add(&mut self, more: &TrafficCounts) {
        self.messages += more.messages;
        self.bytes += more.bytes;
        self.lost.add(&more.lost);
        self.skipped += more.skipped;
    }

    /// The increase since `before`, or everything if the counters were reset since.
    pub fn since(&self, before: &TrafficCounts) -> TrafficCounts {
        if self.messages < before.messages {
            return *self;
        }
        let (now, before_lost) = (self.lost.parts(), before.lost.parts());
        let lost: [u64; 4] = std::array::from_fn(|at| now[at].1.saturating_sub(before_lost[at].1));
        TrafficCounts {
            messages: self.messages - before.messages,
            bytes: self.bytes.saturating_sub(before.bytes),
            lost: lost.into(),
            skipped: self.skipped.saturating_sub(before.skipped),
        }
    }
}

/// Why messages of a topic do not cross, or wait; later variants are more specific.
#[derive(Clone, Debug, PartialEq)]
pub enum HoldReason {
    NoSubscriber,
    Configured(Shaping),
    /// The window of the network is full; the age of the waiting message.
    Window(Duration),
    /// The credit of the other host is used up; the age of the waiting message.
    Credit(Duration),
    /// The rule, as text.
    Rule(String),
    /// What this host's certificate does not allow, as text.
    OwnRights(String),
    /// What the other host's certificate does not allow, as text.
    PeerRights(String),
}

/// A channel, or a publisher without one.
#[derive(Clone, Debug)]
pub struct ChannelTraffic {
    pub topic: String,
    pub is_inbound: bool,
    /// The publisher, and the other host's number of its channel if it has one: another number restarts the
    /// counters.
    pub source: (u64, u32),
    pub counts: TrafficCounts,
    pub reason: Option<HoldReason>,
}

impl Host {
    /// The state of the link with it.
    pub fn state(&self) -> State {
        match (self.liveness.is_up(), &self.hello) {
            (false, _) => State::Lost,
            (true, Some(_)) => State::Connected,
            (true, None) if self.liveness.is_missed() => State::Lost,
            (true, None) => State::Connecting,
        }
    }

    /// A remark on the link with it; empty if nothing is wrong.
    pub fn remark(&self) -> String {
        let seconds = |time: Duration| format!("{:.0} s", time.as_secs_f64());
        let unannounced_for = self.unannounced_for();
        let mut remarks = Vec::new();
        match self.state() {
            State::Lost if self.liveness.is_up() => {
                remarks
                    .push("its link is visible on the network, but no data arrives from it".into());
            }
            State::Connecting if unannounced_for >= REMARK_AFTER => {
                let since = seconds(unannounced_for);
                remarks.push(format!(
                    "its link has been up for {since} and has not identified itself"
                ));
            }
            State::Connected if unannounced_for >= REMARK_AFTER => {
                let since = seconds(unannounced_for);
                remarks.push(format!(
                    "its link has been up for {since} and has not announced its endpoints"
                ));
            }
            _ => {}
        }
        if let Some((lane, silent)) = self.liveness.silent_lane(REMARK_AFTER) {
            let lane = if lane == Lane::Urgent { "urgent" } else { "bulk" };
            remarks.push(format!("its {lane} lane has been silent for {}", seconds(silent)));
        }
        if self.withheld > 0 {
            remarks.push(format!(
                "rules in its robot.toml withhold {} of its topics from this host",
                self.withheld
            ));
        }
        remarks.join("; ")
    }

    /// The offset of its clock, from the less certain lane: each lane uses its own measurement.
    pub fn clock(&self) -> Option<ClockOffset> {
        let now = rnet::now_ns();
        let clocks = self.lanes.iter().filter_map(|lane| lock(&lane.stream).clock(now));
        let clocks: Vec<ClockOffset> = clocks.collect();
        // On a link of an earlier release, a lane without data to send may never know it.
        let known = clocks.len() == self.lanes.len() || !self.sends_pulses();
        clocks.into_iter().max_by_key(|clock| clock.uncertainty_ns).filter(|_| known)
    }

    /// Number of its nodes.
    pub fn node_count(&self) -> u32 {
        let publishers = self.publishers.values().map(|publisher| publisher.remote.proxy.node());
        let subscriptions = self.subscriptions.values().map(|(remote, _)| remote.proxy.node());
        // A link of an earlier release announces only endpoints.
        let nodes: BTreeSet<&str> =
            publishers.chain(subscriptions).chain(self.nodes.names()).collect();
        u32::try_from(nodes.len()).unwrap_or(u32::MAX)
    }

    /// Number of steps of its clock, and the last step in ns.
    pub fn clock_steps(&self) -> (u64, i64) {
        // Both lanes see each step.
        lock(&self.lane(Lane::Urgent).stream).steps()
    }

    /// The drift of its clock, from the lane that knows it best.
    pub fn clock_drift(&self) -> Option<ClockDrift> {
        let now = rnet::now_ns();
        let drifts = self.lanes.iter().filter_map(|lane| lock(&lane.stream).drift(now));
        drifts.min_by(|a, b| a.uncertainty.total_cmp(&b.uncertainty))
    }

    /// The traffic, by channel.
    pub fn traffic(&self, control: &ControlState) -> Vec<ChannelTraffic> {
        let mut found = Vec::new();
        for (publisher, remote) in self.publishers.iter().filter(|(_, p)| p.channel.is_some()) {
            let proxy = lock(&remote.proxy);
            let ReceiveStats { messages, bytes, lost, .. } = proxy.stats;
            found.push(ChannelTraffic {
                topic: remote.remote.topic.clone(),
                is_inbound: true,
                source: (*publisher, 0),
                counts: TrafficCounts { messages, bytes, lost, skipped: 0 },
                reason: proxy.is_blocked().then_some(HoldReason::Credit(Duration::ZERO)),
            });
        }
        for ((lane, channel), granted) in &self.granted {
            let Some(endpoint) = control.local.get(&granted.wanted.publisher) else { continue };
            let forwarded = lock(&self.lane(*lane).forwarded).get(channel).copied();
            let ForwardStats { messages, bytes, lost, skipped, blocked_by, waited_ns } =
                forwarded.unwrap_or_default();
            let waited = Duration::from_nanos(waited_ns);
            found.push(ChannelTraffic {
                topic: endpoint.topic.clone(),
                is_inbound: false,
                source: (granted.wanted.publisher, *channel),
                counts: TrafficCounts { messages, bytes, lost, skipped },
                reason: blocked_by.map(|reason| match reason {
                    BlockReason::Credit => HoldReason::Credit(waited),
                    BlockReason::Window => HoldReason::Window(waited),
                    BlockReason::Configured(shaping) => HoldReason::Configured(shaping),
                }),
            });
        }
        found
    }

    /// What could cross and does not: topic, whether inbound, and why.
    pub fn not_crossing(&self, control: &ControlState) -> BTreeMap<(String, bool), HoldReason> {
        let mut found = BTreeMap::new();
        let granted: BTreeSet<u64> =
            self.granted.values().map(|granted| granted.wanted.publisher).collect();
        let ours = control.local.values().filter(|endpoint| !granted.contains(&endpoint.id));
        let ours = ours.filter_map(|endpoint| {
            let is_inbound = Side::of(endpoint) == Side::Subscriber;
            let reason = match self.check_crossing(control, endpoint) {
                Ok(()) if is_inbound => return None,
                Ok(()) => HoldReason::NoSubscriber,
                // Endpoints that never leave their host do not count as withheld.
                Err(Hidden::LocalOnly) => return None,
                // The other host's publisher, if there is one, shows the rule.
                Err(Hidden::Rule(_)) if is_inbound => return None,
                Err(Hidden::Rule(rule)) => HoldReason::Rule(rule),
                Err(Hidden::Rights(missing)) if missing.is_own() => {
                    HoldReason::OwnRights(missing.to_string())
                }
                Err(Hidden::Rights(missing)) => HoldReason::PeerRights(missing.to_string()),
            };
            Some(((endpoint.topic.clone(), is_inbound), reason))
        });
        let theirs = self.publishers.values().filter(|remote| remote.channel.is_none());
        let theirs =
            theirs.map(|remote| ((remote.remote.topic.clone(), true), HoldReason::NoSubscriber));
        // For a rule, the publishers of this host show the other direction.
        let denied = self
            .denied
            .values()
            .filter(|denied| denied.is_publisher || !matches!(denied.reason, HoldReason::Rule(_)));
        let denied = denied
            .map(|denied| ((denied.topic.clone(), denied.is_publisher), denied.reason.clone()));
        found.extend(denied.chain(ours).chain(theirs).take(MAX_NOT_CROSSING));
        found
    }
}
