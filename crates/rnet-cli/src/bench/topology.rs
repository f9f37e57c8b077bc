//! `rnet bench topology`: a whole robot, a process for each node.
//!
//! What is late is defined as in iRobot's ros2-performance: late above a fifth of the period or
//! 5 ms, too late above the period or 50 ms, whichever is less.

use std::io::Write;
use std::path::Path;

use rnet::{NodeName, TopicName};
use rnet_bench::topology::Topology;
use rnet_bench::worker::Order;
use serde::Serialize;
use serde_json::json;

use super::args::TopologyArgs;
use super::crew::{Crew, Post};
use super::figure::{Latencies, Spread};
use super::job::{COLLECT, GO};
use super::roles::Role;
use super::roles::robot::{Publish, Received, RobotJob, RobotReport, Source, Subscribe};
use super::{Bench, Fate, as_bytes, as_count, as_latency, as_percent, row, runs, spread};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::table;

/// The robot for those who bring none.
const WALKER: &str = include_str!("topology/walker.toml");

/// What became of one topic, of all subscribers and all runs.
#[derive(Debug, Default, Serialize)]
struct Topic {
    topic: String,
    subscribers: usize,
    sent: u64,
    fate: Fate,
    late: u64,
    too_late: u64,
    /// Of the runs. A topic without subscribers has none.
    mean_latency_ns: Option<Spread>,
    p99_latency_ns: Option<Spread>,
    #[serde(skip)]
    means_ns: Vec<f64>,
    #[serde(skip)]
    p99s_ns: Vec<f64>,
}

/// What one run found of the whole robot.
#[derive(Debug, Serialize)]
struct Run {
    mean_latency_ns: f64,
    /// Cores that all nodes together kept busy.
    cores: f64,
    rss_bytes: u64,
    sender_behind_max_ns: u64,
    nodes: Vec<NodeUse>,
}

#[derive(Debug, Serialize)]
struct NodeUse {
    node: String,
    cores: f64,
    rss_bytes: u64,
}

pub fn run(context: &mut Context, args: &TopologyArgs) -> Outcome {
    if args.example {
        context.out().write_all(WALKER.as_bytes())?;
        return Ok(());
    }
    let topology = read(args.file.as_deref())?;
    let (name, nodes) = (&topology.name, topology.nodes.len());
    let some = runs(args.repeats.repeats, args.seconds);
    let what = format_args!("{name}, {nodes} nodes, reliable, {some}");
    let bench = Bench::begin(context, "topology", what)?;
    let mut topics: Vec<Topic> =
        topology.topics().into_iter().map(|topic| Topic::new(&topology, topic)).collect();
    let mut all = Vec::new();
    for n in 0..args.repeats.repeats {
        all.push(one(&bench, n, args, &topology, &mut topics)?);
    }
    for topic in &mut topics {
        let spread = |all: &[f64]| (!all.is_empty()).then(|| Spread::of(all.iter().copied()));
        topic.mean_latency_ns = spread(&topic.means_ns);
        topic.p99_latency_ns = spread(&topic.p99s_ns);
    }
    let fate = Fate::sum(topics.iter().map(|topic| topic.fate));
    let late: u64 = topics.iter().map(|t| t.late).sum();
    let too_late: u64 = topics.iter().map(|t| t.too_late).sum();
    let mean = spread(&all, |r| r.mean_latency_ns);
    let cores = spread(&all, |r| r.cores);
    let rss = spread(&all, |r| r.rss_bytes as f64);
    let behind = spread(&all, |r| r.sender_behind_max_ns as f64);
    if context.json() {
        let settings = json!({
            "topology": name,
            "source": topology.source,
            "nodes": nodes,
            "reliability": "reliable",
            "seconds": args.seconds.as_secs_f64(),
            "repeats": args.repeats.repeats,
        });
        let result = json!({
            "mean_latency_ns": mean,
            "late": late,
            "too_late": too_late,
            "cores": cores,
            "rss_bytes": rss,
            "sender_behind_max_ns": behind,
            "fate": fate,
            "topics": topics,
            "runs": all,
        });
        bench.document(context, settings, result)?;
    } else {
        let titles =
            ["TOPIC", "READERS ", "RECEIVED ", "LATE ", "TOO LATE ", "LOST ", "MEAN ", "P99 "];
        let rows: Vec<Vec<String>> = topics.iter().map(Topic::cells).collect();
        table::print(context, &titles, &rows)?;
        row(context, "mean", format_args!("{}", mean.show(as_latency)))?;
        let of = as_count(fate.received as f64);
        row(context, "late", format_args!("{late} late and {too_late} too late of {of}"))?;
        row(context, "CPU", format_args!("{} of a core, all nodes", cores.show(as_percent)))?;
        row(context, "memory", format_args!("{} RSS, all nodes", rss.show(as_bytes)))?;
        row(context, "behind", format_args!("{} at worst", behind.show(as_latency)))?;
        row(context, "messages", format_args!("{}", fate.show()))?;
    }
    fate.verdict(false)
}

/// The topology of a file, or the built-in one, with names that nodes and topics may have.
fn read(file: Option<&Path>) -> Outcome<Topology> {
    let read = match file {
        Some(path) => Topology::read(path),
        None => Topology::from_toml(WALKER, Path::new("walker.toml")),
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

impl Topic {
    fn new(topology: &Topology, topic: &str) -> Topic {
        let subscribers = topology.subscribers_of(topic).count();
        Topic { topic: absolute(topic), subscribers, ..Topic::default() }
    }

    fn cells(&self) -> Vec<String> {
        let latency = |spread: Option<Spread>| {
            spread.map_or_else(|| "-".to_owned(), |spread| as_latency(spread.median))
        };
        vec![
            self.topic.clone(),
            self.subscribers.to_string(),
            self.fate.received.to_string(),
            self.late.to_string(),
            self.too_late.to_string(),
            self.fate.lost.to_string(),
            latency(self.mean_latency_ns),
            latency(self.p99_latency_ns),
        ]
    }

    /// Adds one run: what the topic's publishers sent, and what its subscribers received.
    fn add(&mut self, sent: &[u64], received: &[&Received]) -> (u64, u64) {
        self.sent += sent.iter().sum::<u64>();
        let mut latencies = Latencies::default();
        let (mut sum_ns, mut count) = (0, 0);
        for received in received {
            let mut fate = Fate {
                counted_lost: received.counted_lost,
                corrupt: received.corrupt,
                ..Fate::default()
            };
            for (tally, &sent) in received.tallies.iter().zip(sent) {
                fate.add(Fate {
                    expected: sent,
                    received: tally.received,
                    lost: tally.lost(sent),
                    out_of_order: tally.out_of_order,
                    corrupt: tally.corrupt,
                    counted_lost: 0,
                });
            }
            count += fate.received;
            sum_ns += received.latency_sum_ns;
            self.fate.add(fate);
            self.late += received.late;
            self.too_late += received.too_late;
            latencies.add(&received.latencies);
        }
        if count > 0 {
            self.means_ns.push(sum_ns as f64 / count as f64);
            self.p99s_ns.push(latencies.percentiles().p99_ns as f64);
        }
        (sum_ns, count)
    }
}

/// What each node is to do.
fn posts(topology: &Topology, args: &TopologyArgs) -> Vec<Post> {
    let count: usize = topology.nodes.iter().map(|node| node.publishes.len()).sum();
    let mut indices = std::collections::BTreeMap::<&str, u16>::new();
    let run_ns = args.seconds.as_secs_f64() * 1e9;
    let mut started = 0;
    let mut posts = Vec::with_capacity(topology.nodes.len());
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
                // Within the run, so that the slow topics of a short one send, too.
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
            Subscribe { topic: absolute(topic), sources: sources.collect() }
        });
        let subscribes = subscribes.collect();
        let job = RobotJob { publishes, subscribes, seconds: args.seconds };
        posts.push((node.name.clone(), Role::Robot(job)));
    }
    posts
}

fn one(
    bench: &Bench,
    n: u32,
    args: &TopologyArgs,
    topology: &Topology,
    topics: &mut [Topic],
) -> Outcome<Run> {
    let mut crew = Crew::start(&bench.place, n, posts(topology, args))?;
    crew.order(0..crew.len(), Order::phase(GO))?;
    crew.until_sent(args.seconds)?;
    crew.order(0..crew.len(), Order::phase(COLLECT))?;
    let mut reports: Vec<RobotReport> = Vec::with_capacity(crew.len());
    for number in 0..crew.len() {
        reports.push(crew.report(number, args.seconds)?);
    }
    crew.dismiss()?;
    let nodes = || topology.nodes.iter().zip(&reports);
    let (mut sum_ns, mut count) = (0, 0);
    for topic in topics {
        let published = nodes().flat_map(|(node, r)| node.publishes.iter().zip(&r.published));
        let sent: Vec<u64> = published
            .filter(|(p, _)| absolute(&p.topic) == topic.topic)
            .map(|(_, s)| s.sent)
            .collect();
        let heard = nodes().flat_map(|(node, r)| node.subscribes.iter().zip(&r.received));
        let received: Vec<&Received> =
            heard.filter(|(name, _)| absolute(name) == topic.topic).map(|(_, r)| r).collect();
        let (topic_sum_ns, topic_count) = topic.add(&sent, &received);
        sum_ns += topic_sum_ns;
        count += topic_count;
    }
    let used = nodes().map(|(node, report)| NodeUse {
        node: node.name.clone(),
        cores: report.used.cores(),
        rss_bytes: report.used.rss_bytes,
    });
    let published = reports.iter().flat_map(|r| &r.published);
    Ok(Run {
        mean_latency_ns: sum_ns as f64 / f64::max(count as f64, 1.0),
        cores: reports.iter().map(|r| r.used.cores()).sum(),
        rss_bytes: reports.iter().map(|r| r.used.rss_bytes).sum(),
        sender_behind_max_ns: published.map(|p| p.behind_max_ns).max().unwrap_or(0),
        nodes: used.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_topic_of_the_built_in_robot_has_a_subscriber() {
        let walker = read(None).unwrap();
        assert_eq!(walker.nodes.len(), 10);
        assert!(walker.topics().iter().all(|t| walker.subscribers_of(t).next().is_some()));
    }
}
