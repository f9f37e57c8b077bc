//! Admission of a reader while the writer publishes.
//!
//! The writer's hot path keeps a private copy of its readers and checks one epoch number per message to
//! detect that the copy is outdated. The node's control thread, which admits a reader, must give it a
//! position from which nothing is missed: it raises the epoch, passes the heavy barrier and only then reads
//! the tail. A push that began before the barrier may not have seen the epoch, but it either ended before the
//! tail or is the one push in flight, and one push never reuses what is at the tail. Every later push sees
//! the epoch first.
//!
//! A reader that also requests past messages is listed with a lower bound of their position, so that a push
//! that has seen the epoch does not reuse them. A push that has not seen it does not reuse any of the newest
//! messages, which the log keeps for late joiners.

use crate::Log;
use crate::sync::{AtomicU64, Barrier, Ordering};

/// Counts the changes of a writer's reader list; private memory of the writer's process.
#[derive(Debug, Default)]
pub struct Epoch(AtomicU64);

impl Epoch {
    /// Writer side: whether the reader list has changed since `seen`, which is updated.
    #[inline]
    pub fn changed(&self, seen: &mut u64) -> bool {
        // SYNC-JOIN: pairs with `advance`. The light barrier of the previous push separates that push's tail
        // from this load.
        let now = self.0.load(Ordering::Acquire);
        core::mem::replace(seen, now) != now
    }

    /// Signals a changed reader list; call it after changing the list.
    pub fn advance(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    /// Admitting side: after the reader is listed, returns the byte position from which the writer keeps
    /// everything for it.
    pub fn admit(&self, log: Log<'_>, barrier: &impl Barrier) -> u64 {
        self.advance();
        // SYNC-JOIN: see `changed`.
        barrier.heavy();
        log.control.tail.tail.load(Ordering::Acquire)
    }
}
