//! One process with some of the nodes of a large domain.

use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::time::Duration;

use rnet::{Node, NodeEvent};
use rnet_bench::worker::Order;
use serde::{Deserialize, Serialize};

use crate::bench::job::{COLLECT, WorkerNode};
use crate::bench::link::Link;
use crate::failure::{Failure, Outcome};

/// How long the nodes of a domain may take to meet, and to notice a death.
pub const WAIT_LIMIT: Duration = Duration::from_secs(120);

#[derive(Debug, Serialize, Deserialize)]
pub struct NodesJob {
    /// Numbers of the nodes of this process: from here …
    pub first: usize,
    /// … so many.
    pub count: usize,
    /// Nodes of the domain. Each has a publisher, and subscribes to that of the node with the next number.
    pub all: usize,
    /// Nodes of the process that will be killed.
    pub killed: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct MetReport {
    /// When all nodes of the process were open, by [`rnet::now_ns`].
    pub open_ns: u64,
    /// When all their publishers and subscribers had met.
    pub met_ns: u64,
    /// Descriptors that the process has open then.
    pub descriptors: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct DeathReport {
    /// When the first node of the process knew of the last death.
    pub noticed_ns: u64,
}

/// The topic that node `number` of `all` publishes.
pub fn topic(number: usize, all: usize) -> String {
    format!("/nodes/topic_{}", number % all)
}

pub fn run(worker: &WorkerNode, role: &NodesJob, link: &Link) -> Outcome {
    link.ready()?;
    let open = |number: usize| -> Outcome<Node> {
        let name = format!("{}_{number}", worker.name);
        Ok(Node::builder(&name).dir(&worker.place).domain(&worker.domain).open()?)
    };
    let numbers = || role.first..role.first + role.count;
    let nodes = numbers().map(open).collect::<Outcome<Vec<_>>>()?;
    let (tell, deaths) = channel();
    nodes[0].on_node(move |event| {
        if let NodeEvent::Died(name) = event {
            // Nobody listens any more when the process has failed.
            let _ = tell.send((name.clone(), rnet::now_ns()));
        }
    });
    let mut ends = Vec::with_capacity(role.count);
    for (number, node) in numbers().zip(&nodes) {
        let publisher = node.publisher::<[u8]>(&topic(number, role.all))?;
        ends.push((publisher, node.subscriber::<[u8]>(&topic(number + 1, role.all))?));
    }
    let open_ns = rnet::now_ns();
    for (publisher, subscriber) in &mut ends {
        publisher.wait_for_subscribers(1, Some(WAIT_LIMIT))?;
        subscriber.wait_for_publishers(1, Some(WAIT_LIMIT))?;
    }
    let met_ns = rnet::now_ns();
    let descriptors = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    link.done(&MetReport { open_ns, met_ns, descriptors })?;
    link.until(Order::phase(COLLECT));
    let mut noticed_ns = 0;
    let mut dead = BTreeSet::new();
    while dead.len() < role.killed {
        let silent = |_| Failure::TimedOut("was not told of all deaths".to_owned());
        let (name, died_ns) = deaths.recv_timeout(WAIT_LIMIT).map_err(silent)?;
        dead.insert(name);
        noticed_ns = died_ns;
    }
    link.finish(&DeathReport { noticed_ns })
}
