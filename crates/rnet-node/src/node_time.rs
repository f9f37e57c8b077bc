//! What time it is for a node: that of its host, or a simulated one, which somebody sets from what `/clock` says.
//! Timers and rates ask here how long to wait. Whatever protects people (deadlines, lifespans, leases, limits of
//! waits) goes by the host's clock and does not ask here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rnet_shm::{clock, sleep};

use crate::match_event::Changes;

/// A longer step is a jump: somebody went to another place of a recording, and no time has passed.
const LONGEST_STEP_NS: u64 = 60_000_000_000;
/// No sleep is longer.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// The clock of a node: CLOCK_MONOTONIC of the host, or a simulated one.
#[derive(Clone, Debug, Default)]
pub struct NodeTime(Option<Arc<Simulated>>);

/// Written by one thread.
#[derive(Debug, Default)]
struct Simulated {
    now_ns: AtomicU64,
    run_ns: AtomicU64,
    /// `run_ns` less `now_ns`, wrapping; changed by jumps.
    offset_ns: AtomicU64,
    /// Nobody sets it any more.
    ended: AtomicBool,
    changes: Changes,
}

impl NodeTime {
    /// A simulated time, which stands at 0.
    pub fn simulated() -> NodeTime {
        NodeTime(Some(Arc::default()))
    }

    pub fn is_simulated(&self) -> bool {
        self.0.is_some()
    }

    /// Now, in ns; 0 as long as the simulated time was not set.
    pub fn now_ns(&self) -> u64 {
        match &self.0 {
            None => clock::now_ns(),
            Some(simulated) => simulated.now_ns.load(Ordering::Acquire),
        }
    }

    /// How long the clock has run, in ns, which never goes back: by this timers and rates are due. Of the host it is
    /// [`NodeTime::now_ns`]; of a simulated time, the sum of its steps without its jumps.
    pub fn run_ns(&self) -> u64 {
        match &self.0 {
            None => clock::now_ns(),
            Some(simulated) => simulated.run_ns.load(Ordering::Acquire),
        }
    }

    /// What time it is when the clock has run for so long, as far as is known.
    pub fn at_ns(&self, run_ns: u64) -> u64 {
        let offset = self.0.as_ref().map_or(0, |s| s.offset_ns.load(Ordering::Acquire));
        run_ns.wrapping_sub(offset)
    }

    /// Sets the simulated time; one thread does.
    pub fn set(&self, now_ns: u64) {
        let Some(simulated) = &self.0 else { return };
        let before_ns = simulated.now_ns.load(Ordering::Relaxed);
        let mut run_ns = simulated.run_ns.load(Ordering::Relaxed);
        match now_ns.checked_sub(before_ns) {
            // What it says first is no step either.
            Some(step) if before_ns > 0 && step <= LONGEST_STEP_NS => {
                run_ns = run_ns.saturating_add(step);
            }
            _ => simulated.offset_ns.store(run_ns.wrapping_sub(now_ns), Ordering::Release),
        }
        simulated.run_ns.store(run_ns, Ordering::Release);
        simulated.now_ns.store(now_ns, Ordering::Release);
        simulated.changes.notify_all();
    }

    /// Nobody sets it any more: its node has ended.
    pub fn end(&self) {
        if let Some(simulated) = &self.0 {
            simulated.ended.store(true, Ordering::Release);
            simulated.changes.notify_all();
        }
    }

    /// Whether it stands for ever.
    pub fn has_ended(&self) -> bool {
        self.0.as_ref().is_some_and(|simulated| simulated.ended.load(Ordering::Acquire))
    }

    /// How long a thread that can be woken at its bell may sleep before it looks again whether the clock has run
    /// for `due_ns`.
    pub fn left_until(&self, due_ns: u64) -> Duration {
        match (&self.0, due_ns.saturating_sub(self.run_ns())) {
            (_, 0) => Duration::ZERO,
            (None, left) => Duration::from_nanos(left),
            // It is woken when the time is set.
            (Some(_), _) => Duration::MAX,
        }
    }

    /// Sleeps until the clock has run for `due_ns`, or for `limit` of the host's time at the longest; it may return
    /// earlier. Returns `false` if a signal ended the sleep.
    pub fn sleep_until(&self, due_ns: u64, limit: Duration) -> bool {
        let Some(simulated) = &self.0 else {
            return sleep::sleep_for(self.left_until(due_ns).min(limit));
        };
        let seen = simulated.changes.count();
        self.left_until(due_ns).is_zero()
            || self.has_ended()
            || simulated.changes.wait(seen, limit.min(LONGEST_SLEEP)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn steps_are_run_and_jumps_are_not() {
        let time = NodeTime::simulated();
        assert_eq!((time.now_ns(), time.run_ns()), (0, 0));
        // The first word, a step, none, far ahead, back, and the last time that there is.
        for (now, run) in [
            (1_000 * S, 0),
            (1_001 * S, S),
            (1_001 * S, S),
            (5_000 * S, S),
            (5_060 * S, 61 * S),
            (2 * S, 61 * S),
            (3 * S, 62 * S),
            (i64::MAX as u64, 62 * S),
            (0, 62 * S),
            (S, 62 * S),
        ] {
            time.set(now);
            assert_eq!((time.now_ns(), time.run_ns()), (now, run));
            assert_eq!(time.at_ns(run), now);
        }
    }

    #[test]
    fn the_time_of_the_host_cannot_be_set() {
        let time = NodeTime::default();
        time.set(1);
        let now = time.now_ns();
        assert!(now > 1 && time.run_ns() >= now && time.at_ns(now) == now);
    }
}
