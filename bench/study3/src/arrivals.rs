//! How many messages have arrived.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Longest wait for messages.
pub const WAIT_LIMIT: Duration = Duration::from_secs(5);
/// When none has arrived for so long, the rest is taken as lost.
pub const SILENCE: Duration = Duration::from_millis(250);

/// Counts arrivals on one thread and wakes another, the one that made it, when there are enough.
///
/// All accesses are SeqCst: of "the waiter writes `wanted`, then reads `count`" and "the counter
/// writes `count`, then reads `wanted`", at least one sees the other's write, and no wake-up is
/// missed.
pub struct Arrivals {
    count: AtomicU64,
    wanted: AtomicU64,
    waiter: Thread,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self {
            count: AtomicU64::new(0),
            wanted: AtomicU64::new(u64::MAX),
            waiter: thread::current(),
        }
    }
}

impl Arrivals {
    /// One message has arrived.
    #[inline]
    pub fn add(&self) {
        let count = self.count.fetch_add(1, SeqCst) + 1;
        if count == self.wanted.load(SeqCst) {
            self.waiter.unpark();
        }
    }

    /// How many have arrived.
    pub fn count(&self) -> u64 {
        self.count.load(SeqCst)
    }

    /// Waits until `wanted` have arrived in all, until none arrives for [`SILENCE`], or for
    /// [`WAIT_LIMIT`]. Returns whether they all have. For the thread that made this.
    pub fn wait_for(&self, wanted: u64) -> bool {
        self.wait(wanted, SILENCE)
    }

    /// As [`wait_for`](Self::wait_for), with another silence.
    pub fn wait(&self, wanted: u64, silence: Duration) -> bool {
        self.wanted.store(wanted, SeqCst);
        let start = Instant::now();
        let (mut seen, mut since) = (self.count(), start);
        let all = loop {
            let count = self.count();
            if count >= wanted {
                break true;
            }
            let now = Instant::now();
            if count != seen {
                (seen, since) = (count, now);
            }
            if now - since >= silence || now - start >= WAIT_LIMIT {
                break false;
            }
            thread::park_timeout(silence - (now - since));
        };
        self.wanted.store(u64::MAX, SeqCst);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_waiter_is_woken_when_all_are_there() {
        let arrivals = Arc::new(Arrivals::default());
        for round in 1..=200 {
            let adder = arrivals.clone();
            let thread = thread::spawn(move || (0..100).for_each(|_| adder.add()));
            assert!(arrivals.wait_for(round * 100));
            thread.join().expect("it only counts");
        }
        assert_eq!(arrivals.count(), 20_000);
    }

    #[test]
    fn what_does_not_come_is_not_waited_for_for_ever() {
        let arrivals = Arrivals::default();
        arrivals.add();
        let start = Instant::now();
        assert!(!arrivals.wait_for(2));
        assert!(start.elapsed() >= SILENCE);
        assert!(arrivals.wait_for(1));
    }
}
