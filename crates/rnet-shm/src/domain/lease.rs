//! A lease: one word in shared memory that identifies the holder of a task and shows that the holder makes
//! progress.
//!
//! A kernel lock distinguishes living processes from dead ones, but not stopped processes from running ones.
//! The lease does: its holder adds a beat periodically. A waiter that sees an unchanged word takes the lease
//! over by incrementing its epoch. The word is changed only by compare-and-swap, so each epoch has one
//! holder, and a previous holder notices the takeover at its next check. The persister of durable state and
//! each [`crate::domain::role::Role`] use leases.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Interval at which the holder adds a beat.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(100);
/// How long the word may stay unchanged before its holder counts as stopped.
pub const STALL_LIMIT: Duration = Duration::from_millis(500);
/// The most time that one check counts, however long ago the previous check was. A waiter that was suspended
/// itself, with or without the holder, did not observe the holder in that time.
pub const CHECK_INTERVAL: Duration = Duration::from_millis(50);

const BEAT_BITS: u32 = 20;
const BEATS: u64 = (1 << BEAT_BITS) - 1;

/// The lease word: `epoch << 20 | beats`, 0 when it is new. Both operations are `SeqCst`: totally ordered
/// with all others and with earlier and later accesses.
pub trait LeaseCell: Send + Sync + std::fmt::Debug {
    /// Reads the word.
    fn read(&self) -> u64;
    /// Changes the word if it still equals `seen`.
    fn swap(&self, seen: u64, next: u64) -> bool;
}

impl LeaseCell for AtomicU64 {
    fn read(&self) -> u64 {
        self.load(Ordering::SeqCst)
    }

    fn swap(&self, seen: u64, next: u64) -> bool {
        self.compare_exchange(seen, next, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

/// The epoch of a word.
pub fn epoch_of(word: u64) -> u64 {
    word >> BEAT_BITS
}

/// The lease, as seen by its holder.
#[derive(Debug)]
pub struct Lease {
    cell: Arc<dyn LeaseCell>,
    epoch: u64,
}

impl Lease {
    /// Takes the lease if the word still equals `seen`.
    pub fn take(cell: &Arc<dyn LeaseCell>, seen: u64) -> Option<Arc<Lease>> {
        Lease::take_as(cell, seen, epoch_of(seen) + 1)
    }

    /// Like [`Lease::take`], with an epoch that the caller chooses and that was never used before.
    pub fn take_as(cell: &Arc<dyn LeaseCell>, seen: u64, epoch: u64) -> Option<Arc<Lease>> {
        let taken = cell.swap(seen, epoch << BEAT_BITS);
        taken.then(|| Arc::new(Lease { cell: cell.clone(), epoch }))
    }

    /// The epoch of this holder.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Shows progress; returns `false` if the lease was taken over.
    pub fn beat(&self) -> bool {
        let seen = self.cell.read();
        let next = self.epoch << BEAT_BITS | seen.wrapping_add(1) & BEATS;
        // If the swap fails, either another thread of this holder added a beat, which suffices, or another
        // holder took over.
        epoch_of(seen) == self.epoch && (self.cell.swap(seen, next) || self.holds())
    }

    /// Returns `false` from the moment another holder takes over. One load.
    pub fn holds(&self) -> bool {
        epoch_of(self.cell.read()) == self.epoch
    }
}

/// What a waiter has observed of the holder.
#[derive(Debug, Default)]
pub struct StallDetector {
    seen: Option<u64>,
    last_check_ns: u64,
    unchanged_for: Duration,
}

impl StallDetector {
    /// Checks the word at `now_ns` of the monotonic clock. Returns its value once it has not changed for
    /// [`STALL_LIMIT`]; [`Lease::take`] expects this value.
    pub fn check(&mut self, cell: &dyn LeaseCell, now_ns: u64) -> Option<u64> {
        let word = cell.read();
        if self.seen == Some(word) {
            let passed = Duration::from_nanos(now_ns.saturating_sub(self.last_check_ns));
            self.unchanged_for += passed.min(CHECK_INTERVAL);
        } else {
            self.seen = Some(word);
            self.unchanged_for = Duration::ZERO;
        }
        self.last_check_ns = now_ns;
        (self.unchanged_for >= STALL_LIMIT).then_some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn take(cell: &Arc<dyn LeaseCell>) -> Arc<Lease> {
        Lease::take(cell, cell.read()).expect("the lease has no other user")
    }

    #[test]
    fn lease_has_one_holder_and_previous_holder_notices_takeover() {
        let cell: Arc<dyn LeaseCell> = Arc::new(AtomicU64::default());
        let first = Lease::take(&cell, 0).expect("it is free");
        assert!(Lease::take(&cell, 0).is_none(), "the word has changed");
        assert!(first.holds() && first.beat());
        let second = take(&cell);
        assert!(!first.holds() && !first.beat());
        assert!(second.holds() && second.beat());
    }

    #[test]
    fn beats_wrap_without_changing_the_epoch() {
        let cell: Arc<dyn LeaseCell> = Arc::new(AtomicU64::new(6 << BEAT_BITS));
        let lease = take(&cell);
        // One full cycle of the beat counter, and five more.
        for _ in 0..=BEATS + 5 {
            assert!(lease.beat());
        }
        assert_eq!(cell.read(), 7 << BEAT_BITS | 5);
    }

    #[test]
    fn detects_stalled_holder_but_not_beating_holder() {
        let cell: Arc<dyn LeaseCell> = Arc::new(AtomicU64::default());
        let lease = take(&cell);
        let mut suspicion = StallDetector::default();
        // The first check starts the measurement; each later check counts 50 ms.
        let checks = (0..).take_while(|i| suspicion.check(&*cell, i * 50 * MS).is_none()).count();
        assert_eq!(checks, 10);
        assert!(lease.beat());
        assert_eq!(suspicion.check(&*cell, 1_000 * MS), None, "a beat resets the detector");
        // A waiter that was suspended for an hour counts one check interval.
        assert_eq!(suspicion.check(&*cell, 3_600_000 * MS), None);
        let more = (1..).map(|i| suspicion.check(&*cell, 3_600_000 * MS + i * 50 * MS));
        assert_eq!(more.take(9).collect::<Vec<_>>()[7..], [None, Some(cell.read())]);
    }
}
