//! Where the time of messages went, out of the records of their subscriptions.
//!
//! [`Edges`] sums them up by publisher and subscription, [`Chain`] follows what came of a message through several topics.
//! docs/design/trace.md says what the records are.

use std::collections::{BTreeMap, HashMap};

use rnet::trace::{TraceRecord, node_of};
use serde::Serialize;

use crate::link::host_of;

mod chain;
mod perfetto;
mod records;
mod svg;
mod view;

pub use chain::{Chain, Hop};
pub use perfetto::perfetto;
pub use records::{PublisherNames, take_records};
pub use svg::svg;
pub use view::TimesView;

/// What a message passes on its way through one subscription, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// From the send on another host until the thread that takes it is awake.
    Network,
    /// From the send until the thread that takes it is awake.
    Wake,
    /// From the send until it is copied, while the thread that takes it is at work.
    Busy,
    /// From waking until it is copied out of shared memory.
    Copy,
    /// From the copy to the callback: behind messages that were copied with it, and decoding.
    Dispatch,
    /// The callback, or the time from this receive to the next.
    Callback,
}

impl Stage {
    /// All of them, in order.
    pub const ALL: [Stage; 6] =
        [Stage::Network, Stage::Wake, Stage::Busy, Stage::Copy, Stage::Dispatch, Stage::Callback];

    /// `network`, `wake`, `busy`, `copy`, `dispatch` or `callback`.
    pub fn name(self) -> &'static str {
        ["network", "wake", "busy", "copy", "dispatch", "callback"][self as usize]
    }
}

/// The times in each stage of a message that passed it, in ns. Their sum is the time from the send to the end.
pub fn stages(record: &TraceRecord) -> impl Iterator<Item = (Stage, u64)> {
    let TraceRecord { sent_ns, woken_ns, taken_ns, began_ns, ended_ns, .. } = *record;
    let awake_ns = if woken_ns == 0 { taken_ns } else { woken_ns };
    let first = match (record.origin_publisher, woken_ns) {
        (0, 0) => Stage::Busy,
        (0, _) => Stage::Wake,
        _ => Stage::Network,
    };
    let copy = (woken_ns != 0).then_some((Stage::Copy, taken_ns.saturating_sub(awake_ns)));
    [
        Some((first, awake_ns.saturating_sub(sent_ns))),
        copy,
        Some((Stage::Dispatch, began_ns.saturating_sub(taken_ns))),
        Some((Stage::Callback, ended_ns.saturating_sub(began_ns))),
    ]
    .into_iter()
    .flatten()
}

/// How far from the truth a time may be that two clocks have measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Uncertainty {
    /// At most so much more or less, in ns; 0 for a time of one clock.
    Ns(u64),
    /// That is not known.
    Unknown,
}

impl Uncertainty {
    /// Of a time of one clock.
    pub const NONE: Uncertainty = Uncertainty::Ns(0);

    /// As a record or the link says it.
    pub fn of(ns: Option<u64>) -> Uncertainty {
        ns.map_or(Uncertainty::Unknown, Uncertainty::Ns)
    }

    /// Of a time between two that are uncertain each.
    fn and(self, other: Uncertainty) -> Uncertainty {
        match (self, other) {
            (Uncertainty::Ns(one), Uncertainty::Ns(other)) => {
                Uncertainty::Ns(one.saturating_add(other))
            }
            _ => Uncertainty::Unknown,
        }
    }
}

impl Serialize for Uncertainty {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Uncertainty::Ns(ns) => in_us(ns, to),
            Uncertainty::Unknown => to.serialize_none(),
        }
    }
}

/// How far from the truth the send of a record may be, on the clock of the subscription's host.
pub fn sent_uncertain(record: &TraceRecord) -> Uncertainty {
    Uncertainty::of(Some(record.uncertain_ns).filter(|ns| *ns != u64::MAX))
}

/// A record, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The topic of the message.
    pub topic: String,
    /// The node of the subscription, as it is shown here.
    pub node: String,
    /// The record, its times on this host's clock.
    pub record: TraceRecord,
    /// How far from the truth all its times may be together on this host's clock, if it is of another host.
    pub clock: Uncertainty,
}

impl Traced {
    /// Puts the times of a record of another host on this host's clock, on which it was written at `written_ns`, which may
    /// be uncertain.
    pub fn on_our_clock(mut self, written_ns: u64, clock: Uncertainty) -> Traced {
        self.clock = clock;
        let record = &mut self.record;
        let offset_ns = written_ns.wrapping_sub(record.written_ns).cast_signed();
        for time in [
            &mut record.sent_ns,
            &mut record.woken_ns,
            &mut record.taken_ns,
            &mut record.began_ns,
            &mut record.ended_ns,
            &mut record.written_ns,
        ] {
            if *time != 0 {
                *time = time.saturating_add_signed(offset_ns);
            }
        }
        self
    }

    /// The host of its subscription; `None` for this one.
    fn host(&self) -> Option<&str> {
        host_of(&self.node).0
    }

    /// How far from the truth a time from one of its own to one of `other` may be.
    fn until(&self, other: &Traced) -> Uncertainty {
        match self.host() == other.host() {
            true => Uncertainty::NONE,
            false => self.clock.and(other.clock),
        }
    }
}

/// How long something took, of many times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// How many there are.
    pub count: usize,
    /// Half of them are no longer, in ns.
    #[serde(rename = "p50_us", serialize_with = "in_us")]
    pub p50_ns: u64,
    /// 99 of 100 are no longer, in ns.
    #[serde(rename = "p99_us", serialize_with = "in_us")]
    pub p99_ns: u64,
    /// The longest, in ns.
    #[serde(rename = "max_us", serialize_with = "in_us")]
    pub max_ns: u64,
}

impl Times {
    /// Of these, in ns.
    pub fn of(mut times_ns: Vec<u64>) -> Times {
        times_ns.sort_unstable();
        let at = |share: f64| {
            // The nearest rank: the smallest of which as large a share are no longer.
            let rank = (share * times_ns.len() as f64).ceil() as usize;
            times_ns.get(rank.max(1) - 1).copied().unwrap_or_default()
        };
        Times { count: times_ns.len(), p50_ns: at(0.5), p99_ns: at(0.99), max_ns: at(1.0) }
    }
}

fn in_us<S: serde::Serializer>(ns: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(*ns as f64 / 1e3)
}

/// The messages of one publisher that one subscription has received.
#[derive(Clone, Debug, Serialize)]
pub struct Edge {
    /// The topic.
    pub topic: String,
    /// The node of the publisher; `(gone)` if nobody knows it any more.
    pub publisher: String,
    /// The node of the subscription.
    pub subscriber: String,
    /// How many were traced.
    pub traced: usize,
    /// How many the subscription received beside them between the first and the last.
    pub untraced: u64,
    /// The time in each stage, of the messages that passed it.
    pub stages: BTreeMap<Stage, Times>,
    /// The time from the send to the end.
    pub total: Times,
    /// How far from the truth the stage `network` and the total may be; 0 if both ends are on one host.
    #[serde(rename = "uncertain_us")]
    pub uncertain: Uncertainty,
}

/// All edges of a trace, by topic, publisher and subscriber.
pub struct Edges;

impl Edges {
    /// Sums up records; `name_of` says in which node a publisher is.
    pub fn of(records: &[Traced], name_of: impl Fn(&TraceRecord) -> Option<String>) -> Vec<Edge> {
        let mut by_edge: BTreeMap<(&str, u64, u64), Vec<&Traced>> = BTreeMap::new();
        for traced in records {
            let key =
                (traced.topic.as_str(), traced.record.message().0, traced.record.subscription);
            by_edge.entry(key).or_default().push(traced);
        }
        let untraced = untraced(records);
        let mut edges: Vec<Edge> = by_edge
            .into_values()
            .map(|of| {
                let first = &of[0];
                let mut times: BTreeMap<Stage, Vec<u64>> = BTreeMap::new();
                for (stage, ns) in of.iter().flat_map(|traced| stages(&traced.record)) {
                    times.entry(stage).or_default().push(ns);
                }
                let total = |t: &&Traced| t.record.ended_ns.saturating_sub(t.record.sent_ns);
                Edge {
                    topic: first.topic.clone(),
                    publisher: name_of(&first.record).unwrap_or_else(|| "(gone)".to_owned()),
                    subscriber: first.node.clone(),
                    traced: of.len(),
                    untraced: untraced.get(&first.record.subscription).copied().unwrap_or(0),
                    stages: times.into_iter().map(|(stage, ns)| (stage, Times::of(ns))).collect(),
                    total: Times::of(of.iter().map(total).collect()),
                    uncertain: most(of.iter().map(|traced| sent_uncertain(&traced.record))),
                }
            })
            .collect();
        let key = |e: &Edge| (e.topic.clone(), e.publisher.clone(), e.subscriber.clone());
        edges.sort_by_key(key);
        edges
    }
}

/// The largest of these.
fn most(all: impl Iterator<Item = Uncertainty>) -> Uncertainty {
    all.max().unwrap_or(Uncertainty::NONE)
}

/// How many messages each subscription received between its first and its last record without one.
fn untraced(records: &[Traced]) -> HashMap<u64, u64> {
    let mut seen: HashMap<u64, (u64, u64, u64)> = HashMap::new();
    for Traced { record, .. } in records {
        let received = record.received;
        let (first, last, count) =
            seen.entry(record.subscription).or_insert((received, received, 0));
        (*first, *last, *count) = ((*first).min(received), (*last).max(received), *count + 1);
    }
    let left = |(first, last, count): (u64, u64, u64)| (last - first + 1).saturating_sub(count);
    seen.into_iter().map(|(id, seen)| (id, left(seen))).collect()
}

/// The node of a subscription's records, whatever it is called.
fn node(record: &TraceRecord) -> u64 {
    node_of(record.subscription)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn record(sent_ns: u64, received: u64) -> TraceRecord {
        TraceRecord {
            subscription: 1,
            publisher: 2,
            seq: received,
            sent_ns,
            woken_ns: sent_ns + 10,
            taken_ns: sent_ns + 12,
            began_ns: sent_ns + 15,
            ended_ns: sent_ns + 115,
            written_ns: sent_ns + 115,
            received,
            ..TraceRecord::default()
        }
    }

    fn traced(record: TraceRecord) -> Traced {
        Traced {
            topic: "/imu".to_owned(),
            node: "/estimator".to_owned(),
            record,
            clock: Uncertainty::NONE,
        }
    }

    #[test]
    fn the_stages_are_the_whole_time() {
        let woken = record(1000, 1);
        let busy = TraceRecord { woken_ns: 0, ..woken };
        let far = TraceRecord { origin_publisher: 7, ..woken };
        for record in [woken, busy, far] {
            let sum: u64 = stages(&record).map(|(_, ns)| ns).sum();
            assert_eq!(sum, record.ended_ns - record.sent_ns);
        }
        let names = |record| stages(&record).map(|(stage, _)| stage.name()).collect::<Vec<_>>();
        assert_eq!(names(woken), ["wake", "copy", "dispatch", "callback"]);
        assert_eq!(names(busy), ["busy", "dispatch", "callback"]);
        assert_eq!(names(far)[0], "network");
    }

    #[test]
    fn an_edge_counts_what_was_not_traced() {
        let records = [record(1000, 1), record(2000, 2), record(5000, 5)].map(traced);
        let edges = Edges::of(&records, |_| None);
        assert_eq!(edges.len(), 1);
        assert_eq!((edges[0].traced, edges[0].untraced), (3, 2));
        assert_eq!(edges[0].stages[&Stage::Callback], Times::of(vec![100; 3]));
        assert_eq!(edges[0].total.max_ns, 115);
        assert_eq!(edges[0].publisher, "(gone)");
    }

    #[test]
    fn an_edge_is_as_uncertain_as_its_worst_message() {
        let edge = |uncertain: [u64; 2]| {
            let records = uncertain.map(|uncertain_ns| {
                traced(TraceRecord { uncertain_ns, origin_publisher: 7, ..record(1000, 1) })
            });
            serde_json::to_value(&Edges::of(&records, |_| None)[0]).unwrap()["uncertain_us"].clone()
        };
        assert_eq!(edge([0, 0]), 0.0);
        assert_eq!(edge([500, 2000]), 2.0);
        assert_eq!(edge([500, u64::MAX]), serde_json::Value::Null);
    }

    #[test]
    fn quantiles_are_times_that_were_measured() {
        assert_eq!(Times::of(vec![]), Times::default());
        let hundred = Times::of((1..=100).rev().collect());
        assert_eq!((hundred.p50_ns, hundred.p99_ns, hundred.max_ns), (50, 99, 100));
        assert_eq!(Times::of(vec![7]).p99_ns, 7);
    }

    #[test]
    fn times_of_another_host_are_put_on_our_clock() {
        let there = TraceRecord { woken_ns: 0, ..record(1_000_000, 1) };
        let here =
            traced(there).on_our_clock(there.written_ns - 900_000, Uncertainty::Ns(5)).record;
        assert_eq!((here.sent_ns, here.woken_ns), (100_000, 0));
        assert_eq!(here.ended_ns - here.sent_ns, there.ended_ns - there.sent_ns);
    }
}
