//! A node of a robot: publishes on a schedule what it publishes, and receives what it subscribes to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rnet::{Error, Node, OnFull, Publisher, PublisherOptions, Subscriber, SubscriberOptions};
use rnet::{WaitSet, Waitable};
use rnet_bench::worker::Order;
use serde::{Deserialize, Serialize};

use super::{LOOK, MEET, WAIT_LIMIT};
use crate::bench::figure::Latencies;
use crate::bench::job::{COLLECT, Event, WorkerNode};
use crate::bench::link::Link;
use crate::bench::message::{self, Body, Outgoing, Tally};
use crate::bench::pace::{Schedule, sleep_precisely, sleep_until};
use crate::bench::usage::{Meter, Used};
use crate::failure::{Failure, Outcome};

#[derive(Debug, Serialize, Deserialize)]
pub struct RobotJob {
    pub publishes: Vec<Publish>,
    pub subscribes: Vec<Subscribe>,
    pub seconds: Duration,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Publish {
    pub topic: String,
    /// Which of the topic's publishers this is.
    pub index: u16,
    pub len: usize,
    pub period_ns: f64,
    /// When its first message is due, so that not all nodes send at once.
    pub shift_ns: f64,
    /// How many subscribe.
    pub subscribers: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Subscribe {
    pub topic: String,
    /// The topic's publishers, by their index.
    pub sources: Vec<Source>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Source {
    pub len: usize,
    /// A message is late when it takes longer, and not yet too late.
    pub late_ns: u64,
    /// A message is of no use when it takes longer.
    pub too_late_ns: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct RobotReport {
    /// In the order of the job.
    pub published: Vec<Published>,
    pub received: Vec<Received>,
    pub used: Used,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Published {
    pub sent: u64,
    pub behind_max_ns: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Received {
    /// By the publisher's index.
    pub tallies: Vec<Tally>,
    /// Messages that have no right publisher in them.
    pub corrupt: u64,
    pub late: u64,
    pub too_late: u64,
    pub latency_sum_ns: u64,
    /// Losses that robot-net itself has counted.
    pub counted_lost: u64,
    pub latencies: Latencies,
}

pub fn run(node: &WorkerNode, role: &RobotJob, link: &Link) -> Outcome {
    let node = node.open()?;
    let mut topics = Vec::with_capacity(role.publishes.len());
    for publish in &role.publishes {
        let options = PublisherOptions::new().reliable(OnFull::Wait(WAIT_LIMIT));
        topics.push(node.publisher_with::<[u8]>(&publish.topic, options)?);
    }
    let mut heard = Vec::with_capacity(role.subscribes.len());
    for subscribe in &role.subscribes {
        let options = SubscriberOptions::new().reliable();
        heard.push(node.subscriber_with::<[u8]>(&subscribe.topic, options)?);
    }
    for (topic, publish) in topics.iter().zip(&role.publishes) {
        topic.wait_for_subscribers(publish.subscribers, Some(MEET))?;
    }
    for (topic, subscribe) in heard.iter_mut().zip(&role.subscribes) {
        topic.wait_for_publishers(subscribe.sources.len(), Some(MEET))?;
    }
    link.ready()?;
    let meter = Meter::start();
    let mut used = Used::default();
    let over = AtomicBool::new(false);
    let (published, received) = std::thread::scope(|scope| -> Outcome<_> {
        let receiver = scope.spawn(|| receive(&node, heard, &role.subscribes, &over));
        let published = publish(&mut topics, &role.publishes, role.seconds);
        // Before the rest is read: a run is as long for each node, whatever it publishes.
        used = meter.read();
        if published.is_ok() {
            link.say(&Event::Sent)?;
            link.until(Order::phase(COLLECT));
        }
        over.store(true, Ordering::Release);
        let received = receiver.join();
        let died = || Failure::Failed("the receiving thread has panicked".to_owned());
        Ok((published?, received.map_err(|_| died())??))
    })?;
    link.finish(&RobotReport { published, received, used })
}

/// Sends each topic's messages when they are due, one thread for all, as a node's timers do, and
/// returns when the run is over.
fn publish(
    topics: &mut [Publisher<[u8]>],
    what: &[Publish],
    seconds: Duration,
) -> Outcome<Vec<Published>> {
    sleep_precisely();
    let start_ns = rnet::now_ns();
    let end_ns = start_ns + seconds.as_nanos() as u64;
    let schedule = |p: &Publish| Schedule::new(start_ns + p.shift_ns as u64, p.period_ns);
    let mut schedules: Vec<Schedule> = what.iter().map(schedule).collect();
    let messages = |p: &Publish| Outgoing::new(p.index, p.len, Body::Whole, true);
    let mut outgoing: Vec<Outgoing> = what.iter().map(messages).collect();
    let mut published = vec![Published::default(); what.len()];
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

/// Takes everything that comes, one thread for all, until all is over and read.
fn receive(
    node: &Node,
    mut topics: Vec<Subscriber<[u8]>>,
    what: &[Subscribe],
    over: &AtomicBool,
) -> Outcome<Vec<Received>> {
    let tallies = |s: &Subscribe| vec![Tally::default(); s.sources.len()];
    let mut received: Vec<Received> =
        what.iter().map(|s| Received { tallies: tallies(s), ..Received::default() }).collect();
    let mut set = WaitSet::new(node);
    loop {
        // Before the last look: what was sent before it was over is then seen by that look.
        let last = over.load(Ordering::Acquire);
        for ((topic, what), received) in topics.iter_mut().zip(what).zip(&mut received) {
            loop {
                match topic.try_recv() {
                    Ok(Some(sample)) => received.take(&sample, &what.sources),
                    Ok(None) => break,
                    // Its publisher has said why it ended.
                    Err(Error::PeerLost { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        if last {
            break;
        }
        let mut all: Vec<&mut dyn Waitable> =
            topics.iter_mut().map(|topic| topic as &mut dyn Waitable).collect();
        set.wait(&mut all, Some(LOOK))?;
    }
    for (received, topic) in received.iter_mut().zip(&topics) {
        received.counted_lost = topic.lost().total();
    }
    Ok(received)
}

impl Received {
    fn take(&mut self, message: &[u8], sources: &[Source]) {
        let now_ns = rnet::now_ns();
        // The length is the publisher's, whose index stands in the message.
        let read = message::read(message, message.len(), Body::Whole);
        let from = read.and_then(|read| {
            let source = sources.get(usize::from(read.publisher))?;
            (source.len == message.len()).then_some((read, source))
        });
        let Some((read, source)) = from else {
            self.corrupt += 1;
            return;
        };
        if !self.tallies[usize::from(read.publisher)].count(read.number) {
            return;
        }
        let latency_ns = now_ns.saturating_sub(read.stamp_ns);
        if latency_ns > source.too_late_ns {
            self.too_late += 1;
        } else if latency_ns > source.late_ns {
            self.late += 1;
        }
        self.latency_sum_ns += latency_ns;
        self.latencies.record(latency_ns);
    }
}
