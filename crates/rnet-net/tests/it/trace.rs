//! A trace follows messages from host to host, and says how well the clocks are known by which it does. The hosts of
//! these tests have one clock in truth, so what is said of times can be held against it.

use crate::common;
use crate::hosts;

use std::time::Duration;

use common::{LONG, eventually};
use hosts::Hosts;
use rnet::trace::{TraceRecord, trace_topic};
use rnet::{Error, Node, Publisher, Subscriber, SubscriberOptions, TopicName, now_ns};

/// Between two messages of a sensor.
const PERIOD: Duration = Duration::from_millis(2);

fn tracer(node: &Node, topic: &str) -> Subscriber<[u8]> {
    let topic = trace_topic(&TopicName::new(topic).unwrap()).unwrap();
    let options = SubscriberOptions::new().keep_all().message_type(TraceRecord::plain_type());
    node.subscriber_with(topic.as_str(), options).unwrap()
}

/// A record as it came: whose it is, and how its times are put on the clock of the tracer's host.
struct TracedRecord {
    node: String,
    record: TraceRecord,
    /// What is to be added to its times.
    offset_ns: i64,
    /// How far from the truth that may be; `None` if it is not known.
    uncertain_ns: Option<u64>,
}

impl TracedRecord {
    /// How far from the truth its send may be on the tracer's clock.
    fn sent_uncertain_ns(&self) -> Option<u64> {
        let there = Some(self.record.uncertain_ns).filter(|ns| *ns != u64::MAX)?;
        Some(there + self.uncertain_ns?)
    }
}

/// The next record, if one comes before the next message of the sensor.
fn next(tracer: &mut Subscriber<[u8]>) -> Option<TracedRecord> {
    let sample = match tracer.recv(Some(PERIOD)) {
        Ok(sample) => sample,
        // A tracer that comes as another one leaves meets the end of that one's trace.
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

/// A sensor that notes from when to when each of its sends lasted.
struct Lidar {
    scans: Publisher<[u8]>,
    sent: Vec<[u64; 2]>,
}

impl Lidar {
    fn new(node: &Node) -> Lidar {
        let scans = node.publisher::<[u8]>("/scan").unwrap();
        scans.wait_for_subscribers(1, LONG).unwrap();
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
fn a_message_is_traced_from_host_to_host_on_whichever_the_tracer_is() {
    let hosts = Hosts::new("trace hosts", 3);
    let (lidar, map) = (hosts.node(0, "lidar"), hosts.node(1, "map"));
    let _heard = map.subscriber::<[u8]>("/scan").unwrap().on(|_| ());
    let mut lidar = Lidar::new(&lidar);
    for host in 0..3 {
        let node = hosts.node(host, "tracer");
        let mut trace = tracer(&node, "/scan");
        let seen_as = if host == 1 { "/map" } else { "@host1/map" };
        let is_known =
            |came: &TracedRecord| came.node == seen_as && came.sent_uncertain_ns().is_some();
        let came = lidar.until(&mut trace, is_known);
        // Its own host has no clock but its own; another one's is never known exactly.
        assert_eq!(came.uncertain_ns == Some(0), host == 1, "{:?}", came.uncertain_ns);
        assert!(came.record.uncertain_ns > 0);
        let (publisher, seq) = came.record.message();
        assert_eq!(publisher, lidar.scans.id());
        let [before_ns, after_ns] = lidar.sent[seq as usize];
        let sent_ns = came.record.sent_ns.saturating_add_signed(came.offset_ns);
        let uncertain_ns = came.sent_uncertain_ns().unwrap();
        assert!(
            (before_ns.saturating_sub(uncertain_ns)..=after_ns + uncertain_ns).contains(&sent_ns),
            "sent at {before_ns} to {after_ns}, {sent_ns} ± {uncertain_ns} on the tracer's host"
        );
        // Beside the publisher there is one clock. The link that forwards is nobody who receives.
        let beside = hosts.node(0, "beside");
        let _beside = beside.subscriber::<[u8]>("/scan").unwrap().on(|_| ());
        let came = lidar.until(&mut trace, |came| came.node != seen_as);
        assert!(came.node.ends_with("/beside"), "{}", came.node);
        assert_eq!((came.record.uncertain_ns, came.record.origin_publisher), (0, 0));
    }
}

#[test]
fn a_cut_cable_ends_a_trace_from_afar_and_it_goes_on_when_it_is_whole() {
    let hosts = Hosts::new("trace cut", 2);
    let (lidar, map, desk) = (hosts.node(1, "lidar"), hosts.node(1, "map"), hosts.node(0, "desk"));
    let (tell, told) = std::sync::mpsc::channel();
    let _heard = map.subscriber::<[u8]>("/scan").unwrap().on(move |_| tell.send(()).unwrap());
    let mut lidar = Lidar::new(&lidar);
    let mut trace = tracer(&desk, "/scan");
    lidar.until(&mut trace, |_| true);
    let is_traced = || {
        let seen = hosts.domain(1).inspect();
        seen.publishers.iter().any(|p| p.topic == "/_rnet/trace/scan" && p.via.is_none())
    };
    assert!(is_traced());
    hosts.cut(0, 1);
    eventually("nobody there records for a host that is gone", || !is_traced());
    told.try_iter().for_each(drop);
    lidar.scans.send(b"meanwhile").unwrap();
    told.recv_timeout(LONG.unwrap()).unwrap();
    eventually("the tracer is told", || trace.publisher_count() == 0);
    hosts.heal(0, 1);
    assert_eq!(lidar.until(&mut trace, |_| true).node, "@host1/map");
}
