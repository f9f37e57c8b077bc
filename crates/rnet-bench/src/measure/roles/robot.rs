//! A node of a robot: publishes on a schedule, or as fast as its subscribers read, and receives its
//! subscribed topics.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::worker::Order;
use rnet::{Error, Node, OnFull, Publisher, Subscriber, Wait};
use rnet::{WaitSet, Waitable};
use serde::{Deserialize, Serialize};

use crate::measure::figure::Latencies;
use crate::measure::message::{self, Body, Outgoing, SequenceCounter};
use crate::measure::schedule::{Schedule, sleep_precisely, sleep_until};
use crate::measure::usage::{ResourceUsage, UsageMeter};
use crate::measure::worker_link::{
    COLLECT_PHASE, Event, Link, MATCH_TIMEOUT, ORDER_POLL_INTERVAL, WAIT_LIMIT, WorkerNode,
};
use rnet_format::{Failure, Outcome};

/// Reading the clock costs as much as a short message, so a flood reads it once per this many messages.
const MESSAGES_PER_ORDER_CHECK: u64 = 64;
/// Message length from which the clock is read for each message.
const ORDER_CHECK_LEN_BYTES: usize = 4096;

#[derive(Debug, Serialize, Deserialize)]
pub struct RobotJob {
    pub publishes: Vec<Publish>,
    pub subscribes: Vec<Subscribe>,
    pub seconds: Duration,
    pub body: Body,
    pub reliable: bool,
    pub urgent: bool,
    pub wait: Wait,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Publish {
    pub topic: String,
    /// Index of this publisher among the topic's publishers.
    pub index: u16,
    pub len: usize,
    /// 0 sends as fast as the subscribers read; only for the single topic of a node.
    pub period_ns: f64,
    /// When the first message is due, so that not all nodes send at once.
    pub shift_ns: f64,
    pub subscribers: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Subscribe {
    pub topic: String,
    /// The topic's publishers, by their index.
    pub sources: Vec<Source>,
    /// The first message whose latency counts; `None` if none counts.
    pub timed_from: Option<u64>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Source {
    pub len: usize,
    /// A message with a larger latency is late, but not yet too late.
    pub late_ns: u64,
    /// A message with a larger latency is useless.
    pub too_late_ns: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct RobotReport {
    /// Time before the first message.
    pub start_ns: u64,
    /// In the order of the job.
    pub published: Vec<Published>,
    pub received: Vec<Received>,
    pub used: ResourceUsage,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Published {
    pub sent: u64,
    /// The sender's largest delay; 0 without a schedule.
    pub behind_max_ns: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Received {
    /// By the publisher's index.
    pub tallies: Vec<SequenceCounter>,
    /// Messages without a valid publisher or content.
    pub corrupt: u64,
    pub late: u64,
    pub too_late: u64,
    /// Losses counted by robot-net itself.
    pub counted_lost: u64,
    /// When the last message was taken.
    pub last_ns: u64,
    pub latencies: Latencies,
}

pub fn run(node: &WorkerNode, job: &RobotJob, link: &Link) -> Outcome {
    let node = node.open()?;
    let open = |publish: &Publish| {
        let mut builder = node.publisher::<[u8]>(&publish.topic);
        if job.reliable {
            builder = builder.reliable(OnFull::Wait(WAIT_LIMIT));
        }
        if job.urgent {
            builder = builder.urgent();
        }
        builder.open()
    };
    let mut topics = job.publishes.iter().map(open).collect::<rnet::Result<Vec<_>>>()?;
    // Also for best effort, with everything that the log holds: a missing message must be a loss, not a skip.
    let open = |subscribe: &Subscribe| {
        let builder = node.subscriber::<[u8]>(&subscribe.topic).wait(job.wait).keep_all();
        if job.reliable { builder.reliable().open() } else { builder.open() }
    };
    let mut subscribers = job.subscribes.iter().map(open).collect::<rnet::Result<Vec<_>>>()?;
    for (topic, publish) in topics.iter().zip(&job.publishes) {
        topic.wait_for_subscribers_timeout(publish.subscribers, MATCH_TIMEOUT)?;
    }
    for (topic, subscribe) in subscribers.iter_mut().zip(&job.subscribes) {
        topic.wait_for_publishers_timeout(subscribe.sources.len(), MATCH_TIMEOUT)?;
    }
    sleep_precisely();
    link.report_ready()?;
    let meter = UsageMeter::start();
    let mut used = ResourceUsage::default();
    let over = AtomicBool::new(false);
    let start_ns = rnet::now_ns();
    let (published, received) = std::thread::scope(|scope| -> Outcome<_> {
        let receiver = scope.spawn(|| receive(&node, subscribers, job, &over));
        let published = publish(&mut topics, job, start_ns);
        // Before the rest is read: the measured time is equal for each node, whatever it publishes.
        used = meter.read();
        if published.is_ok() {
            link.send_event(&Event::Sent)?;
            link.wait_for(Order::phase(COLLECT_PHASE));
        }
        over.store(true, Ordering::Release);
        let received = receiver.join();
        let died = || Failure::Failed("the receiving thread has panicked".to_owned());
        Ok((published?, received.map_err(|_| died())??))
    })?;
    link.finish(&RobotReport { start_ns, published, received, used })
}

/// Sends each topic's messages when they are due, on one thread for all topics, like a node's timers. Returns
/// at the end of the run.
fn publish(
    topics: &mut [Publisher<[u8]>],
    job: &RobotJob,
    start_ns: u64,
) -> Outcome<Vec<Published>> {
    let what = &job.publishes;
    let end_ns = start_ns + job.seconds.as_nanos() as u64;
    let messages = |p: &Publish| Outgoing::new(p.index, p.len, job.body);
    let mut outgoing: Vec<Outgoing> = what.iter().map(messages).collect();
    let mut published = vec![Published::default(); what.len()];
    if let [Publish { period_ns: 0.0, len, .. }] = &what[..] {
        let sent = &mut published[0].sent;
        let often = *len >= ORDER_CHECK_LEN_BYTES;
        while !(often || sent.is_multiple_of(MESSAGES_PER_ORDER_CHECK)) || rnet::now_ns() < end_ns {
            outgoing[0].send(&mut topics[0], *sent)?;
            *sent += 1;
        }
        return Ok(published);
    }
    let schedule = |p: &Publish| Schedule::new(start_ns + p.shift_ns as u64, p.period_ns);
    let mut schedules: Vec<Schedule> = what.iter().map(schedule).collect();
    loop {
        let due = schedules.iter().zip(&published).map(|(s, p)| s.due_ns(p.sent));
        let next = due.enumerate().map(|(i, due_ns)| (due_ns, i)).min();
        let Some((_, i)) = next.filter(|(due_ns, _)| *due_ns < end_ns) else { break };
        let number = published[i].sent;
        schedules[i].wait(number);
        outgoing[i].send(&mut topics[i], number)?;
        published[i].sent += 1;
    }
    sleep_until(end_ns);
    for (published, schedule) in published.iter_mut().zip(&schedules) {
        published.behind_max_ns = schedule.behind_max_ns;
    }
    Ok(published)
}

/// Receives all messages, on one thread for all topics, until the run is over and everything is read.
fn receive(
    node: &Node,
    mut topics: Vec<Subscriber<[u8]>>,
    job: &RobotJob,
    over: &AtomicBool,
) -> Outcome<Vec<Received>> {
    let tallies = |s: &Subscribe| vec![SequenceCounter::default(); s.sources.len()];
    let new = |s: &Subscribe| Received { tallies: tallies(s), ..Received::default() };
    let mut received: Vec<Received> = job.subscribes.iter().map(new).collect();
    let mut set = WaitSet::new(node);
    loop {
        // Before the last receive, so that it includes everything sent before the end.
        let last = over.load(Ordering::Acquire);
        for ((topic, what), received) in topics.iter_mut().zip(&job.subscribes).zip(&mut received) {
            loop {
                match topic.try_recv() {
                    Ok(Some(sample)) => received.take(&sample, what, job.body),
                    Ok(None) => break,
                    // The publisher has reported why it exited.
                    Err(Error::PeerLost { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        if last {
            break;
        }
        // A single topic is awaited in its own wait mode.
        if let ([topic], [what]) = (&mut topics[..], &job.subscribes[..]) {
            match topic.recv_timeout(ORDER_POLL_INTERVAL) {
                Ok(sample) => received[0].take(&sample, what, job.body),
                Err(Error::PeerLost { .. } | Error::Timeout { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            continue;
        }
        let all = topics.iter_mut().map(|topic| topic as &mut dyn Waitable);
        set.wait_timeout(&mut all.collect::<Vec<_>>(), ORDER_POLL_INTERVAL)?;
    }
    for (received, topic) in received.iter_mut().zip(&topics) {
        received.counted_lost = topic.lost().total();
    }
    Ok(received)
}

impl Received {
    #[inline]
    fn take(&mut self, sample: &rnet::Sample<'_, [u8]>, what: &Subscribe, body: Body) {
        // Reading the clock costs a fraction of a short message.
        let now_ns = if what.timed_from.is_none() { sample.taken_ns() } else { rnet::now_ns() };
        let read = message::read(sample, body).and_then(|read| {
            let source = what.sources.get(usize::from(read.publisher))?;
            // The expected length depends on the publisher, whose index is in the message.
            (source.len == sample.len()).then_some((read, source))
        });
        let Some((read, source)) = read else {
            self.corrupt += 1;
            return;
        };
        self.last_ns = now_ns;
        let in_order = self.tallies[usize::from(read.publisher)].count(read.number);
        if !in_order || what.timed_from.is_none_or(|from| read.number < from) {
            return;
        }
        let latency_ns = now_ns.saturating_sub(sample.sent_ns());
        self.too_late += u64::from(latency_ns > source.too_late_ns);
        self.late += u64::from(source.late_ns < latency_ns && latency_ns <= source.too_late_ns);
        self.latencies.record(latency_ns);
    }
}
