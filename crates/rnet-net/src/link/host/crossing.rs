//! How the link with a host is, and what crosses: what the status tells.

use std::collections::{BTreeMap, BTreeSet};

use rnet::msgs::link_status::State;

use crate::stream::ClockOffset;

use super::super::forwarder::Forwarded;
use super::super::known::Known;
use super::super::lane::lock;
use super::super::proxy::Arrived;
use super::Host;

/// What crosses of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crossing {
    pub topic: String,
    pub inwards: bool,
    pub messages: u64,
    pub bytes: u64,
    pub lost: u64,
    pub skipped: u64,
    pub held_back: bool,
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

    /// How its clock goes, by the lane on which less waits.
    pub fn clock(&self) -> Option<ClockOffset> {
        let now = rnet::now_ns();
        let clocks = self.lanes.iter().filter_map(|lane| lock(&lane.stream).clock(now));
        clocks.min_by_key(|clock| clock.uncertainty_ns)
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

    /// What crosses, by topic and direction.
    pub fn crossing(&self, known: &Known) -> Vec<Crossing> {
        let mut found: BTreeMap<(String, bool), Crossing> = BTreeMap::new();
        let mut add = |topic: &str, inwards: bool, more: Crossing| {
            let sum = found.entry((topic.to_owned(), inwards)).or_insert_with(|| Crossing {
                topic: topic.to_owned(),
                inwards,
                ..Crossing::default()
            });
            sum.messages += more.messages;
            sum.bytes += more.bytes;
            sum.lost += more.lost;
            sum.skipped += more.skipped;
            sum.held_back |= more.held_back;
        };
        for publisher in self.publishers.values().filter(|p| p.channel.is_some()) {
            let Arrived { messages, bytes, lost, .. } = lock(&publisher.proxy).arrived;
            let arrived = Crossing { messages, bytes, lost, ..Crossing::default() };
            add(&publisher.remote.topic, true, arrived);
        }
        for ((lane, channel), given) in &self.given {
            let Some(endpoint) = known.local.get(&given.wanted.publisher) else { continue };
            let forwarded = lock(&self.lane(*lane).forwarded).get(channel).copied();
            let Forwarded { messages, bytes, lost, skipped, held_back } =
                forwarded.unwrap_or_default();
            let sent =
                Crossing { messages, bytes, lost, skipped, held_back, ..Crossing::default() };
            add(&endpoint.topic, false, sent);
        }
        found.into_values().collect()
    }
}
