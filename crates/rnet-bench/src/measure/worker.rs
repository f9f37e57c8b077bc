//! A worker process of a benchmark or of the demo.
//!
//! It uses the protocol of [`crate::worker`]. The command holds the write end of the worker's stdin for its
//! lifetime. If that end is closed, the command has exited for any reason: a thread that reads stdin then
//! removes the private directory and exits, whatever the other threads do.

use std::path::Path;

use crate::worker::Order;
use serde::{Deserialize, Serialize};

use super::roles::{death, echo, load, nodes, robot};
use super::worker_link::{Event, Link, WorkerNode};
use crate::demo::{self, robot::DemoJob};
use rnet_format::{Failure, Outcome};

/// The job of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    pub node: WorkerNode,
    pub role: Role,
}

/// The role of a worker, with its parameters.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Robot(robot::RobotJob),
    Pinger(echo::EchoJob),
    Echo(echo::EchoJob),
    Busy { core: usize },
    Tracer { topic: String },
    Nodes(nodes::NodesJob),
    Joiner { topic: String },
    Victim { watchers: usize },
    Watcher { kills: u32 },
    Demo(DemoJob),
}

impl Role {
    /// The Python that runs the role, if it is not this program.
    pub fn python(&self) -> Option<&Path> {
        if let Role::Demo(job) = self { job.python.as_deref() } else { None }
    }
}

/// Runs a worker: reads its job from stdin, runs it, and reports to the command that started it.
///
/// # Errors
/// The job is invalid or failed.
pub fn run() -> Outcome {
    let Job { node, role } = crate::worker::read_job().map_err(|e| {
        Failure::Usage(format!(
            "bench-worker is started by `rnet bench` or `rnet demo` with a job; invalid job: {e}"
        ))
    })?;
    let link = Link::open(&node.bench_dir)?;
    let Err(failure) = work(&node, &role, &link) else { return Ok(()) };
    let timed_out = matches!(failure, Failure::TimedOut(_));
    // If the command has exited, this fails too, and the order reader ends the process.
    let _ = link.send_event(&Event::Failed { why: failure.to_string(), timed_out });
    link.wait_for(Order::stop());
    Err(Failure::AlreadyReported)
}

fn work(node: &WorkerNode, role: &Role, link: &Link) -> Outcome {
    match role {
        Role::Robot(job) => robot::run(node, job, link),
        Role::Pinger(job) => echo::ping(node, job, link),
        Role::Echo(job) => echo::echo(node, job, link),
        Role::Busy { core } => load::compute(*core, link),
        Role::Tracer { topic } => load::trace(node, topic, link),
        Role::Nodes(job) => nodes::run(node, job, link),
        Role::Joiner { topic } => nodes::join(node, topic, link),
        Role::Victim { watchers } => death::die(node, *watchers, link),
        Role::Watcher { kills } => death::watch(node, *kills, link),
        Role::Demo(job) => demo::node::run(node, job, link),
    }
}
