//! Round trips: one node asks, the other answers.

use std::time::Duration;

use rnet::{Error, Node, OnFull, Wait};
use rnet::{Publisher, Subscriber};
use serde::{Deserialize, Serialize};

use crate::measure::figure::Latencies;
use crate::measure::message::{self, Body, Outgoing};
use crate::measure::worker_link::{
    Link, MATCH_TIMEOUT, ORDER_POLL_INTERVAL, WAIT_LIMIT, WorkerNode,
};
use rnet_format::{Failure, Outcome};

const PING_TOPIC: &str = "/bench/there";
const PONG_TOPIC: &str = "/bench/back";
/// Round trips of each size that are not timed, because they meet cold caches and untouched memory. After
/// them, the pool of long messages has wrapped around.
const WARM_UP: u64 = 32;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EchoJob {
    pub sizes: Vec<usize>,
    pub seconds: Duration,
    pub wait: Wait,
    pub body: Body,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SizeReport {
    /// Requests, including those before the timed ones.
    pub sent: u64,
    /// Correct replies.
    pub received: u64,
    pub latencies: Latencies,
}

type Endpoints = (Subscriber<[u8]>, Publisher<[u8]>);

/// A node's two endpoints, matched with those of the other node.
fn endpoints(node: &Node, job: &EchoJob, [from, to]: [&str; 2]) -> Outcome<Endpoints> {
    let mut subscriber = node.subscriber(from).reliable().wait(job.wait).open()?;
    let publisher = node.publisher(to).reliable(OnFull::Wait(WAIT_LIMIT)).open()?;
    subscriber.wait_for_publishers_timeout(1, MATCH_TIMEOUT)?;
    publisher.wait_for_subscribers_timeout(1, MATCH_TIMEOUT)?;
    Ok((subscriber, publisher))
}

pub fn ping(node: &WorkerNode, job: &EchoJob, link: &Link) -> Outcome {
    let node = node.open()?;
    let (mut back, mut there) = endpoints(&node, job, [PONG_TOPIC, PING_TOPIC])?;
    link.report_ready()?;
    let mut number = 0;
    let mut reports = Vec::with_capacity(job.sizes.len());
    for &len in &job.sizes {
        let mut report = SizeReport::default();
        let mut outgoing = Outgoing::new(0, len, job.body);
        let mut end_ns = u64::MAX;
        while rnet::now_ns() < end_ns {
            let asked_ns = rnet::now_ns();
            outgoing.send(&mut there, number)?;
            report.sent += 1;
            let answer = back.recv_timeout(WAIT_LIMIT).map_err(|error| lost_failure(error, len))?;
            let is_right = answer.len() == len
                && message::read(&answer, job.body).is_some_and(|r| r.number == number);
            let took_ns = rnet::now_ns() - asked_ns;
            number += 1;
            report.received += u64::from(is_right);
            if report.sent == WARM_UP {
                end_ns = rnet::now_ns() + job.seconds.as_nanos() as u64;
            } else if report.sent > WARM_UP && is_right {
                report.latencies.record(took_ns);
            }
        }
        reports.push(report);
    }
    link.finish(&reports)
}

fn lost_failure(error: Error, len: usize) -> Failure {
    match error {
        Error::Timeout { after_ms, .. } => {
            Failure::TimedOut(format!("a request of {len} bytes was not answered in {after_ms} ms"))
        }
        error => error.into(),
    }
}

pub fn echo(node: &WorkerNode, job: &EchoJob, link: &Link) -> Outcome {
    let node = node.open()?;
    let (mut there, mut back) = endpoints(&node, job, [PING_TOPIC, PONG_TOPIC])?;
    link.report_ready()?;
    loop {
        match there.recv_timeout(ORDER_POLL_INTERVAL) {
            Ok(sample) => message::answer(&mut back, &sample, job.body)?,
            Err(Error::Timeout { .. }) if link.has_new_order() => break,
            Err(Error::Timeout { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    link.finish(&())
}
