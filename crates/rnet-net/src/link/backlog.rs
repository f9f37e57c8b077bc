//! Limits the data from one other link that waits for the control thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The waiting bytes, counted as they occupy memory.
#[derive(Clone, Default)]
pub struct Backlog(Arc<AtomicU64>);

/// A counted part of a backlog; dropping it releases the part.
pub struct BacklogGuard {
    of: Arc<AtomicU64>,
    len_bytes: u64,
}

impl Backlog {
    /// The most bytes that may wait. A peer that reaches it requests more than the link can process in
    /// time.
    const MAX_LEN_BYTES: u64 = 64 << 20;
    /// Overhead of an event beside its payload.
    const EVENT_LEN_BYTES: u64 = 256;

    /// Counts an event of `len_bytes`; `None` if the backlog is full.
    pub fn add(&self, len_bytes: usize) -> Option<BacklogGuard> {
        let len_bytes = Self::EVENT_LEN_BYTES + len_bytes as u64;
        let waits = BacklogGuard { of: self.0.clone(), len_bytes };
        let before = self.0.fetch_add(len_bytes, Ordering::Relaxed);
        (before + len_bytes <= Self::MAX_LEN_BYTES).then_some(waits)
    }
}

impl Drop for BacklogGuard {
    fn drop(&mut self) {
        self.of.fetch_sub(self.len_bytes, Ordering::Relaxed);
    }
}
