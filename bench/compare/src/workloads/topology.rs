//! A robot of many nodes: each a process, with the topics, periods and sizes of a topology file.

use super::{Choice, Context, Job, PhasePlan, Workload};
use bench_harness::spec::{Expect, Load, PublishSpec, Role, SubscribeSpec};
use bench_harness::{Error, Lane, Profile, Result, Topic};
use rnet_bench::topology::{Publish, Topology};

pub fn workloads() -> Vec<Workload> {
    vec![Workload {
        name: "sierra_nevada",
        title: "A robot of ten nodes",
        about: "iRobot's published topology sierra_nevada (or the one given with --topology), one \
                process per node. Late: more than min(20 % of the period, 5 ms) after being sent; \
                too late: more than min(period, 50 ms).",
        systems: Choice::These(&[
            "rnet-adaptive",
            "rnet-block",
            "cyclonedds",
            "zenoh-tcp",
            "zmq-tcp",
            "nats",
        ]),
        jobs,
    }]
}

fn jobs(context: &Context, _repetition: usize) -> Result<Vec<Job>> {
    let topology = Topology::read(&context.topology).map_err(|e| Error::new(e.to_string()))?;
    topology.check_types().map_err(Error::new)?;
    let seconds = 3.0 * context.scale;
    let published: Vec<&Publish> = topology.nodes.iter().flat_map(|n| &n.publishes).collect();
    let subscribers = |topic: &str| {
        topology.nodes.iter().flat_map(|n| &n.subscribes).filter(|t| *t == topic).count()
    };
    let topic = |name: &str, index: usize| Topic {
        name: name.into(),
        profile: Profile::Latency,
        lane: Lane::Bulk,
        max_len: published
            .iter()
            .filter(|p| p.topic == name)
            .map(|p| p.len_bytes)
            .max()
            .unwrap_or(0),
        publishers: published.iter().filter(|p| p.topic == name).count(),
        subscribers: subscribers(name),
        index,
    };
    let mut processes = Vec::new();
    let (mut publishers_seen, mut subscribers_seen) = (Seen::default(), Seen::default());
    for node in &topology.nodes {
        let publish = |p: &Publish| PublishSpec {
            topic: topic(&p.topic, publishers_seen.next(&p.topic)),
            loads: vec![Some(Load {
                len: p.len_bytes,
                count: u64::MAX,
                seconds,
                rate_hz: Some(p.rate_hz()),
                filled: false,
            })],
        };
        let publishes = node.publishes.iter().map(publish).collect();
        let subscribe = |name: &String| {
            // With publishers of several periods the shortest one determines lateness.
            let strictest = published
                .iter()
                .filter(|p| p.topic == *name)
                .min_by(|a, b| a.period_ms.total_cmp(&b.period_ms));
            let expect = Expect {
                len: 0,
                late_ns: strictest.map(|p| p.late_ns()),
                too_late_ns: strictest.map(|p| p.too_late_ns()),
            };
            SubscribeSpec { topic: topic(name, subscribers_seen.next(name)), expects: vec![expect] }
        };
        let subscribes = node.subscribes.iter().map(subscribe).collect();
        processes.push((node.name.clone(), Role::Peer { publishes, subscribes }));
    }
    let phase =
        PhasePlan { label: "robot".into(), len: None, rate_hz: None, limited_to: None, seconds };
    Ok(vec![Job {
        variant: topology.name,
        processes,
        phases: vec![phase],
        durable: false,
        cable: None,
    }])
}

/// Numbers the endpoints of each topic.
#[derive(Default)]
struct Seen(std::collections::BTreeMap<String, usize>);

impl Seen {
    fn next(&mut self, topic: &str) -> usize {
        let count = self.0.entry(topic.into()).or_default();
        *count += 1;
        *count - 1
    }
}
