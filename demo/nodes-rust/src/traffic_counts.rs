//! Counts the traffic of a domain: what every publisher sent, and what happened to it at every subscriber,
//! including those that are gone.
//!
//! The files of a killed process are removed. So this keeps the log of each known publisher open
//! ([`Observer`]), and reads from it how much was sent in total.

use std::collections::{BTreeMap, HashMap};

use rnet::LossCounts;
use rnet::inspect::{Observation, Observer, PublisherInfo, Snapshot, SubscriptionInfo};
use serde_json::{Value, json};

use crate::rates::{add, channels, is_sampler, latency_us};

/// A publisher, as last seen.
#[derive(Debug)]
struct Sender {
    info: PublisherInfo,
    gone: bool,
    log: Option<Observer>,
    /// For a proxy: the number of its first message at the original publisher.
    first: Option<u64>,
}

/// A subscription, as last seen.
#[derive(Debug)]
struct Receiver {
    info: SubscriptionInfo,
    gone: bool,
    /// The publishers that serve or have served it, and the first message from each.
    served: BTreeMap<u64, u64>,
}

/// The counts of a domain.
#[derive(Debug, Default)]
pub struct TrafficCounts {
    senders: BTreeMap<u64, Sender>,
    receivers: BTreeMap<u64, Receiver>,
}

impl TrafficCounts {
    /// Updates the counts from a snapshot of the domain.
    pub fn enter(&mut self, snapshot: Snapshot) {
        let seen: HashMap<u64, ()> = snapshot.publishers.iter().map(|p| (p.id, ())).collect();
        for (_, sender) in self.senders.iter_mut().filter(|(id, _)| !seen.contains_key(id)) {
            sender.close();
        }
        let seen: HashMap<u64, ()> = snapshot.subscriptions.iter().map(|s| (s.id, ())).collect();
        for (_, receiver) in self.receivers.iter_mut().filter(|(id, _)| !seen.contains_key(id)) {
            receiver.gone = true;
        }
        for info in snapshot.subscriptions {
            match self.receivers.get_mut(&info.id) {
                Some(known) => known.info = info,
                None => {
                    let id = info.id;
                    let new = Receiver { info, gone: false, served: BTreeMap::new() };
                    self.receivers.insert(id, new);
                }
            }
        }
        for info in snapshot.publishers {
            for admitted in &info.admitted {
                // The first position counts: a reader that was detached and admitted again has lost the
                // messages in between, and has counted them.
                let Some(receiver) = self.receivers.get_mut(&admitted.subscription) else {
                    continue;
                };
                // A subscription that was served by the previous proxy continues: it must get all messages of
                // the next one.
                let before = receiver.served.keys().filter(|id| **id != info.id);
                let goes_on = info.via.is_some()
                    && before
                        .filter_map(|id| self.senders.get(id))
                        .any(|before| before.info.stands_for == info.stands_for);
                let start = if goes_on { 0 } else { admitted.start_seq };
                receiver.served.entry(info.id).or_insert(start);
            }
            let id = info.id;
            let is_proxy = info.via.is_some();
            let (log, first) = match self.senders.remove(&id) {
                Some(known) => (known.log, known.first),
                None => (Observer::open(info.path.clone(), id, is_proxy).ok(), None),
            };
            let mut sender = Sender { info, gone: false, log, first };
            if is_proxy {
                sender.read();
            }
            self.senders.insert(id, sender);
        }
    }

    /// The counts as JSON, for `demo/accounting.py`.
    pub fn to_json(&self) -> Value {
        json!({
            "publishers": self.senders.values().map(Sender::to_json).collect::<Vec<_>>(),
            "subscriptions": self
                .receivers
                .values()
                .map(|receiver| receiver.to_json(&self.senders))
                .collect::<Vec<_>>(),
            "latency_us": self.latency(),
        })
    }

    /// Latency by topic over the whole run, of all subscribers that do not sample.
    fn latency(&self) -> Value {
        let mut topics: BTreeMap<&str, (Vec<u64>, u64)> = BTreeMap::new();
        for receiver in self.receivers.values() {
            let topic = topics.entry(&receiver.info.topic).or_default();
            if is_sampler(&receiver.info) {
                continue;
            }
            for channel in channels(&receiver.info) {
                add(&mut topic.0, &channel.latency);
                topic.1 = topic.1.max(channel.max_latency_ns);
            }
        }
        let of = |(topic, (counts, longest)): (&str, (Vec<u64>, u64))| {
            (topic.to_owned(), latency_us(&counts, longest))
        };
        topics.into_iter().map(of).collect()
    }
}

impl Sender {
    /// The publisher is gone: reads the rest of its log to find how much it had sent.
    fn close(&mut self) {
        self.gone = true;
        self.read();
        if let Some(log) = self.log.take() {
            self.info.known_lost = log.known_lost();
        }
    }

    /// Reads the log to its end.
    fn read(&mut self) {
        let Some(log) = &mut self.log else { return };
        let (mut bytes, mut newest) = (Vec::new(), None);
        loop {
            let next = match log.poll(&mut bytes) {
                Observation::Message(stamp) => stamp.seq + 1,
                Observation::Missed(missed) => missed.first_seq + missed.count,
                _ => break,
            };
            self.info.sent = self.info.sent.max(next);
            newest = log.message_meta().origin.map(|origin| (origin.seq + 1, next)).or(newest);
        }
        // Messages known to be missing may precede or follow the newest one: the number may be too low, but
        // never too high.
        let before =
            |(origin, next): (u64, u64)| origin.checked_sub(next + log.known_lost().total());
        self.first = newest.and_then(before).max(self.first);
    }

    fn to_json(&self) -> Value {
        json!({
            "id": self.info.id,
            "node": self.info.node,
            "topic": self.info.topic,
            "sent": self.info.sent,
            "readers": self.info.readers,
            "gone": self.gone,
            "proxy": self.info.via.is_some(),
            "stands_for": self.info.stands_for,
            "known_lost": self.info.known_lost,
            "first": self.first,
            "kept": self.info.qos.history(),
        })
    }
}

impl Receiver {
    fn to_json(&self, senders: &BTreeMap<u64, Sender>) -> Value {
        let mut lost = LossCounts::default();
        let (mut received, mut skipped, mut queued) = (0, 0, 0);
        for channel in channels(&self.info) {
            lost.add(&channel.lost);
            received += channel.received;
            skipped += channel.skipped;
        }
        for channel in &self.info.channels {
            queued += channel.behind.messages;
        }
        let sent = |id: &u64| senders.get(id).map_or(0, |sender| sender.info.sent);
        let owed: u64 = self.served.iter().map(|(id, start)| sent(id).saturating_sub(*start)).sum();
        let unserved =
            self.info.channels.iter().filter(|c| !self.served.contains_key(&c.publisher)).count();
        json!({
            "id": self.info.id,
            "node": self.info.node,
            "topic": self.info.topic,
            "gone": self.gone,
            "proxy": self.info.via.is_some(),
            "publishers": self.served.len(),
            "unserved": unserved,
            // Messages sent after the subscription ended are not owed.
            "owed": (!self.gone).then_some(owed),
            "received": received,
            "skipped": skipped,
            "queued": queued,
            "lost": lost,
        })
    }
}
