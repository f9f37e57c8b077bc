//! One sender, some readers: throughput and latency.

use std::time::Duration;

use rnet::{Error, OnFull, PublisherOptions, SubscriberOptions, Wait};
use serde::{Deserialize, Serialize};

use super::{MEET, WAIT_LIMIT};
use crate::bench::figure::Latencies;
use crate::bench::job::WorkerNode;
use crate::bench::link::Link;
use crate::bench::message::{self, Body, Outgoing, Tally};
use crate::bench::pace::{Schedule, sleep_precisely};
use crate::bench::usage::{Meter, Used};
use crate::failure::Outcome;

pub const TOPIC: &str = "/bench";
/// How often a reader that receives nothing looks whether all is over. Short, as that time counts
/// for its share of a core.
const LOOK: Duration = Duration::from_millis(20);
/// A look at the clock costs as much as a short message, so a flood looks once per this many.
const MESSAGES_PER_LOOK: u64 = 64;
/// A message from here on is worth a look of its own, in bytes.
const LOOK_EACH_LEN_BYTES: usize = 4096;

#[derive(Debug, Serialize, Deserialize)]
pub struct SenderJob {
    pub len: usize,
    pub readers: usize,
    pub seconds: Duration,
    /// `None` sends as fast as the readers take it.
    pub rate_hz: Option<f64>,
    pub reliable: bool,
    pub urgent: bool,
    pub body: Body,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct SenderReport {
    pub sent: u64,
    /// Before the first message.
    pub start_ns: u64,
    /// How late a message left at worst; 0 for a flood.
    pub behind_max_ns: u64,
    pub used: Used,
}

pub fn send(node: &WorkerNode, role: &SenderJob, link: &Link) -> Outcome {
    let node = node.open()?;
    let mut options = PublisherOptions::new();
    if role.reliable {
        options = options.reliable(OnFull::Wait(WAIT_LIMIT));
    }
    if role.urgent {
        options = options.urgent();
    }
    let mut topic = node.publisher_with::<[u8]>(TOPIC, options)?;
    topic.wait_for_subscribers(role.readers, Some(MEET))?;
    sleep_precisely();
    link.ready()?;
    let meter = Meter::start();
    let mut outgoing = Outgoing::new(0, role.len, role.body, role.rate_hz.is_some());
    let mut number = 0;
    let start_ns = rnet::now_ns();
    let end_ns = start_ns + role.seconds.as_nanos() as u64;
    let mut behind_max_ns = 0;
    if let Some(rate_hz) = role.rate_hz {
        let mut schedule = Schedule::new(start_ns, 1e9 / rate_hz);
        while schedule.due_ns(number) < end_ns {
            schedule.wait(number);
            outgoing.send(&mut topic, number)?;
            number += 1;
        }
        behind_max_ns = schedule.behind_max_ns;
    } else {
        let often = role.len >= LOOK_EACH_LEN_BYTES;
        while !(often || number.is_multiple_of(MESSAGES_PER_LOOK)) || rnet::now_ns() < end_ns {
            outgoing.send(&mut topic, number)?;
            number += 1;
        }
    }
    link.finish(&SenderReport { sent: number, start_ns, behind_max_ns, used: meter.read() })
}

#[derive(Debug, Serialize, Deserialize)]
pub struct ReaderJob {
    pub len: usize,
    pub wait: Wait,
    pub reliable: bool,
    pub body: Body,
    /// Take the latency of each message but the first so many, which meet cold caches.
    pub latency_after: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct ReaderReport {
    pub tally: Tally,
    /// Losses that robot-net itself has counted.
    pub counted_lost: u64,
    /// When the last message was taken.
    pub last_ns: u64,
    pub latencies: Latencies,
    pub used: Used,
}

pub fn read(node: &WorkerNode, role: &ReaderJob, link: &Link) -> Outcome {
    let node = node.open()?;
    // Best effort, too, with all that the log holds: what is missing is to be a loss, not a choice.
    let mut options = SubscriberOptions::new().wait(role.wait).keep_all();
    if role.reliable {
        options = options.reliable();
    }
    let mut topic = node.subscriber_with::<[u8]>(TOPIC, options)?;
    topic.wait_for_publishers(1, Some(MEET))?;
    let mut tally = Tally::default();
    let mut latencies = Latencies::default();
    let mut last_ns = 0;
    link.ready()?;
    let meter = Meter::start();
    let latency_after = role.latency_after.unwrap_or(u64::MAX);
    let mut over = false;
    loop {
        let next = if over { topic.try_recv() } else { topic.recv(Some(LOOK)).map(Some) };
        let sample = match next {
            Ok(Some(sample)) => sample,
            Ok(None) => break,
            // All was sent before the order came, but not before this wait was over: what came in
            // between is still to be read.
            Err(Error::Timeout { .. }) => {
                over = link.ordered();
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        // A clock's look for each message only where its latency is wanted.
        let now_ns = if latency_after == u64::MAX { sample.taken_ns() } else { rnet::now_ns() };
        let Some(read) = message::read(&sample, role.len, role.body) else {
            tally.corrupt += 1;
            continue;
        };
        last_ns = now_ns;
        if tally.count(read.number) && read.number >= latency_after {
            latencies.record(now_ns.saturating_sub(read.stamp_ns));
        }
    }
    let counted_lost = topic.lost().total();
    link.finish(&ReaderReport { tally, counted_lost, last_ns, latencies, used: meter.read() })
}
