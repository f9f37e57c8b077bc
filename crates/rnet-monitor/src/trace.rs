//! Computes where the time of messages is spent, from the trace records of subscriptions.
//!
//! [`Edges`] aggregates them by publisher and subscription; [`Chain`] follows a message through several
//! topics. docs/design/trace.md describes the records.

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

/// A stage of a message on its way through a subscription, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// From the send on another host until the receiving thread is awake.
    Network,
    /// From the send until the receiving thread is awake.
    Wake,
    /// From the send until the copy, while the receiving thread is busy.
    Busy,
    /// From the wakeup until the message is copied out of shared memory.
    Copy,
    /// From the copy to the callback: messages copied together with it, and decoding.
    Dispatch,
    /// The callback, or the time from this receive to the next.
    Callback,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Stage; 6] =
        [Stage::Network, Stage::Wake, Stage::Busy, Stage::Copy, Stage::Dispatch, Stage::Callback];

    /// `network`, `wake`, `busy`, `copy`, `dispatch` or `callback`.
    pub fn name(self) -> &'static str {
        ["network", "wake", "busy", "copy", "dispatch", "callback"][self as usize]
    }
}

/// The time in each stage that a message passed, in ns. The sum is the time from the send to the end.
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

/// Uncertainty of a time that was measured with two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Uncertainty {
    /// At most this deviation in either direction, in ns; 0 for a time of one clock.
    Ns(u64),
    /// The uncertainty is unknown.
    Unknown,
}

impl Uncertainty {
    /// For a time of one clock.
    pub const NONE: Uncertainty = Uncertainty::Ns(0);

    /// From the value in a record or in the link's status.
    pub fn of(ns: Option<u64>) -> Uncertainty {
        ns.map_or(Uncertainty::Unknown, Uncertainty::Ns)
    }

    /// The uncertainty of an interval between two uncertain times.
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

/// Uncertainty of a record's send time, on the clock of the subscription's host.
pub fn sent_uncertain(record: &TraceRecord) -> Uncertainty {
    Uncertainty::of(Some(record.uncertain_ns).filter(|ns| *ns != u64::MAX))
}

/// A record with its topic and node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The topic of the message.
    pub topic: String,
    /// The displayed name of the subscription's node.
    pub node: String,
    /// The record, with times of this host's clock.
    pub record: TraceRecord,
    /// Common uncertainty of all its times on this host's clock, if it is from another host.
    pub clock: Uncertainty,
}

impl Traced {
    /// Converts the times of a remote record to this host's clock. `written_ns` is when it was written on
    /// this clock, which may be uncertain.
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

    /// Uncertainty of an interval from one of its times to one of `other`.
    fn until(&self, other: &Traced) -> Uncertainty {
        match self.host() == other.host() {
            true => Uncertainty::NONE,
            false => self.clock.and(other.clock),
        }
    }
}

/// Statistics of several durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// Number of durations.
    pub count: usize,
    /// Median, in ns.
    #[serde(rename = "p50_us", serialize_with = "in_us")]
    pub p50_ns: u64,
    /// 99th percentile, in ns.
    #[serde(rename = "p99_us", serialize_with = "in_us")]
    pub p99_ns: u64,
    /// Maximum, in ns.
    #[serde(rename = "max_us", serialize_with = "in_us")]
    pub max_ns: u64,
}

impl Times {
    /// Statistics of these durations, in ns.
    pub fn of(mut times_ns: Vec<u64>) -> Times {
        times_ns.sort_unstable();
        let at = |share: f64| {
            // The nearest rank: the smallest value such that at least this share is not longer.
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
    /// The node of the publisher; `(gone)` if it no longer exists.
    pub publisher: String,
    /// The node of the subscription.
    pub subscriber: String,
    /// Number of traced messages.
    pub traced: usize,
    /// Number of other messages that the subscription received between the first and the last traced one.
    pub untraced: u64,
    /// The time in each stage, over the messages that passed it.
    pub stages: BTreeMap<Stage, Times>,
    /// The time from the send to the end.
    pub total: Times,
    /// Uncertainty of the stage `network` and of the total; 0 if both endpoints are on one host.
    #[serde(rename = "uncertain_us")]
    pub uncertain: Uncertainty,
}

/// All edges of a trace, by topic, publisher and subscriber.
pub struct Edges;

impl Edges {
    /// Aggregates records; `name_of` returns the node of a publisher.
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

/// The largest uncertainty.
fn most(all: impl Iterator<Item = Uncertainty>) -> Uncertainty {
    all.max().unwrap_or(Uncertainty::NONE)
}

/// Number of untraced messages of each subscription between its first and its last record.
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

/// The node id of a record's subscription.
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
    fn stages_sum_to_total_time() {
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
    fn edge_counts_untraced_messages() {
        let records = [record(1000, 1), record(2000, 2), record(5000, 5)].map(traced);
        let edges = Edges::of(&records, |_| None);
        assert_eq!(edges.len(), 1);
        assert_eq!((edges[0].traced, edges[0].untraced), (3, 2));
        assert_eq!(edges[0].stages[&Stage::Callback], Times::of(vec![100; 3]));
        assert_eq!(edges[0].total.max_ns, 115);
        assert_eq!(edges[0].publisher, "(gone)");
    }

    #[test]
    fn edge_has_uncertainty_of_its_worst_message() {
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
    fn quantiles_are_measured_times() {
        assert_eq!(Times::of(vec![]), Times::default());
        let hundred = Times::of((1..=100).rev().collect());
        assert_eq!((hundred.p50_ns, hundred.p99_ns, hundred.max_ns), (50, 99, 100));
        assert_eq!(Times::of(vec![7]).p99_ns, 7);
    }

    #[test]
    fn converts_times_of_another_host_to_our_clock() {
        let there = TraceRecord { woken_ns: 0, ..record(1_000_000, 1) };
        let here =
            traced(there).on_our_clock(there.written_ns - 900_000, Uncertainty::Ns(5)).record;
        assert_eq!((here.sent_ns, here.woken_ns), (100_000, 0));
        assert_eq!(here.ended_ns - here.sent_ns, there.ended_ns - there.sent_ns);
    }
}
