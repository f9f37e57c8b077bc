//! `rnet bench-worker`: one process of a bench. Hidden, as only `rnet bench` and `rnet demo` start it.

use rnet_bench::worker::Order;

use super::job::{Event, WorkerNode};
use super::link::Link;
use super::roles::{Role, busy, death, echo, idle, nodes, robot, stream, tracer};
use crate::demo;
use crate::failure::{Failure, Outcome};

/// Does the job that stands on stdin.
pub fn run() -> Outcome {
    let (job, link) = Link::open()?;
    let Err(failure) = work(&job.node, &job.role, &link) else { return Ok(()) };
    let timed_out = matches!(failure, Failure::TimedOut(_));
    // Where the command is gone this fails too, and the listener ends the process.
    let _ = link.say(&Event::Failed { why: failure.message(), timed_out });
    link.until(Order::stop());
    Err(Failure::Told)
}

fn work(node: &WorkerNode, role: &Role, link: &Link) -> Outcome {
    match role {
        Role::Sender(role) => stream::send(node, role, link),
        Role::Reader(role) => stream::read(node, role, link),
        Role::Pinger(role) => echo::ping(node, role, link),
        Role::Echo(role) => echo::echo(node, role, link),
        Role::Robot(role) => robot::run(node, role, link),
        Role::Tracer => tracer::trace(node, link),
        Role::Busy(role) => busy::compute(role, link),
        Role::Idle(role) => idle::run(node, role, link),
        Role::Joiner(role) => idle::join(node, role, link),
        Role::Nodes(role) => nodes::run(node, role, link),
        Role::Victim(role) => death::die(node, role, link),
        Role::Watcher(role) => death::watch(node, role, link),
        Role::Demo(role) => demo::node::run(node, role, link),
    }
}
