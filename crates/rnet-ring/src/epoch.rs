//! A reader joins a log while its writer publishes.
//!
//! The writer's hot path knows its readers from a private copy and looks at one epoch number per
//! message to learn that the copy is old. Whoever admits a reader (the node's control thread)
//! must tell it a position from which nothing will be missed: it raises the epoch, passes the
//! heavy barrier and only then reads the tail. A push that began before the barrier may not have
//! seen the epoch, but it is before the tail or the one push in flight, and one push never
//! reuses what lies at the tail; every later push sees the epoch first.
//!
//! A reader that gets messages of the past as well is listed with a lower bound of where they begin,
//! so that no push which has seen the epoch reuses them. A push that has not seen it reuses none of
//! the newest messages that the log keeps for late joiners.

use crate::Log;
use crate::sync::{AtomicU64, Barrier, Ordering};

/// Counts the changes of a writer's readers; private memory of the writer's process.
#[derive(Debug, Default)]
pub struct Epoch(AtomicU64);

impl Epoch {
    /// The writer's side: whether the readers have changed since `seen`, which is brought up to
    /// date.
    #[inline]
    pub fn changed(&self, seen: &mut u64) -> bool {
        // SYNC-JOIN: pairs with `advance`; the light barrier of the push before stands between
        // that push's tail and this load.
        let now = self.0.load(Ordering::Acquire);
        core::mem::replace(seen, now) != now
    }

    /// Says that the readers have changed; call after the list is changed.
    pub fn advance(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    /// The admitting side: after the reader is in the list, returns the byte position from which
    /// the writer keeps everything for it.
    pub fn admit(&self, log: Log<'_>, barrier: &impl Barrier) -> u64 {
        self.advance();
        // SYNC-JOIN: see `changed`.
        barrier.heavy();
        log.control.tail.tail.load(Ordering::Acquire)
    }
}
