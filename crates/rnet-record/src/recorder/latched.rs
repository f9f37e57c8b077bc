//! The last messages of transient_local publishers, which each part after the first repeats at its start.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rnet::Durability;

use super::item::ReceivedMessage;

/// The last messages of each transient_local publisher.
#[derive(Debug)]
pub struct Latched {
    /// Maximum bytes of all publishers together.
    limit: usize,
    by_publisher: BTreeMap<u64, VecDeque<Arc<ReceivedMessage>>>,
    len: usize,
    /// Messages that were not kept because the limit was reached.
    dropped: u64,
}

impl Latched {
    /// Keeps up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Latched { limit, by_publisher: BTreeMap::new(), len: 0, dropped: 0 }
    }

    /// Whether messages like this one are kept.
    pub fn is_latched(received: &ReceivedMessage) -> bool {
        depth(received) > 0
    }

    /// Keeps a message, and drops the publisher's oldest beyond its depth.
    pub fn insert(&mut self, received: Arc<ReceivedMessage>) {
        let (depth, len) = (depth(&received) as usize, received.bytes.len());
        let of = self.by_publisher.entry(received.publisher.source.publisher).or_default();
        of.push_back(received);
        self.len += len;
        while of.len() > depth || (self.len > self.limit && !of.is_empty()) {
            self.dropped += u64::from(of.len() <= depth);
            self.len -= of.pop_front().map_or(0, |oldest| oldest.bytes.len());
        }
    }

    /// Drops the messages of a publisher that is gone.
    pub fn remove(&mut self, publisher: u64) {
        let gone = self.by_publisher.remove(&publisher).into_iter().flatten();
        self.len -= gone.map(|received| received.bytes.len()).sum::<usize>();
    }

    /// All kept messages, those of each publisher in order.
    pub fn all(&self) -> Vec<Arc<ReceivedMessage>> {
        self.by_publisher.values().flatten().cloned().collect()
    }

    /// Messages that were not kept because the limit was reached.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

fn depth(received: &ReceivedMessage) -> u32 {
    match received.publisher.source.durability {
        Durability::TransientLocal { depth } => depth,
        Durability::Volatile => 0,
    }
}
