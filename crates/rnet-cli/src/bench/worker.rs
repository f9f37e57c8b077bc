//! `rnet bench-worker`: one process of a bench. Hidden, as only `rnet bench` starts it.

use super::job::{Job, Order, Role, Word};
use super::link::Link;
use super::roles::{busy, death, echo, idle, robot, stream};
use crate::failure::{Failure, Outcome};

/// Does the job that stands on stdin.
pub fn run() -> Outcome {
    let (job, link) = Link::open()?;
    let Err(failure) = work(&job, &link) else { return Ok(()) };
    let timed_out = matches!(failure, Failure::TimedOut(_));
    // Where the command is gone this fails too, and the listener ends the process.
    let _ = link.say(&Word::Failed { timed_out, message: failure.message() });
    link.until(Order::Leave);
    Err(Failure::Told)
}

fn work(job: &Job, link: &Link) -> Outcome {
    match &job.role {
        Role::Sender(role) => stream::send(job, role, link),
        Role::Reader(role) => stream::read(job, role, link),
        Role::Pinger(role) => echo::ping(job, role, link),
        Role::Echo(role) => echo::echo(job, role, link),
        Role::Robot(role) => robot::run(job, role, link),
        Role::Busy(role) => busy::compute(role, link),
        Role::Idle(role) => idle::run(job, role, link),
        Role::Joiner(role) => idle::join(job, role, link),
        Role::Victim(role) => death::die(job, role, link),
        Role::Watcher(role) => death::watch(job, role, link),
    }
}
