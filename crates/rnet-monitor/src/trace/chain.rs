//! Follows messages through several topics.
//!
//! A message does not contain which input caused it. The rule: of the messages of the previous topic, it is
//! the one whose callback had begun last in the publisher's node when it published. The rule is correct for
//! nodes that answer in the callback, process the newest input periodically, or have a thread per topic. It
//! is wrong for nodes that pass inputs to other threads and take the next input meanwhile.

use std::collections::HashMap;

use rnet::trace::node_of;
use serde::Serialize;

use super::{Times, Traced, Uncertainty, most, node, sent_uncertain};

/// A segment of the path.
#[derive(Clone, Debug, Serialize)]
pub struct Hop {
    /// The topic of the message.
    pub topic: String,
    /// Time from the send to the begin of the callback.
    pub transport: Times,
    /// Uncertainty of the transport time; 0 on one host.
    #[serde(rename = "transport_uncertain_us")]
    pub transport_uncertain: Uncertainty,
    /// Time from the begin of the callback until it publishes on the next topic; for the last hop, until it
    /// ends.
    pub work: Times,
    /// Uncertainty of the work time, which ends on the clock of the next hop's host; 0 on one host.
    #[serde(rename = "work_uncertain_us")]
    pub work_uncertain: Uncertainty,
}

/// The whole path, from the send of the first topic to the end of the last one's callback.
#[derive(Clone, Debug, Serialize)]
pub struct Chain {
    /// Its segments.
    pub hops: Vec<Hop>,
    /// Total time.
    pub total: Times,
    /// Uncertainty of the total; 0 on one host.
    #[serde(rename = "uncertain_us")]
    pub uncertain: Uncertainty,
    /// Messages of the last topic whose path is unknown because a part of it was not traced.
    pub unknown: usize,
    /// How many of these have an ambiguous input because of the uncertainty of two hosts' clocks.
    pub ambiguous: usize,
    /// Number of messages that exceeded the budget, if there is one.
    pub over_budget: Option<usize>,
}

/// Times of messages on one segment of the path, in ns, and their uncertainty.
#[derive(Default)]
struct HopTimes {
    ns: Vec<u64>,
    uncertain: Vec<Uncertainty>,
}

impl HopTimes {
    fn push(&mut self, (from_ns, to_ns): (u64, u64), uncertain: Uncertainty) {
        self.ns.push(to_ns.saturating_sub(from_ns));
        self.uncertain.push(uncertain);
    }

    fn sum(self) -> (Times, Uncertainty) {
        (Times::of(self.ns), most(self.uncertain.into_iter()))
    }
}

impl Chain {
    /// Follows the messages of the last of `topics` back to the first.
    pub fn of(topics: &[String], records: &[Traced], budget_ns: Option<u64>) -> Chain {
        let inputs: Vec<Inputs<'_>> =
            topics.iter().map(|topic| Inputs::of(topic, records)).collect();
        let mut hops: Vec<_> =
            topics.iter().map(|_| (HopTimes::default(), HopTimes::default())).collect();
        let (mut total, mut unknown, mut ambiguous) = (HopTimes::default(), 0, 0);
        let ends = records.iter().filter(|traced| topics.last() == Some(&traced.topic));
        for end in ends {
            let path = match path_to(end, &inputs) {
                Ok(path) => path,
                Err(why) => {
                    unknown += 1;
                    ambiguous += usize::from(why == NoPath::Ambiguous);
                    continue;
                }
            };
            for (at, traced) in path.iter().enumerate() {
                let (record, (transport, work)) = (&traced.record, &mut hops[at]);
                let sent = sent_uncertain(record);
                transport.push((record.sent_ns, record.began_ns), sent);
                let (done_ns, uncertain) = match path.get(at + 1) {
                    None => (record.ended_ns, Uncertainty::NONE),
                    Some(next) => {
                        (next.record.sent_ns, traced.until(next).and(sent_uncertain(&next.record)))
                    }
                };
                work.push((record.began_ns, done_ns), uncertain);
            }
            let first = path[0];
            let uncertain = sent_uncertain(&first.record).and(first.until(end));
            total.push((first.record.sent_ns, end.record.ended_ns), uncertain);
        }
        let over = |budget_ns| total.ns.iter().filter(|ns| **ns > budget_ns).count();
        let over_budget = budget_ns.filter(|_| !topics.is_empty()).map(over);
        let hops = topics.iter().zip(hops).map(|(topic, (transport, work))| {
            let (transport, transport_uncertain) = transport.sum();
            let (work, work_uncertain) = work.sum();
            Hop { topic: topic.clone(), transport, transport_uncertain, work, work_uncertain }
        });
        let (hops, (total, uncertain)) = (hops.collect(), total.sum());
        Chain { hops, total, uncertain, unknown, ambiguous, over_budget }
    }
}

/// Why a message's path is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoPath {
    /// A part of it was not traced, or may not have been.
    Untraced,
    /// The clocks of two hosts are too uncertain to decide between two inputs.
    Ambiguous,
}

/// The records from the first topic to this one of the last topic.
fn path_to<'a>(end: &'a Traced, inputs: &[Inputs<'a>]) -> Result<Vec<&'a Traced>, NoPath> {
    let mut path = vec![end];
    for inputs in inputs[..inputs.len() - 1].iter().rev() {
        let next = path[path.len() - 1];
        let node = node_of(next.record.message().0);
        let sent_ns = next.record.sent_ns;
        let found = inputs.before(node, sent_ns).ok_or(NoPath::Untraced)?;
        let Uncertainty::Ns(by_ns) = found.until(next).and(sent_uncertain(&next.record)) else {
            return Err(NoPath::Ambiguous);
        };
        let is_it =
            |time_ns| inputs.last_before(node, time_ns).is_some_and(|it| it.is_record(found));
        if by_ns > 0 && !(is_it(sent_ns.saturating_sub(by_ns)) && is_it(sent_ns + by_ns)) {
            return Err(NoPath::Ambiguous);
        }
        path.push(found);
    }
    path.reverse();
    Ok(path)
}

/// Messages received on one topic: for each node, the records of its subscriptions in the order of their
/// begin.
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

    /// The last record that had begun in a node at this time; `None` if it was not traced, or may not have
    /// been.
    fn before(&self, node: u64, time_ns: u64) -> Option<&'a Traced> {
        let found = self.last_before(node, time_ns)?;
        found.is_last.then_some(found.traced)
    }

    fn last_before(&self, node: u64, time_ns: u64) -> Option<LastInput<'a>> {
        let of_node = self.0.get(&node)?;
        let last = |records: &Vec<&'a Traced>| {
            let next = records.partition_point(|traced| traced.record.began_ns <= time_ns);
            let traced = records[next.checked_sub(1)?];
            // Untraced messages may lie between it and the next record.
            let is_last = match records.get(next) {
                Some(next) => next.record.received == traced.record.received.wrapping_add(1),
                None => traced.record.ended_ns >= time_ns,
            };
            Some(LastInput { traced, is_last })
        };
        let found = of_node.values().filter_map(last);
        found.max_by_key(|found| found.traced.record.began_ns)
    }
}

/// The result of a search for a record.
struct LastInput<'a> {
    traced: &'a Traced,
    /// Whether no message can lie between it and the searched time.
    is_last: bool,
}

impl LastInput<'_> {
    fn is_record(&self, traced: &Traced) -> bool {
        std::ptr::eq(self.traced, traced)
    }
}

#[cfg(test)]
mod tests {
    use rnet::trace::TraceRecord;

    use super::*;

    // Endpoints of three nodes; the upper half is the node number.
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
        let clock = Uncertainty::NONE;
        Traced { topic: topic.to_owned(), node: String::new(), record, clock }
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
    fn output_belongs_to_last_begun_input() {
        assert_ne!(node_of(SENSOR), node_of(ESTIMATOR));
        let records = [
            imu([100, 110, 150], 1),
            imu([200, 210, 250], 2),
            // In the callback of the first, and after that of the second.
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
    fn reports_no_path_with_untraced_messages() {
        let records = [
            imu([100, 110, 150], 1),
            // Number 2 was not traced, and may have begun before this.
            cmd([255, 260, 270], 1),
            imu([300, 310, 350], 3),
            // Other messages may follow the last record.
            cmd([360, 365, 370], 2),
            cmd([90, 95, 99], 3),
        ];
        let chain = Chain::of(&topics(), &records, None);
        assert_eq!((chain.total.count, chain.unknown, chain.over_budget), (0, 3, None));
    }

    /// The actuator is on another host, whose clock has an uncertainty of 7 ns; it knows the estimator's
    /// clock to 20 ns.
    fn far(times: [u64; 3], received: u64) -> Traced {
        let mut far = cmd(times, received);
        (far.record.uncertain_ns, far.record.origin_publisher) = (20, ESTIMATOR + 1);
        Traced { node: "@arm/actuator".to_owned(), clock: Uncertainty::Ns(7), ..far }
    }

    #[test]
    fn times_and_paths_between_hosts_are_uncertain() {
        let records = [
            imu([100, 110, 190], 1),
            imu([200, 210, 290], 2),
            imu([300, 310, 390], 3),
            // In the middle of the second, and within the uncertainty of the third.
            far([250, 255, 260], 1),
            far([290, 295, 300], 2),
        ];
        let chain = Chain::of(&topics(), &records, Some(60));
        assert_eq!((chain.total.count, chain.unknown, chain.ambiguous), (1, 1, 1));
        assert_eq!((chain.total.max_ns, chain.uncertain), (60, Uncertainty::Ns(7)));
        let hops = &chain.hops;
        assert_eq!(hops[0].transport_uncertain, Uncertainty::NONE);
        assert_eq!(hops[0].work_uncertain, Uncertainty::Ns(27));
        assert_eq!(hops[1].transport_uncertain, Uncertainty::Ns(20));
        assert_eq!(hops[1].work_uncertain, Uncertainty::NONE);
        // With unknown clocks, no path is reported.
        let mut unknown = far([250, 255, 260], 1);
        unknown.record.uncertain_ns = u64::MAX;
        let chain = Chain::of(
            &topics(),
            &[records[0].clone(), records[1].clone(), records[2].clone(), unknown],
            None,
        );
        assert_eq!((chain.total.count, chain.ambiguous), (0, 1));
        let json = serde_json::to_value(&chain).unwrap();
        assert_eq!(json["uncertain_us"], 0.0);
    }

    #[test]
    fn ignores_inputs_of_other_nodes() {
        let records =
            [input("/imu", (SENSOR, ACTUATOR), [100, 110, 150], 1), cmd([140, 145, 170], 1)];
        assert_eq!(Chain::of(&topics(), &records, None).unknown, 1);
        assert!(Chain::of(&[], &records, None).hops.is_empty());
    }
}
