//! A process with some of the nodes of a domain, and a process that joins them.

use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::worker::Order;
use rnet::{Node, NodeEvent};
use serde::{Deserialize, Serialize};

use crate::measure::bench_dir::used_bytes;
use crate::measure::usage::{ResourceUsage, UsageMeter, rss_bytes};
use crate::measure::worker_link::{COLLECT_PHASE, Link, MATCH_TIMEOUT, WorkerNode};
use rnet_format::{Failure, Outcome};

/// How long the nodes of a domain may take to match, and to detect a death.
pub const WAIT_LIMIT: Duration = Duration::from_secs(120);
/// Number of joins of a further node.
const JOINS: usize = 15;
/// Message length of a small topic.
const SMALL_LEN_BYTES: usize = 22;

#[derive(Debug, Serialize, Deserialize)]
pub struct NodesJob {
    /// First node number of this process …
    pub first: usize,
    /// … and the number of its nodes.
    pub count: usize,
    /// Number of nodes in the domain. Each has a publisher, and subscribes to the node with the next number.
    pub all: usize,
    /// Whether subscribers have a callback, as in most nodes, and thus a dispatch thread.
    pub callbacks: bool,
    /// Number of nodes in the process that will be killed.
    pub killed: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct MatchReport {
    /// When all nodes of the process were open, by [`rnet::now_ns`].
    pub open_ns: u64,
    /// When all their publishers and subscribers were matched.
    pub met_ns: u64,
    /// Open file descriptors of the process.
    pub descriptors: usize,
    /// Growth of the process's resident memory by its nodes.
    pub nodes_rss_bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct EndReport {
    /// When the first node of the process detected the last death.
    pub noticed_ns: u64,
    /// Usage since all nodes were matched.
    pub used: ResourceUsage,
}

/// The topic that node `number` of `all` publishes.
pub fn topic(number: usize, all: usize) -> String {
    format!("/nodes/topic_{}", number % all)
}

pub fn run(worker: &WorkerNode, job: &NodesJob, link: &Link) -> Outcome {
    let before_bytes = rss_bytes();
    link.report_ready()?;
    let numbers = || job.first..job.first + job.count;
    let open = |number: usize| worker.open_as(&format!("{}_{number}", worker.name));
    let nodes = numbers().map(open).collect::<rnet::Result<Vec<Node>>>()?;
    let (tell, deaths) = channel();
    nodes[0]
        .on_node(move |event| {
            if let NodeEvent::Died(name) = event {
                // The receiver is dropped if the process has failed.
                let _ = tell.send((name.clone(), rnet::now_ns()));
            }
        })
        .detach();
    let (mut publishers, mut subscribers) = (Vec::new(), Vec::new());
    for (number, node) in numbers().zip(&nodes) {
        publishers.push(node.publisher::<[u8]>(&topic(number, job.all)).open()?);
        subscribers.push(node.subscriber::<[u8]>(&topic(number + 1, job.all)).open()?);
    }
    let open_ns = rnet::now_ns();
    for (publisher, subscriber) in publishers.iter().zip(&mut subscribers) {
        publisher.wait_for_subscribers_timeout(1, WAIT_LIMIT)?;
        subscriber.wait_for_publishers_timeout(1, WAIT_LIMIT)?;
    }
    let met_ns = rnet::now_ns();
    let mut callbacks = Vec::new();
    if job.callbacks {
        callbacks.extend(subscribers.drain(..).map(|subscriber| subscriber.on(|_| ())));
    }
    let descriptors = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let nodes_rss_bytes = rss_bytes().saturating_sub(before_bytes);
    link.send_report(&MatchReport { open_ns, met_ns, descriptors, nodes_rss_bytes })?;
    let meter = UsageMeter::start();
    link.wait_for(Order::phase(COLLECT_PHASE));
    let used = meter.read();
    let mut noticed_ns = 0;
    let mut dead = BTreeSet::new();
    while dead.len() < job.killed {
        let silent = |_| Failure::TimedOut("was not notified of all deaths".to_owned());
        let (name, died_ns) = deaths.recv_timeout(WAIT_LIMIT).map_err(silent)?;
        dead.insert(name);
        noticed_ns = died_ns;
    }
    link.finish(&EndReport { noticed_ns, used })
}

#[derive(Debug, Serialize, Deserialize)]
pub struct JoinReport {
    /// Time from the call that opens a node until its subscriber is served, for each join.
    pub join_ns: Vec<u64>,
    /// Shared memory of a topic with one publisher and one subscriber.
    pub topic_bytes: u64,
}

/// Joins repeatedly as a subscriber of a topic.
pub fn join(worker: &WorkerNode, topic: &str, link: &Link) -> Outcome {
    link.report_ready()?;
    let mut join_ns = Vec::with_capacity(JOINS);
    for _ in 0..JOINS {
        let start_ns = rnet::now_ns();
        let node = worker.open()?;
        let mut subscriber = node.subscriber::<[u8]>(topic).open()?;
        subscriber.wait_for_publishers_timeout(1, MATCH_TIMEOUT)?;
        join_ns.push(rnet::now_ns() - start_ns);
    }
    // The size of its files is the growth of the directory. All other nodes are idle.
    let node = worker.open()?;
    let before_bytes = used_bytes(&worker.bench_dir);
    let mut publisher = node.publisher::<[u8]>("/small").open()?;
    let mut subscriber = node.subscriber::<[u8]>("/small").open()?;
    subscriber.wait_for_publishers_timeout(1, MATCH_TIMEOUT)?;
    publisher.send(&[0; SMALL_LEN_BYTES])?;
    subscriber.recv_timeout(MATCH_TIMEOUT)?;
    let topic_bytes = used_bytes(&worker.bench_dir).saturating_sub(before_bytes);
    link.finish(&JoinReport { join_ns, topic_bytes })
}
