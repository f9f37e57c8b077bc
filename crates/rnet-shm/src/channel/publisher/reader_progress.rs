//! For how long a reliable reader has stood still, as its writer sees it.
//!
//! A writer looks at its readers only while one of them holds it back, and then at all of them: each
//! has a time of its own, from the moment at which it moved last or the writer began to wait for room
//! for its next message. So those that stand still together are let go together, however many they are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Where a reader is that has nothing left to read, or has left.
const NO_POSITION: u64 = u64::MAX;

/// What a writer knows of one reader's standing still; only the thread that sends uses it.
#[derive(Debug)]
pub(crate) struct ReaderProgress {
    /// Where the reader was when the writer looked last.
    at: AtomicU64,
    /// Since when it has been there.
    since_ns: AtomicU64,
    /// Where it was through all of a wait that ended because of another's stall.
    outlasted_at: AtomicU64,
}

impl Default for ReaderProgress {
    fn default() -> ReaderProgress {
        let word = || AtomicU64::new(NO_POSITION);
        ReaderProgress { at: word(), since_ns: word(), outlasted_at: word() }
    }
}

impl ReaderProgress {
    /// Looks at a reader that needs the log from `needed` on, which ends at `tail`; `first` when a
    /// wait begins. One that has read everything does not stand still.
    pub(super) fn observe(&self, needed: u64, tail: u64, now_ns: u64, first: bool) {
        let at = if needed < tail { needed } else { NO_POSITION };
        if first || at != self.at.load(Ordering::Relaxed) {
            self.at.store(at, Ordering::Relaxed);
            self.since_ns.store(now_ns, Ordering::Relaxed);
        }
    }

    /// Nobody has waited for the reader for so long.
    pub(super) fn extend(&self, gap_ns: u64) {
        let since_ns = self.since_ns.load(Ordering::Relaxed);
        self.since_ns.store(since_ns.saturating_add(gap_ns), Ordering::Relaxed);
    }

    /// How much of `stall` is left to the reader.
    pub(super) fn remaining(&self, stall: Duration, now_ns: u64) -> Duration {
        let at = self.at.load(Ordering::Relaxed);
        if at == NO_POSITION {
            return stall;
        }
        if at == self.outlasted_at.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        let stood_ns = now_ns.saturating_sub(self.since_ns.load(Ordering::Relaxed));
        stall.saturating_sub(Duration::from_nanos(stood_ns))
    }

    /// Another reader's stall is over, of waits that began at `began_ns`, without the time between them. If this one
    /// stood still all the while it is not waited for either, should it hold the writer back without having moved. (One
    /// that moved in that wait may move again and not show it until the next.)
    pub(super) fn mark_outlasted(&self, began_ns: u64) {
        if self.since_ns.load(Ordering::Relaxed) == began_ns {
            self.outlasted_at.store(self.at.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
impl ReaderProgress {
    pub(super) fn set_since(&self, ns: u64) {
        self.since_ns.store(ns, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL: Duration = Duration::from_nanos(100);

    fn left(progress: &ReaderProgress, now_ns: u64) -> u128 {
        progress.remaining(STALL, now_ns).as_nanos()
    }

    #[test]
    fn each_has_a_time_of_its_own() {
        let (still, moves) = (ReaderProgress::default(), ReaderProgress::default());
        for progress in [&still, &moves] {
            progress.observe(8, 80, 1000, true);
        }
        still.observe(8, 80, 1060, false);
        moves.observe(16, 80, 1060, false);
        assert_eq!((left(&still, 1060), left(&moves, 1060)), (40, 100));
        assert_eq!((left(&still, 1100), left(&moves, 1100)), (0, 60));
    }

    #[test]
    fn one_that_has_read_everything_does_not_stand_still() {
        let progress = ReaderProgress::default();
        progress.observe(80, 80, 1000, true);
        assert_eq!(left(&progress, 5000), 100);
        progress.observe(80, 88, 5000, false);
        assert_eq!(left(&progress, 5000), 100);
        assert_eq!(left(&progress, 5100), 0);
    }

    #[test]
    fn one_that_outlasted_a_stall_is_not_waited_for_until_it_moves() {
        let (still, moved) = (ReaderProgress::default(), ReaderProgress::default());
        for progress in [&still, &moved] {
            progress.observe(8, 80, 1000, true);
        }
        moved.observe(16, 80, 1010, false);
        still.mark_outlasted(1000);
        moved.mark_outlasted(1000);
        still.observe(8, 80, 2000, true);
        moved.observe(16, 80, 2000, true);
        assert_eq!((left(&still, 2000), left(&moved, 2000)), (0, 100));
        still.observe(24, 80, 2010, false);
        assert_eq!(left(&still, 2010), 100);
    }
}
