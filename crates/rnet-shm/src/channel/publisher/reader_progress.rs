//! How long a reliable reader has been stalled, as its writer sees it.
//!
//! A writer observes its readers only while one of them blocks it, and then all of them. Each has a separate
//! timer, which starts when the reader moved last or when the writer began to wait for capacity for its next
//! message. So readers that stall together are evicted together, however many they are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The position of a reader that has nothing left to read, or has left.
const NO_POSITION: u64 = u64::MAX;

/// A writer's record of one reader's stall; only the sending thread uses it.
#[derive(Debug)]
pub(crate) struct ReaderProgress {
    /// The reader's position at the last observation.
    at: AtomicU64,
    /// Since when it has been there.
    since_ns: AtomicU64,
    /// Its position throughout a wait that ended because of another reader's stall.
    outlasted_at: AtomicU64,
}

impl Default for ReaderProgress {
    fn default() -> ReaderProgress {
        let word = || AtomicU64::new(NO_POSITION);
        ReaderProgress { at: word(), since_ns: word(), outlasted_at: word() }
    }
}

impl ReaderProgress {
    /// Observes a reader that needs the log from `needed` on; the log ends at `tail`. `first` marks the start
    /// of a wait. A reader that has read everything is not stalled.
    pub(super) fn observe(&self, needed: u64, tail: u64, now_ns: u64, first: bool) {
        let at = if needed < tail { needed } else { NO_POSITION };
        if first || at != self.at.load(Ordering::Relaxed) {
            self.at.store(at, Ordering::Relaxed);
            self.since_ns.store(now_ns, Ordering::Relaxed);
        }
    }

    /// Extends the timer by a time in which no thread waited for the reader.
    pub(super) fn extend(&self, gap_ns: u64) {
        let since_ns = self.since_ns.load(Ordering::Relaxed);
        self.since_ns.store(since_ns.saturating_add(gap_ns), Ordering::Relaxed);
    }

    /// The remaining time of `stall` for the reader.
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

    /// Another reader reached the stall limit, in waits that began at `began_ns`, without the time between
    /// them. If this reader was stalled throughout, the writer does not wait for it either if it blocks
    /// without having moved. (A reader that moved during that wait may move again and not show it until the
    /// next.)
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
    fn each_reader_has_a_separate_timer() {
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
    fn reader_without_backlog_is_not_stalled() {
        let progress = ReaderProgress::default();
        progress.observe(80, 80, 1000, true);
        assert_eq!(left(&progress, 5000), 100);
        progress.observe(80, 88, 5000, false);
        assert_eq!(left(&progress, 5000), 100);
        assert_eq!(left(&progress, 5100), 0);
    }

    #[test]
    fn does_not_wait_for_reader_stalled_through_another_stall_until_it_moves() {
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
