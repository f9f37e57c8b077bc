//! What transient_local publishers keep, as far as it was seen: the start of each part after the first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rnet::Durability;

use super::item::Taken;

/// The last messages of each transient_local publisher.
#[derive(Debug)]
pub struct Latched {
    /// Bytes that are kept at most, of all publishers together.
    limit: usize,
    by_publisher: BTreeMap<u64, VecDeque<Arc<Taken>>>,
    len: usize,
    /// Messages that were not kept because others took all of the room.
    left_out: u64,
}

impl Latched {
    /// Keeps up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Latched { limit, by_publisher: BTreeMap::new(), len: 0, left_out: 0 }
    }

    /// Whether messages like this one are kept.
    pub fn wants(taken: &Taken) -> bool {
        depth(taken) > 0
    }

    /// Keeps a message, in the place of its publisher's oldest.
    pub fn keep(&mut self, taken: Arc<Taken>) {
        let (depth, len) = (depth(&taken) as usize, taken.bytes.len());
        let of = self.by_publisher.entry(taken.publisher.source.publisher).or_default();
        of.push_back(taken);
        self.len += len;
        while of.len() > depth || (self.len > self.limit && !of.is_empty()) {
            self.left_out += u64::from(of.len() <= depth);
            self.len -= of.pop_front().map_or(0, |oldest| oldest.bytes.len());
        }
    }

    /// A publisher is gone, and with it what it kept.
    pub fn forget(&mut self, publisher: u64) {
        let gone = self.by_publisher.remove(&publisher).into_iter().flatten();
        self.len -= gone.map(|taken| taken.bytes.len()).sum::<usize>();
    }

    /// All that are kept, those of a publisher in their order.
    pub fn all(&self) -> Vec<Arc<Taken>> {
        self.by_publisher.values().flatten().cloned().collect()
    }

    /// Messages that were not kept for want of room.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

fn depth(taken: &Taken) -> u32 {
    match taken.publisher.source.durability {
        Durability::TransientLocal { depth } => depth,
        Durability::Volatile => 0,
    }
}
