//! Messages that a publisher has sent and the library still holds.
//!
//! The crate's PUB never waits: it drops a message when a queue of 100,000 messages is full, regardless of
//! their size, and has no setting for it. But it holds a message's bytes only until they are in the
//! connection's write buffer, and the application may own those bytes (`Bytes::from_owner`). So the
//! application can count messages in flight and wait, so that no queue is ever full.

use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// How much may be in flight: 16 messages of 4 MiB, 8,192 short ones.
const LIMIT: usize = 64 << 20;
/// A message counts for at least this, so that also the number of short ones is limited.
const WEIGHT_MIN: usize = 8 << 10;

/// The count of a publisher.
#[derive(Default)]
pub struct InFlight {
    weight: AtomicUsize,
    fell: Notify,
}

impl InFlight {
    /// Whether another message fits.
    pub fn has_room(&self) -> bool {
        self.weight.load(Ordering::Relaxed) < LIMIT
    }

    /// Waits until another message fits.
    pub async fn room(&self) {
        while !self.has_room() {
            // A permit that came before is kept, so a fall between these two lines is not missed.
            self.fell.notified().await;
        }
    }

    /// Counts a message until the last view of its bytes is dropped.
    pub fn count(self: &Arc<Self>, bytes: Vec<u8>) -> Bytes {
        let weight = bytes.len().max(WEIGHT_MIN);
        self.weight.fetch_add(weight, Ordering::Relaxed);
        Bytes::from_owner(Counted { bytes, weight, all: self.clone() })
    }
}

struct Counted {
    bytes: Vec<u8>,
    weight: usize,
    all: Arc<InFlight>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let before = self.all.weight.fetch_sub(self.weight, Ordering::Relaxed);
        // Only at half, so that the publisher is not woken for each message.
        if before > LIMIT / 2 && before - self.weight <= LIMIT / 2 {
            self.all.fell.notify_one();
        }
    }
}
