//! A node that has met its peers and has nothing to say; and one that joins them.

use std::path::Path;

use rnet::Node;
use rnet_bench::worker::Order;
use serde::{Deserialize, Serialize};

use super::MEET;
use crate::bench::job::{COLLECT, WorkerNode};
use crate::bench::link::Link;
use crate::bench::place::Memory;
use crate::bench::usage::{Meter, Used, rss_bytes};
use crate::failure::Outcome;

#[derive(Debug, Serialize, Deserialize)]
pub struct IdleJob {
    pub publishes: String,
    pub subscribes: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct IdleReport {
    /// How much the process grew by being a node.
    pub node_rss_bytes: u64,
    pub used: Used,
}

pub fn run(node: &WorkerNode, role: &IdleJob, link: &Link) -> Outcome {
    let before_bytes = rss_bytes();
    let node = node.open()?;
    let publisher = node.publisher::<[u8]>(&role.publishes)?;
    // As most nodes do it: a callback, and with it a dispatch thread that waits.
    let _heard = node.subscriber::<[u8]>(&role.subscribes)?.on(|_| ());
    publisher.wait_for_subscribers(1, Some(MEET))?;
    link.ready()?;
    let meter = Meter::start();
    link.until(Order::phase(COLLECT));
    let used = meter.read();
    let node_rss_bytes = used.rss_bytes.saturating_sub(before_bytes);
    link.finish(&IdleReport { node_rss_bytes, used })
}

#[derive(Debug, Serialize, Deserialize)]
pub struct JoinerJob {
    /// A topic that an idle node publishes.
    pub topic: String,
    pub times: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct JoinReport {
    /// From the call that opens a node until its subscriber is served, each time.
    pub join_ns: Vec<u64>,
    /// What a topic with one publisher and one subscriber takes in shared memory.
    pub topic_reserved_bytes: u64,
    pub topic_used_bytes: u64,
}

/// Length of the message that a small topic carries, in bytes.
const SMALL_LEN_BYTES: usize = 22;

pub fn join(node: &WorkerNode, role: &JoinerJob, link: &Link) -> Outcome {
    link.ready()?;
    let mut join_ns = Vec::with_capacity(role.times as usize);
    for _ in 0..role.times {
        let start_ns = rnet::now_ns();
        let node = node.open()?;
        let mut subscriber = node.subscriber::<[u8]>(&role.topic)?;
        subscriber.wait_for_publishers(1, Some(MEET))?;
        join_ns.push(rnet::now_ns() - start_ns);
    }
    let (reserved, used) = small_topic(&node.open()?, &node.place)?;
    link.finish(&JoinReport { join_ns, topic_reserved_bytes: reserved, topic_used_bytes: used })
}

/// What the files of a topic take, by how much they grow. Everybody else is idle.
fn small_topic(node: &Node, place: &Path) -> Outcome<(u64, u64)> {
    let before = Memory::of(place);
    let mut publisher = node.publisher::<[u8]>("/small")?;
    let mut subscriber = node.subscriber::<[u8]>("/small")?;
    subscriber.wait_for_publishers(1, Some(MEET))?;
    publisher.send(&[0; SMALL_LEN_BYTES])?;
    subscriber.recv(Some(MEET))?;
    let after = Memory::of(place);
    let grown = |of: fn(&Memory) -> u64| of(&after).saturating_sub(of(&before));
    Ok((grown(|m| m.reserved_bytes), grown(|m| m.used_bytes)))
}
