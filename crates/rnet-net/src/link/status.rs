//! What the link says of itself, once a second and at each change of its hosts: `rnet link status` reads it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rnet::msgs::{LinkStatus, duration_from_ns, link_status, timestamp_now};
use rnet::{PublisherOptions, Result};

use crate::transport::HostId;

use super::Shared;
use super::host::{Crossing, Host};
use super::known::Known;

/// Where it is published; the topic stays on its host.
pub const TOPIC: &str = "/_rnet/link";
const PERIOD: Duration = Duration::from_secs(1);

type Publisher = rnet::Publisher<LinkStatus>;
/// Topic, and whether it crosses to this host.
type Key = (HostId, String, bool);

pub struct Status {
    publisher: Publisher,
    sent: Option<Instant>,
    /// Hosts as they were told last: since when they are as they are.
    hosts: BTreeMap<HostId, (link_status::State, rnet::msgs::Timestamp)>,
    counts: HashMap<Key, (u64, u64)>,
    faults: usize,
}

impl Status {
    /// # Errors
    /// Of opening the publisher.
    pub fn new(shared: &Arc<Shared>) -> Result<Status> {
        let options = PublisherOptions::new().transient_local(1);
        let publisher = shared.node.publisher_with(TOPIC, options)?;
        let (hosts, counts) = (BTreeMap::new(), HashMap::new());
        Ok(Status { publisher, sent: None, hosts, counts, faults: 0 })
    }

    /// Sends the status if it is due.
    pub fn look(&mut self, known: &Known, hosts: &BTreeMap<HostId, Host>) {
        let mut changed = known.faults.len() != self.faults;
        self.faults = known.faults.len();
        for (id, host) in hosts {
            let state = host.state();
            if self.hosts.get(id).is_none_or(|(before, _)| *before != state) {
                self.hosts.insert(*id, (state, timestamp_now()));
                changed = true;
            }
        }
        for (id, (state, since)) in &mut self.hosts {
            if !hosts.contains_key(id) && *state != link_status::State::Lost {
                (*state, *since) = (link_status::State::Lost, timestamp_now());
                changed = true;
            }
        }
        let elapsed = self.sent.map(|sent| sent.elapsed());
        if !changed && elapsed.is_some_and(|elapsed| elapsed < PERIOD) {
            return;
        }
        self.sent = Some(Instant::now());
        let status = self.make(known, hosts, elapsed.unwrap_or(PERIOD));
        // It keeps one message; a send fails where there is no memory, which others are told of.
        let _ = self.publisher.send(&status);
    }

    fn make(
        &mut self,
        known: &Known,
        hosts: &BTreeMap<HostId, Host>,
        elapsed: Duration,
    ) -> LinkStatus {
        let shared = &known.shared;
        let mut counts = HashMap::new();
        let mut peers = Vec::new();
        for (id, (state, since)) in &self.hosts {
            let mut peer = link_status::Peer {
                id: id.to_string(),
                state: (*state).into(),
                since: Some(*since),
                ..Default::default()
            };
            if let Some(host) = hosts.get(id) {
                peer.host = host.name();
                if let Some(hello) = &host.hello {
                    peer.version.clone_from(&hello.release);
                }
                if let Some(clock) = host.clock() {
                    let ns = |ns: u64| Some(duration_from_ns(ns.try_into().unwrap_or(i64::MAX)));
                    peer.round_trip = ns(clock.round_trip_ns);
                    peer.clock_offset = Some(duration_from_ns(clock.offset_ns));
                    peer.clock_offset_uncertainty = ns(clock.uncertainty_ns);
                }
                peer.nodes = host.node_count();
                for crossing in host.crossing(known) {
                    let key = (*id, crossing.topic.clone(), crossing.inwards);
                    let before = self.counts.get(&key).copied().unwrap_or_default();
                    peer.topics.push(topic_of(&crossing, before, elapsed));
                    counts.insert(key, (crossing.messages, crossing.bytes));
                }
            }
            peers.push(peer);
        }
        self.counts = counts;
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
            problems: known.faults.clone(),
        }
    }
}

fn topic_of(crossing: &Crossing, before: (u64, u64), elapsed: Duration) -> link_status::Topic {
    use link_status::{Cause, Direction};
    let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / elapsed.as_secs_f64();
    let direction = if crossing.inwards { Direction::In } else { Direction::Out };
    let (cause, text) = match crossing.held_back {
        true => (Cause::Credit, "the other host has no room: its subscribers are behind"),
        false => (Cause::Unspecified, ""),
    };
    link_status::Topic {
        name: crossing.topic.clone(),
        direction: direction.into(),
        rate_hz: rate(crossing.messages, before.0),
        bytes_per_s: rate(crossing.bytes, before.1),
        messages: crossing.messages,
        lost: Some(link_status::Lost { link: crossing.lost, ..Default::default() }),
        skipped: crossing.skipped,
        held_back: cause.into(),
        held_back_text: text.to_owned(),
    }
}
