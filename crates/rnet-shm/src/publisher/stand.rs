//! For how long a reliable reader has stood still, as its writer sees it.
//!
//! A writer looks at its readers only while one of them holds it back, and then at all of them: each
//! has a time of its own, from the moment at which it moved last or the writer began to wait for room
//! for its next message. So those that stand still together are let go together, however many they are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Where a reader is that has nothing left to read, or has left.
const NOWHERE: u64 = u64::MAX;

/// What a writer knows of one reader's standing still; only the thread that sends uses it.
#[derive(Debug)]
pub(crate) struct Stand {
    /// Where the reader was when the writer looked last.
    at: AtomicU64,
    /// Since when it has been there.
    since_ns: AtomicU64,
    /// Where it was through all of a wait that ended because of another's stall.
    over_at: AtomicU64,
}

impl Default for Stand {
    fn default() -> Stand {
        let word = || AtomicU64::new(NOWHERE);
        Stand { at: word(), since_ns: word(), over_at: word() }
    }
}

impl Stand {
    /// Looks at a reader that needs the log from `needed` on, which ends at `tail`; `first` when a
    /// wait begins. One that has read everything does not stand still.
    pub(super) fn look(&self, needed: u64, tail: u64, now_ns: u64, first: bool) {
        let at = if needed < tail { needed } else { NOWHERE };
        if first || at != self.at.load(Ordering::Relaxed) {
            self.at.store(at, Ordering::Relaxed);
            self.since_ns.store(now_ns, Ordering::Relaxed);
        }
    }

    /// Nobody has waited for the reader for so long.
    pub(super) fn put_off(&self, gap_ns: u64) {
        let since_ns = self.since_ns.load(Ordering::Relaxed);
        self.since_ns.store(since_ns.saturating_add(gap_ns), Ordering::Relaxed);
    }

    /// How much of `stall` is left to the reader.
    pub(super) fn left(&self, stall: Duration, now_ns: u64) -> Duration {
        let at = self.at.load(Ordering::Relaxed);
        if at == NOWHERE {
            return stall;
        }
        if at == self.over_at.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        let stood_ns = now_ns.saturating_sub(self.since_ns.load(Ordering::Relaxed));
        stall.saturating_sub(Duration::from_nanos(stood_ns))
    }

    /// Another reader's stall is over, of waits that began at `began_ns`, without the time between them. If this one
    /// stood still all the while it is not waited for either, should it hold the writer back without having moved. (One
    /// that moved in that wait may move again and not show it until the next.)
    pub(super) fn outlast(&self, began_ns: u64) {
        if self.since_ns.load(Ordering::Relaxed) == began_ns {
            self.over_at.store(self.at.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
impl Stand {
    pub(super) fn set_since(&self, ns: u64) {
        self.since_ns.store(ns, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL: Duration = Duration::from_nanos(100);

    fn left(stand: &Stand, now_ns: u64) -> u128 {
        stand.left(STALL, now_ns).as_nanos()
    }

    #[test]
    fn each_has_a_time_of_its_own() {
        let (still, moves) = (Stand::default(), Stand::default());
        for stand in [&still, &moves] {
            stand.look(8, 80, 1000, true);
        }
        still.look(8, 80, 1060, false);
        moves.look(16, 80, 1060, false);
        assert_eq!((left(&still, 1060), left(&moves, 1060)), (40, 100));
        assert_eq!((left(&still, 1100), left(&moves, 1100)), (0, 60));
    }

    #[test]
    fn one_that_has_read_everything_does_not_stand_still() {
        let stand = Stand::default();
        stand.look(80, 80, 1000, true);
        assert_eq!(left(&stand, 5000), 100);
        stand.look(80, 88, 5000, false);
        assert_eq!(left(&stand, 5000), 100);
        assert_eq!(left(&stand, 5100), 0);
    }

    #[test]
    fn one_that_outlasted_a_stall_is_not_waited_for_until_it_moves() {
        let (still, moved) = (Stand::default(), Stand::default());
        for stand in [&still, &moved] {
            stand.look(8, 80, 1000, true);
        }
        moved.look(16, 80, 1010, false);
        still.outlast(1000);
        moved.outlast(1000);
        still.look(8, 80, 2000, true);
        moved.look(16, 80, 2000, true);
        assert_eq!((left(&still, 2000), left(&moved, 2000)), (0, 100));
        still.look(24, 80, 2010, false);
        assert_eq!(left(&still, 2010), 100);
    }
}
