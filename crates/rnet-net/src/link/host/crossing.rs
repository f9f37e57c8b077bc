//! How the link with a host is, and what crosses: what the status tells.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rnet::msgs::link_status::State;
use rnet::{EndpointQos, Lane, LossCounts};

use crate::config::{Direction, Shaping};
use crate::stream::{ClockDrift, ClockOffset};

use super::super::forwarder::{Forwarded, Held};
use super::super::known::Known;
use super::super::lock::lock;
use super::super::proxy::Arrived;
use super::Host;

/// What takes longer than this is told.
const SLOW: Duration = Duration::from_secs(2);
/// Topics of a host that do not cross and are told.
const MAX_APART: usize = 256;

/// What has crossed of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub messages: u64,
    pub bytes: u64,
    pub lost: LossCounts,
    pub skipped: u64,
}

impl Counts {
    pub fn add(&mut self, more: &Counts) {
        self.messages += more.messages;
        self.bytes += more.bytes;
        self.lost.add(&more.lost);
        self.skipped += more.skipped;
    }

    /// What has come since `before`; all, if they have begun anew since.
    pub fn since(&self, before: &Counts) -> Counts {
        if self.messages < before.messages {
            return *self;
        }
        let (now, before_lost) = (self.lost.parts(), before.lost.parts());
        let lost: [u64; 4] = std::array::from_fn(|at| now[at].1.saturating_sub(before_lost[at].1));
        Counts {
            messages: self.messages - before.messages,
            bytes: self.bytes.saturating_sub(before.bytes),
            lost: lost.into(),
            skipped: self.skipped.saturating_sub(before.skipped),
        }
    }
}

/// Why something of a topic does not cross, or waits; the last one says most.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    NoSubscriber,
    Configured(Shaping),
    /// The network has no room; how old the message is that waits for it.
    Window(Duration),
    /// The other host has none.
    Credit(Duration),
    /// The rule, in words.
    Rule(String),
}

/// A channel, or a publisher without one.
#[derive(Clone, Debug)]
pub struct Crossing {
    pub topic: String,
    pub inwards: bool,
    /// The publisher, and what the other host calls its channel if that wants it: another one counts anew.
    pub source: (u64, u32),
    pub counts: Counts,
    pub reason: Option<Reason>,
}

impl Host {
    /// How the link with it is.
    pub fn state(&self) -> State {
        match (self.heard.is_up(), &self.hello) {
            (false, _) => State::Lost,
            (true, Some(_)) => State::Connected,
            (true, None) if self.heard.is_missed() => State::Lost,
            (true, None) => State::Connecting,
        }
    }

    /// What there is to say of the link with it, in words; nothing if all is as it should be.
    pub fn remark(&self) -> String {
        let seconds = |time: Duration| format!("{:.0} s", time.as_secs_f64());
        let untold = self.untold();
        let mut remarks = Vec::new();
        match self.state() {
            State::Lost if self.heard.is_up() => {
                remarks
                    .push("its link is visible on the network, but no data arrives from it".into());
            }
            State::Connecting if untold >= SLOW => {
                let since = seconds(untold);
                remarks.push(format!(
                    "its link has been up for {since} and has not identified itself"
                ));
            }
            State::Connected if untold >= SLOW => {
                let since = seconds(untold);
                remarks.push(format!(
                    "its link has been up for {since} and has not announced its endpoints"
                ));
            }
            _ => {}
        }
        if let Some((lane, silent)) = self.heard.silent_lane(SLOW) {
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

    /// How its clock goes, by the lane that knows less of it: each lane goes by what it has measured itself.
    pub fn clock(&self) -> Option<ClockOffset> {
        let now = rnet::now_ns();
        let clocks = self.lanes.iter().filter_map(|lane| lock(&lane.stream).clock(now));
        let clocks: Vec<ClockOffset> = clocks.collect();
        // Of an earlier release a lane may never know it that has nothing to send.
        let known = clocks.len() == self.lanes.len() || !self.pulses();
        clocks.into_iter().max_by_key(|clock| clock.uncertainty_ns).filter(|_| known)
    }

    /// How many nodes it has.
    pub fn node_count(&self) -> u32 {
        let publishers = self.publishers.values().map(|publisher| publisher.remote.proxy.node());
        let subscriptions = self.subscriptions.values().map(|(remote, _)| remote.proxy.node());
        // A link of an earlier release tells of endpoints alone.
        let nodes: BTreeSet<&str> =
            publishers.chain(subscriptions).chain(self.nodes.names()).collect();
        u32::try_from(nodes.len()).unwrap_or(u32::MAX)
    }

    /// Steps of its clock, and the last of them in ns.
    pub fn clock_steps(&self) -> (u64, i64) {
        // Both lanes see each step.
        lock(&self.lane(Lane::Urgent).stream).steps()
    }

    /// How its clock drifts, by the lane that knows it best.
    pub fn clock_drift(&self) -> Option<ClockDrift> {
        let now = rnet::now_ns();
        let drifts = self.lanes.iter().filter_map(|lane| lock(&lane.stream).drift(now));
        drifts.min_by(|a, b| a.uncertainty.total_cmp(&b.uncertainty))
    }

    /// What crosses, by channel.
    pub fn crossing(&self, known: &Known) -> Vec<Crossing> {
        let mut found = Vec::new();
        for (publisher, remote) in self.publishers.iter().filter(|(_, p)| p.channel.is_some()) {
            let proxy = lock(&remote.proxy);
            let Arrived { messages, bytes, lost, .. } = proxy.arrived;
            found.push(Crossing {
                topic: remote.remote.topic.clone(),
                inwards: true,
                source: (*publisher, 0),
                counts: Counts { messages, bytes, lost, skipped: 0 },
                reason: proxy.is_stuck().then_some(Reason::Credit(Duration::ZERO)),
            });
        }
        for ((lane, channel), given) in &self.given {
            let Some(endpoint) = known.local.get(&given.wanted.publisher) else { continue };
            let forwarded = lock(&self.lane(*lane).forwarded).get(channel).copied();
            let Forwarded { messages, bytes, lost, skipped, held, waited_ns } =
                forwarded.unwrap_or_default();
            let waited = Duration::from_nanos(waited_ns);
            found.push(Crossing {
                topic: endpoint.topic.clone(),
                inwards: false,
                source: (given.wanted.publisher, *channel),
                counts: Counts { messages, bytes, lost, skipped },
                reason: held.map(|held| match held {
                    Held::Credit => Reason::Credit(waited),
                    Held::Window => Reason::Window(waited),
                    Held::Configured(shaping) => Reason::Configured(shaping),
                }),
            });
        }
        found
    }

    /// What does not cross and could: topic, whether inwards, and why.
    pub fn apart(&self, known: &Known) -> BTreeMap<(String, bool), Reason> {
        let mut found = BTreeMap::new();
        let given: BTreeSet<u64> =
            self.given.values().map(|given| given.wanted.publisher).collect();
        let of_ours = known.local.values().filter(|endpoint| {
            matches!(endpoint.qos, EndpointQos::Publisher(_)) && !given.contains(&endpoint.id)
        });
        let ours = of_ours.filter_map(|endpoint| {
            let reason =
                match known.shared.config.allows(&endpoint.topic, Direction::Out, &self.said) {
                    Ok(()) => Reason::NoSubscriber,
                    // What never leaves its host is not held back.
                    Err(rule) if rule.place.is_none() => return None,
                    Err(rule) => Reason::Rule(rule.to_string()),
                };
            Some(((endpoint.topic.clone(), false), reason))
        });
        let theirs = self.publishers.values().filter(|remote| remote.channel.is_none());
        let theirs =
            theirs.map(|remote| ((remote.remote.topic.clone(), true), Reason::NoSubscriber));
        let denied = self.denied.values().filter_map(|topic| {
            let rule = known.shared.config.allows(topic, Direction::In, &self.said).err()?;
            Some(((topic.clone(), true), Reason::Rule(rule.to_string())))
        });
        found.extend(denied.chain(ours).chain(theirs).take(MAX_APART));
        found
    }
}
