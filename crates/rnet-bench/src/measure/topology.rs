//! A complete robot, with one process per node.
//!
//! Late messages are defined as in iRobot's ros2-performance: late above a fifth of the period or 5 ms, too
//! late above the period or 50 ms, whichever is less.

use std::path::Path;
use std::time::Duration;

use crate::topology::Topology;
use crate::worker::Order;
use rnet::{NodeName, TopicName, Wait};
use serde_json::json;

use super::figure::Latencies;
use super::message::Body;
use super::options::TopologyOptions;
use super::report::{self, Case, DeliveryCounts, Figure, Table};
use super::roles::robot::{Publish, Received, RobotJob, RobotReport, Source, Subscribe};
use super::streams::collect;
use super::worker::Role;
use super::worker_link::SEND_PHASE;
use super::workers::NamedRole;
use super::{Bench, BenchHost, BenchReport, runs};
use rnet_format::units;
use rnet_format::{Failure, Outcome};

/// The built-in robot: a walking robot of ten nodes.
pub const EXAMPLE_TOPOLOGY: &str = include_str!("topology/walker.toml");

const RECEIVED: Figure = Figure::new("received", "received", report::count);
const LATE: Figure = Figure::new("late", "late", report::count);
const TOO_LATE: Figure = Figure::new("too late", "too_late", report::count);
const LOST: Figure = Figure::new("lost", "lost", report::count);
const MEAN: Figure = Figure::new("mean", "mean_latency_ns", report::latency);
const TOPIC_FIGURES: [Figure; 6] =
    [RECEIVED, LATE, TOO_LATE, LOST, MEAN, Figure::new("p99", "p99_latency_ns", report::latency)];
const ROBOT_FIGURES: [Figure; 6] = [
    MEAN,
    LATE,
    TOO_LATE,
    Figure::new("CPU", "cores", report::percent),
    Figure::new("memory", "rss_bytes", units::bytes),
    Figure::new("behind", "sender_behind_max_ns", report::latency),
];

pub fn run(host: &mut BenchHost<'_>, options: &TopologyOptions) -> Outcome<BenchReport> {
    let topology = read(options.file.as_deref())?;
    let (seconds, repeats) = options.run.or(3.0, 3);
    let (name, nodes) = (&topology.name, topology.nodes.len());
    let some = runs(repeats, seconds);
    let what = format!("{name}, {nodes} nodes, reliable, {some}");
    let bench = Bench::begin(host, "topology", what)?;
    let case = |topic: &&str| {
        let subscribers = topology.subscribers_of(topic).count();
        let labels = vec![("topic", json!(absolute(topic))), ("readers", json!(subscribers))];
        Case { labels, runs: Vec::new() }
    };
    let names = topology.topics();
    let mut topics: Vec<Case> = names.iter().map(case).collect();
    let (mut robot, mut delivery) = (Vec::new(), DeliveryCounts::default());
    for n in 0..repeats {
        let roles = roles(&topology, seconds);
        let count = roles.len();
        let mut workers = bench.start_workers(n, roles)?;
        workers.order(0..count, Order::phase(SEND_PHASE))?;
        let reports = collect(&mut workers, count, seconds)?;
        workers.stop_all()?;
        let mut all = Latencies::default();
        let (mut late, mut too_late) = (0, 0);
        for (name, case) in names.iter().zip(&mut topics) {
            let topic = TopicResult::of(name, &topology, &reports);
            let DeliveryCounts { received, lost, .. } = topic.delivery;
            let mut run = [received, topic.late, topic.too_late, lost].map(|n| n as f64).to_vec();
            let is_heard = received > 0;
            let p99_ns = topic.latencies.percentiles().p99_ns as f64;
            let latencies = [topic.latencies.mean_ns(), p99_ns];
            run.extend(latencies.map(|ns| if is_heard { ns } else { f64::NAN }));
            case.runs.push(run);
            all.add(&topic.latencies);
            (late, too_late) = (late + topic.late, too_late + topic.too_late);
            delivery += topic.delivery;
        }
        let sum = |of: fn(&RobotReport) -> f64| reports.iter().map(of).sum::<f64>();
        let behind = reports.iter().flat_map(|r| &r.published).map(|p| p.behind_max_ns).max();
        robot.push(vec![
            all.mean_ns(),
            late as f64,
            too_late as f64,
            sum(|r| r.used.cores()),
            sum(|r| r.used.rss_bytes as f64),
            behind.unwrap_or(0) as f64,
        ]);
    }
    let settings = json!({
        "topology": name, "source": topology.source, "nodes": nodes, "reliability": "reliable",
        "seconds": seconds.as_secs_f64(), "repeats": repeats,
    });
    let topics = Table { name: "topics", figures: TOPIC_FIGURES.to_vec(), cases: topics };
    let robot = Table::of_runs("robot", ROBOT_FIGURES.to_vec(), robot);
    let verdict = delivery.verdict(false);
    Ok(bench.report(settings, vec![topics, robot], Some(delivery), verdict))
}

/// The topology of a file, or the built-in one, with names valid for nodes and topics.
fn read(file: Option<&Path>) -> Outcome<Topology> {
    let read = match file {
        Some(path) => Topology::read(path),
        None => Topology::from_toml(EXAMPLE_TOPOLOGY, Path::new("walker.toml")),
    };
    let topology = read.map_err(|error| Failure::Failed(error.to_string()))?;
    for node in &topology.nodes {
        NodeName::new(&node.name)?;
    }
    for topic in topology.topics() {
        TopicName::new(&absolute(topic))?;
    }
    Ok(topology)
}

/// A topic's name with its leading slash.
fn absolute(topic: &str) -> String {
    format!("/{topic}")
}

/// Messages that all subscribers of a topic received in one run.
#[derive(Default)]
struct TopicResult {
    delivery: DeliveryCounts,
    late: u64,
    too_late: u64,
    latencies: Latencies,
}

impl TopicResult {
    fn of(topic: &str, topology: &Topology, reports: &[RobotReport]) -> TopicResult {
        let nodes = || topology.nodes.iter().zip(reports);
        let published = nodes().flat_map(|(node, r)| node.publishes.iter().zip(&r.published));
        let sent: Vec<u64> =
            published.filter(|(p, _)| p.topic == topic).map(|(_, p)| p.sent).collect();
        let received = nodes().flat_map(|(node, r)| node.subscribes.iter().zip(&r.received));
        let mut result = TopicResult::default();
        for (_, received) in received.filter(|(name, _)| *name == topic) {
            let Received { late, too_late, latencies, .. } = received;
            result.delivery += DeliveryCounts::of(received, &sent);
            result.late += late;
            result.too_late += too_late;
            result.latencies.add(latencies);
        }
        result
    }
}

/// The role of each node.
fn roles(topology: &Topology, seconds: Duration) -> Vec<NamedRole> {
    let count: usize = topology.nodes.iter().map(|node| node.publishes.len()).sum();
    let mut indices = std::collections::BTreeMap::<&str, u16>::new();
    let run_ns = seconds.as_secs_f64() * 1e9;
    let mut started = 0;
    let mut roles = Vec::with_capacity(topology.nodes.len());
    for node in &topology.nodes {
        let publishes = node.publishes.iter().map(|publish| {
            let index = indices.entry(&publish.topic).or_default();
            *index += 1;
            let period_ns = publish.period_ms * 1e6;
            started += 1;
            Publish {
                topic: absolute(&publish.topic),
                index: *index - 1,
                len: publish.len_bytes,
                period_ns,
                // Within the run, so that the slow topics of a short run send, too.
                shift_ns: period_ns.min(run_ns) * f64::from(started - 1) / count as f64,
                subscribers: topology.subscribers_of(&publish.topic).count(),
            }
        });
        let publishes = publishes.collect();
        let subscribes = node.subscribes.iter().map(|topic| {
            let sources = topology.publishers_of(topic).map(|(_, publish)| Source {
                len: publish.len_bytes,
                late_ns: publish.late_ns(),
                too_late_ns: publish.too_late_ns(),
            });
            let sources = sources.collect();
            Subscribe { topic: absolute(topic), sources, timed_from: Some(0) }
        });
        let job = RobotJob {
            publishes,
            subscribes: subscribes.collect(),
            seconds,
            body: Body::Whole,
            reliable: true,
            urgent: false,
            wait: Wait::Adaptive,
        };
        roles.push((node.name.clone(), Role::Robot(job)));
    }
    roles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_topic_of_built_in_robot_has_subscriber() {
        let walker = read(None).unwrap();
        assert_eq!(walker.nodes.len(), 10);
        assert!(walker.topics().iter().all(|t| walker.subscribers_of(t).next().is_some()));
    }
}
