//! A lease: one word in shared memory, which says who has a task and that he moves.
//!
//! A kernel lock tells the living from the dead, but not a process that is stopped from one that
//! works. The word does: its holder adds a beat now and then, and who waits and sees it stand still
//! takes it over by counting its epoch up. All change it by compare-and-swap alone, so each epoch has
//! one holder, and an old one notices at his next look. The persister of the durable state works
//! so, and each [`crate::domain::role::Role`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often the holder adds a beat.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(100);
/// For how long the word stands still before its holder counts as stopped.
pub const STALL_LIMIT: Duration = Duration::from_millis(500);
/// What one look at the word counts at most, however long ago the one before it was: who was
/// himself suspended, with the holder or without him, has not watched him.
pub const CHECK_INTERVAL: Duration = Duration::from_millis(50);

const BEAT_BITS: u32 = 20;
const BEATS: u64 = (1 << BEAT_BITS) - 1;

/// Where the word stands: `epoch << 20 | beats`, 0 when it is new. Both in one order with all
/// others, and with what is done before and after (`SeqCst`).
pub trait LeaseCell: Send + Sync + std::fmt::Debug {
    /// What the word reads.
    fn read(&self) -> u64;
    /// Changes it, if it still reads `seen`.
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

/// The epoch that a word names.
pub fn epoch_of(word: u64) -> u64 {
    word >> BEAT_BITS
}

/// The lease as its holder has it.
#[derive(Debug)]
pub struct Lease {
    cell: Arc<dyn LeaseCell>,
    epoch: u64,
}

impl Lease {
    /// Takes the lease if the word still reads `seen`.
    pub fn take(cell: &Arc<dyn LeaseCell>, seen: u64) -> Option<Arc<Lease>> {
        Lease::take_as(cell, seen, epoch_of(seen) + 1)
    }

    /// As [`Lease::take`], with an epoch of the taker's choice that was never given before.
    pub fn take_as(cell: &Arc<dyn LeaseCell>, seen: u64, epoch: u64) -> Option<Arc<Lease>> {
        let taken = cell.swap(seen, epoch << BEAT_BITS);
        taken.then(|| Arc::new(Lease { cell: cell.clone(), epoch }))
    }

    /// Which holder this is.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Shows that the holder moves; `false` if he is none any more.
    pub fn beat(&self) -> bool {
        let seen = self.cell.read();
        let next = self.epoch << BEAT_BITS | seen.wrapping_add(1) & BEATS;
        // Where the swap fails, another thread of this holder has beaten, which is as good, or
        // another holder has come.
        epoch_of(seen) == self.epoch && (self.cell.swap(seen, next) || self.holds())
    }

    /// `false` from the moment on that another has taken over. One load.
    pub fn holds(&self) -> bool {
        epoch_of(self.cell.read()) == self.epoch
    }
}

/// What one who waits has seen of the holder.
#[derive(Debug, Default)]
pub struct StallDetector {
    seen: Option<u64>,
    last_check_ns: u64,
    unchanged_for: Duration,
}

impl StallDetector {
    /// Looks at the word, at `now_ns` of the monotonic clock. Gives what it reads once it has stood
    /// still for [`STALL_LIMIT`]; that is what [`Lease::take`] wants to find.
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
        Lease::take(cell, cell.read()).expect("nobody else is there")
    }

    #[test]
    fn the_lease_goes_to_one_and_the_old_holder_notices() {
        let cell: Arc<dyn LeaseCell> = Arc::new(AtomicU64::default());
        let first = Lease::take(&cell, 0).expect("it is free");
        assert!(Lease::take(&cell, 0).is_none(), "the word has changed");
        assert!(first.holds() && first.beat());
        let second = take(&cell);
        assert!(!first.holds() && !first.beat());
        assert!(second.holds() && second.beat());
    }

    #[test]
    fn beats_count_round_without_touching_the_epoch() {
        let cell: Arc<dyn LeaseCell> = Arc::new(AtomicU64::new(6 << BEAT_BITS));
        let lease = take(&cell);
        // As many as there are, and five more.
        for _ in 0..=BEATS + 5 {
            assert!(lease.beat());
        }
        assert_eq!(cell.read(), 7 << BEAT_BITS | 5);
    }

    #[test]
    fn who_stands_still_is_suspected_and_who_beats_is_not() {
        let cell: Arc<dyn LeaseCell> = Arc::new(AtomicU64::default());
        let lease = take(&cell);
        let mut suspicion = StallDetector::default();
        // The first look is the start, each further one counts 50 ms.
        let looks = (0..).take_while(|i| suspicion.check(&*cell, i * 50 * MS).is_none()).count();
        assert_eq!(looks, 10);
        assert!(lease.beat());
        assert_eq!(suspicion.check(&*cell, 1_000 * MS), None, "a beat clears him");
        // Who was away for an hour has seen one look's worth.
        assert_eq!(suspicion.check(&*cell, 3_600_000 * MS), None);
        let more = (1..).map(|i| suspicion.check(&*cell, 3_600_000 * MS + i * 50 * MS));
        assert_eq!(more.take(9).collect::<Vec<_>>()[7..], [None, Some(cell.read())]);
    }
}
