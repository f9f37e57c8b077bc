//! One asks, one answers: round trips.

use std::time::Duration;

use rnet::{Error, Node, OnFull, PublisherOptions, SubscriberOptions, Wait};
use rnet::{Publisher, Subscriber};
use serde::{Deserialize, Serialize};

use super::{LOOK, MEET, WAIT_LIMIT};
use crate::bench::figure::Latencies;
use crate::bench::job::WorkerNode;
use crate::bench::link::Link;
use crate::bench::message::{self, Body, Outgoing};
use crate::failure::{Failure, Outcome};

const THERE: &str = "/bench/there";
const BACK: &str = "/bench/back";
/// Round trips of each size that are not timed: they meet cold caches and memory that nobody has
/// touched yet. The pool of long messages has gone round by then.
const WARM_UP: u64 = 32;

#[derive(Debug, Serialize, Deserialize)]
pub struct PingerJob {
    pub sizes: Vec<usize>,
    pub seconds: Duration,
    pub wait: Wait,
    pub body: Body,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct SizeReport {
    pub len: usize,
    /// Requests sent, those before the timed ones included.
    pub sent: u64,
    /// Answers that were right.
    pub received: u64,
    /// Answers that were not as they were asked for.
    pub corrupt: u64,
    pub latencies: Latencies,
}

fn publisher(node: &Node, topic: &str) -> rnet::Result<Publisher<[u8]>> {
    node.publisher_with(topic, PublisherOptions::new().reliable(OnFull::Wait(WAIT_LIMIT)))
}

fn subscriber(node: &Node, topic: &str, wait: Wait) -> rnet::Result<Subscriber<[u8]>> {
    node.subscriber_with(topic, SubscriberOptions::new().reliable().wait(wait))
}

pub fn ping(node: &WorkerNode, role: &PingerJob, link: &Link) -> Outcome {
    let node = node.open()?;
    let mut there = publisher(&node, THERE)?;
    let mut back = subscriber(&node, BACK, role.wait)?;
    there.wait_for_subscribers(1, Some(MEET))?;
    back.wait_for_publishers(1, Some(MEET))?;
    link.ready()?;
    let mut number = 0;
    let mut reports = Vec::with_capacity(role.sizes.len());
    for &len in &role.sizes {
        let mut report =
            SizeReport { len, sent: 0, received: 0, corrupt: 0, latencies: Latencies::default() };
        // Timed here, by one clock.
        let mut outgoing = Outgoing::new(0, len, role.body, false);
        let mut end_ns = u64::MAX;
        while rnet::now_ns() < end_ns {
            let asked_ns = rnet::now_ns();
            outgoing.send(&mut there, number)?;
            report.sent += 1;
            let answer = back.recv(Some(WAIT_LIMIT)).map_err(|error| lost(error, len))?;
            let right = message::read(&answer, len, role.body).is_some_and(|r| r.number == number);
            let took_ns = rnet::now_ns() - asked_ns;
            number += 1;
            report.received += u64::from(right);
            report.corrupt += u64::from(!right);
            if report.sent == WARM_UP {
                end_ns = rnet::now_ns() + role.seconds.as_nanos() as u64;
            } else if report.sent > WARM_UP && right {
                report.latencies.record(took_ns);
            }
        }
        reports.push(report);
    }
    link.finish(&reports)
}

fn lost(error: Error, len: usize) -> Failure {
    match error {
        Error::Timeout { after_ms, .. } => {
            Failure::TimedOut(format!("a request of {len} bytes was not answered in {after_ms} ms"))
        }
        error => error.into(),
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct EchoJob {
    pub wait: Wait,
    pub body: Body,
}

pub fn echo(node: &WorkerNode, role: &EchoJob, link: &Link) -> Outcome {
    let node = node.open()?;
    let mut there = subscriber(&node, THERE, role.wait)?;
    let mut back = publisher(&node, BACK)?;
    there.wait_for_publishers(1, Some(MEET))?;
    back.wait_for_subscribers(1, Some(MEET))?;
    link.ready()?;
    let mut answered = 0_u64;
    loop {
        match there.recv(Some(LOOK)) {
            Ok(sample) => {
                message::answer(&mut back, &sample, role.body)?;
                answered += 1;
            }
            Err(Error::Timeout { .. }) if link.ordered() => break,
            Err(Error::Timeout { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    link.finish(&answered)
}
