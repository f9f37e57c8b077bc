//! A trace follows messages from host to host, and reports the uncertainty of the clock offsets that it
//! uses. The hosts of these tests share one real clock, so the times can be checked.

use crate::common;
use crate::hosts;

use std::time::Duration;

use common::{LONG, eventually};
use hosts::Hosts;
use rnet::trace::{TraceRecord, trace_topic};
use rnet::{Error, Node, Publisher, Subscriber, TopicName, now_ns};

/// The interval of a sensor's messages.
const PERIOD: Duration = Duration::from_millis(2);

fn tracer(node: &Node, topic: &str) -> Subscriber<[u8]> {
    let topic = trace_topic(&TopicName::new(topic).unwrap()).unwrap();
    node.subscriber(topic.as_str())
        .keep_all()
        .message_type(TraceRecord::plain_type())
        .open()
        .unwrap()
}

/// A received record: its node, and the conversion of its times to the clock of the tracer's host.
struct TracedRecord {
    node: String,
    record: TraceRecord,
    /// Added to its times.
    offset_ns: i64,
    /// The largest error of that; `None` if it is unknown.
    uncertain_ns: Option<u64>,
}

impl TracedRecord {
    /// The largest error of its send time on the tracer's clock.
    fn sent_uncertain_ns(&self) -> Option<u64> {
        let there = Some(self.record.uncertain_ns).filter(|ns| *ns != u64::MAX)?;
        Some(there + self.uncertain_ns?)
    }
}

/// The next record, if one comes before the next message of the sensor.
fn next(tracer: &mut Subscriber<[u8]>) -> Option<TracedRecord> {
    let sample = match tracer.recv_timeout(PERIOD) {
        Ok(sample) => sample,
        // A tracer that starts as another one leaves meets the end of that one's trace.
        Err(Error::Timeout { .. } | Error::PeerLost { .. }) => return None,
        Err(error) => panic!("{error}"),
    };
    let record = TraceRecord::from_bytes(&sample).unwrap();
    assert!(record.is_consistent(), "{record:?}");
    Some(TracedRecord {
        node: sample.node().to_owned(),
        record,
        offset_ns: sample.sent_ns().wrapping_sub(record.written_ns).cast_signed(),
        uncertain_ns: sample.sent_uncertainty_ns(),
    })
}

/// A sensor that records the start and the end of each send.
struct Lidar {
    scans: Publisher<[u8]>,
    sent: Vec<[u64; 2]>,
}

impl Lidar {
    fn new(node: &Node) -> Lidar {
        let scans = node.publisher::<[u8]>("/scan").open().unwrap();
        scans.wait_for_subscribers_timeout(1, LONG).unwrap();
        Lidar { scans, sent: Vec::new() }
    }

    /// Sends until such a record has come.
    fn until(
        &mut self,
        trace: &mut Subscriber<[u8]>,
        wanted: impl Fn(&TracedRecord) -> bool,
    ) -> TracedRecord {
        let mut found = None;
        eventually("it is traced", || {
            let before_ns = now_ns();
            self.scans.send(b"scan").unwrap();
            self.sent.push([before_ns, now_ns()]);
            found = next(trace).filter(&wanted);
            found.is_some()
        });
        found.unwrap()
    }
}

#[test]
fn message_is_traced_across_hosts_from_any_host() {
    let hosts = Hosts::new("trace hosts", 3);
    let (lidar, map) = (hosts.node(0, "lidar"), hosts.node(1, "map"));
    let _heard = map.subscriber::<[u8]>("/scan").open().unwrap().on(|_| ());
    let mut lidar = Lidar::new(&lidar);
    for host in 0..3 {
        let node = hosts.node(host, "tracer");
        let mut trace = tracer(&node, "/scan");
        let seen_as = if host == 1 { "/map" } else { "@host1/map" };
        let is_known =
            |traced: &TracedRecord| traced.node == seen_as && traced.sent_uncertain_ns().is_some();
        let traced = lidar.until(&mut trace, is_known);
        // Its own host has only its own clock; another host's clock is never known exactly.
        assert_eq!(traced.uncertain_ns == Some(0), host == 1, "{:?}", traced.uncertain_ns);
        assert!(traced.record.uncertain_ns > 0);
        let (publisher, seq) = traced.record.message();
        assert_eq!(publisher, lidar.scans.id());
        let [before_ns, after_ns] = lidar.sent[seq as usize];
        let sent_ns = traced.record.sent_ns.saturating_add_signed(traced.offset_ns);
        let uncertain_ns = traced.sent_uncertain_ns().unwrap();
        assert!(
            (before_ns.saturating_sub(uncertain_ns)..=after_ns + uncertain_ns).contains(&sent_ns),
            "sent at {before_ns} to {after_ns}, {sent_ns} ± {uncertain_ns} on the tracer's host"
        );
        // On the publisher's host there is one clock. The forwarding link does not count as a receiver.
        let beside = hosts.node(0, "beside");
        let _beside = beside.subscriber::<[u8]>("/scan").open().unwrap().on(|_| ());
        let traced = lidar.until(&mut trace, |traced| traced.node != seen_as);
        assert!(traced.node.ends_with("/beside"), "{}", traced.node);
        assert_eq!((traced.record.uncertain_ns, traced.record.origin_publisher), (0, 0));
    }
}

#[test]
fn cut_cable_ends_a_remote_trace_which_resumes_after_healing() {
    let hosts = Hosts::new("trace cut", 2);
    let (lidar, map, desk) = (hosts.node(1, "lidar"), hosts.node(1, "map"), hosts.node(0, "desk"));
    let (sender, receiver) = std::sync::mpsc::channel();
    let _heard =
        map.subscriber::<[u8]>("/scan").open().unwrap().on(move |_| sender.send(()).unwrap());
    let mut lidar = Lidar::new(&lidar);
    let mut trace = tracer(&desk, "/scan");
    lidar.until(&mut trace, |_| true);
    let is_traced = || {
        let seen = hosts.domain(1).inspect();
        seen.publishers.iter().any(|p| p.topic == "/_rnet/trace/scan" && p.via.is_none())
    };
    assert!(is_traced());
    hosts.cut(0, 1);
    eventually("no node there records for the lost host", || !is_traced());
    receiver.try_iter().for_each(drop);
    lidar.scans.send(b"meanwhile").unwrap();
    receiver.recv_timeout(LONG).unwrap();
    eventually("the tracer learns of the loss", || trace.publisher_count() == 0);
    hosts.heal(0, 1);
    assert_eq!(lidar.until(&mut trace, |_| true).node, "@host1/map");
}
