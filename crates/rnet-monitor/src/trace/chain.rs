//! What came of a message through several topics.
//!
//! Which input a message came of is not written in it. The rule: of the messages of the topic before, the one whose
//! callback had begun last in the publisher's node when it published. A node that answers in the callback, one that works
//! on the newest input at times of its own, and one with a thread for each topic are seen as they are; one that hands
//! inputs to other threads and takes the next meanwhile is not.

use std::collections::HashMap;

use rnet::trace::node_of;
use serde::Serialize;

use super::{Times, Traced, node};

/// A part of the way.
#[derive(Clone, Debug, Serialize)]
pub struct Hop {
    /// The topic on which it is, or which it leads to.
    pub topic: String,
    /// From the send until the callback begins.
    pub transport: Times,
    /// From the begin of the callback until it publishes on the next topic; behind the last, until it ends.
    pub work: Times,
}

/// The whole way, from the send of the first topic to the end of the last one's callback.
#[derive(Clone, Debug, Serialize)]
pub struct Chain {
    /// Its parts.
    pub hops: Vec<Hop>,
    /// From end to end.
    pub total: Times,
    /// Messages of the last topic whose way back is not known: something on it was not traced.
    pub unknown: usize,
    /// Those that took longer than the budget, if there is one.
    pub over_budget: Option<usize>,
}

impl Chain {
    /// Follows the messages of the last of `topics` back to the first.
    pub fn of(topics: &[String], records: &[Traced], budget_ns: Option<u64>) -> Chain {
        let inputs: Vec<Inputs<'_>> =
            topics.iter().map(|topic| Inputs::of(topic, records)).collect();
        let mut hops = vec![(Vec::new(), Vec::new()); topics.len()];
        let (mut total, mut unknown) = (Vec::new(), 0);
        let Some(last) = topics.last() else {
            return Chain { hops: Vec::new(), total: Times::of(total), unknown, over_budget: None };
        };
        for end in records.iter().filter(|traced| traced.topic == *last) {
            let Some(way) = way_to(end, &inputs) else {
                unknown += 1;
                continue;
            };
            for (at, traced) in way.iter().enumerate() {
                let record = &traced.record;
                let done_ns = way.get(at + 1).map_or(record.ended_ns, |next| next.record.sent_ns);
                hops[at].0.push(record.began_ns.saturating_sub(record.sent_ns));
                hops[at].1.push(done_ns.saturating_sub(record.began_ns));
            }
            total.push(end.record.ended_ns.saturating_sub(way[0].record.sent_ns));
        }
        let over = |budget_ns| total.iter().filter(|ns| **ns > budget_ns).count();
        let over_budget = budget_ns.map(over);
        let hops = topics.iter().zip(hops).map(|(topic, (transport, work))| Hop {
            topic: topic.clone(),
            transport: Times::of(transport),
            work: Times::of(work),
        });
        Chain { hops: hops.collect(), total: Times::of(total), unknown, over_budget }
    }
}

/// The records from the first topic's to this one of the last.
fn way_to<'a>(end: &'a Traced, inputs: &[Inputs<'a>]) -> Option<Vec<&'a Traced>> {
    let mut way = vec![end];
    for inputs in inputs[..inputs.len() - 1].iter().rev() {
        let record = &way.last()?.record;
        way.push(inputs.before(node_of(record.message().0), record.sent_ns)?);
    }
    way.reverse();
    Some(way)
}

/// What was received on one topic: for each node, its subscriptions' records, in the order in which they began.
struct Inputs<'a>(HashMap<u64, HashMap<u64, Vec<&'a Traced>>>);

impl<'a> Inputs<'a> {
    fn of(topic: &str, records: &'a [Traced]) -> Inputs<'a> {
        let mut nodes: HashMap<u64, HashMap<u64, Vec<&Traced>>> = HashMap::new();
        for traced in records.iter().filter(|traced| traced.topic == topic) {
            let of_node = nodes.entry(node(&traced.record)).or_default();
            of_node.entry(traced.record.subscription).or_default().push(traced);
        }
        for records in nodes.values_mut().flat_map(HashMap::values_mut) {
            records.sort_by_key(|traced| traced.record.began_ns);
        }
        Inputs(nodes)
    }

    /// The one that had begun last in a node at this time; `None` if that was not traced, or may not have been.
    fn before(&self, node: u64, time_ns: u64) -> Option<&'a Traced> {
        let of_node = self.0.get(&node)?;
        let last = |records: &Vec<&'a Traced>| {
            let next = records.partition_point(|traced| traced.record.began_ns <= time_ns);
            let found = records[next.checked_sub(1)?];
            // Between it and the next record there may be messages that were not traced.
            let is_last = match records.get(next) {
                Some(next) => next.record.received == found.record.received.wrapping_add(1),
                None => found.record.ended_ns >= time_ns,
            };
            Some((found, is_last))
        };
        let found = of_node.values().filter_map(last);
        let (found, is_last) = found.max_by_key(|(traced, _)| traced.record.began_ns)?;
        is_last.then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use rnet::trace::TraceRecord;

    use super::*;

    // Endpoints of three nodes; a node's number stands in the upper half.
    const SENSOR: u64 = 1 << 32;
    const ESTIMATOR: u64 = 2 << 32;
    const ACTUATOR: u64 = 3 << 32;

    fn input(topic: &str, (from, to): (u64, u64), times: [u64; 3], received: u64) -> Traced {
        let [sent_ns, began_ns, ended_ns] = times;
        let record = TraceRecord {
            publisher: from,
            subscription: to,
            sent_ns,
            taken_ns: began_ns,
            began_ns,
            ended_ns,
            written_ns: ended_ns,
            received,
            ..TraceRecord::default()
        };
        Traced { topic: topic.to_owned(), node: String::new(), record }
    }

    fn imu(times: [u64; 3], received: u64) -> Traced {
        input("/imu", (SENSOR, ESTIMATOR), times, received)
    }

    fn cmd(times: [u64; 3], received: u64) -> Traced {
        input("/cmd", (ESTIMATOR + 1, ACTUATOR), times, received)
    }

    fn topics() -> Vec<String> {
        ["/imu", "/cmd"].map(str::to_owned).to_vec()
    }

    #[test]
    fn an_output_belongs_to_the_input_that_had_begun_last() {
        assert_ne!(node_of(SENSOR), node_of(ESTIMATOR));
        let records = [
            imu([100, 110, 150], 1),
            imu([200, 210, 250], 2),
            // In the callback of the first, and behind that of the second.
            cmd([140, 145, 170], 1),
            cmd([255, 260, 270], 2),
            imu([300, 310, 350], 3),
        ];
        let chain = Chain::of(&topics(), &records, Some(69));
        assert_eq!((chain.total.count, chain.unknown), (2, 0));
        assert_eq!((chain.total.p50_ns, chain.total.max_ns), (70, 70));
        assert_eq!(chain.over_budget, Some(2));
        assert_eq!(chain.hops[0].transport, Times::of(vec![10, 10]));
        assert_eq!(chain.hops[0].work, Times::of(vec![30, 45]));
        assert_eq!(chain.hops[1].work, Times::of(vec![25, 10]));
    }

    #[test]
    fn where_something_was_not_traced_nothing_is_said() {
        let records = [
            imu([100, 110, 150], 1),
            // Number 2 was not traced, and may have begun before this.
            cmd([255, 260, 270], 1),
            imu([300, 310, 350], 3),
            // Behind the last record there may be others.
            cmd([360, 365, 370], 2),
            cmd([90, 95, 99], 3),
        ];
        let chain = Chain::of(&topics(), &records, None);
        assert_eq!((chain.total.count, chain.unknown, chain.over_budget), (0, 3, None));
    }

    #[test]
    fn another_nodes_inputs_are_not_ours() {
        let records =
            [input("/imu", (SENSOR, ACTUATOR), [100, 110, 150], 1), cmd([140, 145, 170], 1)];
        assert_eq!(Chain::of(&topics(), &records, None).unknown, 1);
        assert!(Chain::of(&[], &records, None).hops.is_empty());
    }
}
