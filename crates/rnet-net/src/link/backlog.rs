//! How much of what another link has said waits for the control thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes that wait, as they stand in memory.
#[derive(Clone, Default)]
pub struct Backlog(Arc<AtomicU64>);

/// A part of a backlog, for as long as it is not dropped.
pub struct BacklogGuard {
    of: Arc<AtomicU64>,
    len_bytes: u64,
}

impl Backlog {
    /// A link that is asked for more than it can do in time has so much waiting.
    const MAX_LEN_BYTES: u64 = 64 << 20;
    /// What each event takes beside the bytes that it holds.
    const EVENT_LEN_BYTES: u64 = 256;

    /// Counts an event with so many bytes; `None` if too much waits.
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
