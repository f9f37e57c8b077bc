//! The clock of a node: the clock of its host, or a simulated clock, set from `/clock`. Timers and rates ask
//! it how long to wait. Everything that protects people (deadlines, lifespans, leases, wait limits) uses the
//! host's clock and does not ask here.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rnet_core::{Error, Result};
use rnet_shm::os::bell::Bells;
use rnet_shm::os::fork::ForkGuard;
use rnet_shm::os::{clock, sleep};

use crate::match_event::ChangeCounter;
use crate::sync::lock;

/// A longer step is a jump: the player moved to another position of a recording, and no time has passed.
const LONGEST_STEP_NS: u64 = 60_000_000_000;
/// Longest sleep.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// The clock of a node: CLOCK_MONOTONIC of the host, or a simulated one.
#[derive(Clone, Debug, Default)]
pub struct NodeTime(Option<Arc<Simulated>>);

/// Written by one thread. Each new time changes only one of the two numbers, so that no reader sees a mix.
#[derive(Debug)]
struct Simulated {
    /// Changed by steps.
    elapsed_ns: AtomicU64,
    /// The difference between the time and `elapsed_ns`; changed by jumps.
    offset_ns: AtomicI64,
    was_set: AtomicBool,
    /// The time is no longer set.
    ended: AtomicBool,
    fork_guard: ForkGuard,
    changes: ChangeCounter,
    /// Bells of threads that sleep until the time is set.
    sleepers: Mutex<Vec<(Arc<Bells>, u64)>>,
}

impl Simulated {
    fn notify_all(&self) {
        self.changes.notify_all();
        lock(&self.sleepers).iter().for_each(|(bells, bell)| bells.ring(*bell));
    }

    fn now_ns(&self) -> u64 {
        loop {
            let offset_ns = self.offset_ns.load(Ordering::Acquire);
            let elapsed_ns = self.elapsed_ns.load(Ordering::Acquire);
            // A step after a jump is not added to the time before the jump.
            if offset_ns == self.offset_ns.load(Ordering::Acquire) {
                return elapsed_ns.saturating_add_signed(offset_ns);
            }
        }
    }

    /// Whether the time has stopped permanently.
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) || self.fork_guard.is_from_parent()
    }
}

impl NodeTime {
    /// A simulated time, which starts at 0.
    pub fn simulated() -> NodeTime {
        NodeTime(Some(Arc::new(Simulated {
            elapsed_ns: AtomicU64::new(0),
            offset_ns: AtomicI64::new(0),
            was_set: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            fork_guard: ForkGuard::here(),
            changes: ChangeCounter::default(),
            sleepers: Mutex::default(),
        })))
    }

    /// Whether the time is simulated; otherwise it is the host's clock.
    pub fn is_simulated(&self) -> bool {
        self.0.is_some()
    }

    /// The current time in ns; 0 until the simulated time is set.
    pub fn now_ns(&self) -> u64 {
        self.0.as_ref().map_or_else(clock::now_ns, |simulated| simulated.now_ns())
    }

    /// How long the clock has run, in ns; never decreases. Timers and rates are due by this time. For the
    /// host's clock it is [`NodeTime::now_ns`]; for a simulated time, the sum of its steps without its jumps.
    pub fn elapsed_ns(&self) -> u64 {
        match &self.0 {
            None => clock::now_ns(),
            Some(simulated) => simulated.elapsed_ns.load(Ordering::Acquire),
        }
    }

    /// The time at which the clock will have run for `elapsed_ns`, if there is no jump; 0 for times before 0.
    pub fn at_ns(&self, elapsed_ns: u64) -> u64 {
        let offset_ns = self.0.as_ref().map_or(0, |s| s.offset_ns.load(Ordering::Acquire));
        elapsed_ns.saturating_add_signed(offset_ns)
    }

    /// Sets the simulated time, at most `i64::MAX`; called by one thread.
    pub fn set(&self, now_ns: u64) {
        let Some(simulated) = &self.0 else { return };
        // The first time is not a step.
        let was_set = simulated.was_set.swap(true, Ordering::Relaxed);
        let step = now_ns.checked_sub(simulated.now_ns());
        match step.filter(|step| was_set && *step <= LONGEST_STEP_NS) {
            Some(step) => drop(simulated.elapsed_ns.fetch_add(step, Ordering::Release)),
            None => {
                let elapsed_ns = simulated.elapsed_ns.load(Ordering::Relaxed);
                let offset_ns = now_ns.wrapping_sub(elapsed_ns).cast_signed();
                simulated.offset_ns.store(offset_ns, Ordering::Release);
            }
        }
        simulated.notify_all();
    }

    /// Ends the simulated time, because its node is closing.
    pub fn end(&self) {
        if let Some(simulated) = &self.0 {
            simulated.ended.store(true, Ordering::Release);
            simulated.notify_all();
        }
    }

    /// Checks that the time still advances.
    ///
    /// # Errors
    /// `Closed` if the time has stopped permanently: its node is closed, or belongs to the parent of this
    /// forked process.
    pub fn check(&self) -> Result<()> {
        match self.0.as_ref().filter(|simulated| simulated.has_ended()) {
            None => Ok(()),
            Some(simulated) => {
                let what = "the node that provides the time for this wait".to_owned();
                Err(Error::closed(simulated.fork_guard.name(what)))
            }
        }
    }

    /// How long a thread that is woken by its bell may sleep before it checks again whether the clock has run
    /// for `due_ns`.
    pub fn left_until(&self, due_ns: u64) -> Duration {
        match (&self.0, due_ns.saturating_sub(self.elapsed_ns())) {
            (_, 0) => Duration::ZERO,
            (None, left) => Duration::from_nanos(left),
            // The thread is woken when the time is set.
            (Some(_), _) => Duration::MAX,
        }
    }

    /// Registers a thread that is about to sleep: until [`NodeTime::after_sleep`], each new time rings its
    /// bell.
    pub fn before_sleep(&self, bells: &Arc<Bells>, bell: u64) {
        if let Some(simulated) = &self.0 {
            lock(&simulated.sleepers).push((bells.clone(), bell));
        }
    }

    /// Unregisters a thread after its sleep.
    pub fn after_sleep(&self, bells: &Arc<Bells>, bell: u64) {
        let Some(simulated) = &self.0 else { return };
        let mut sleepers = lock(&simulated.sleepers);
        let at = sleepers.iter().position(|(of, one)| Arc::ptr_eq(of, bells) && *one == bell);
        at.map(|at| sleepers.swap_remove(at));
    }

    /// Sleeps until the clock has run for `due_ns`, at most for `limit` of the host's time; may return
    /// earlier. Returns `false` if a signal ended the sleep.
    pub fn sleep_until(&self, due_ns: u64, limit: Duration) -> bool {
        let Some(simulated) = &self.0 else {
            return sleep::sleep_for(self.left_until(due_ns).min(limit));
        };
        let seen = simulated.changes.count();
        self.left_until(due_ns).is_zero()
            || simulated.has_ended()
            || simulated.changes.wait(seen, limit.min(LONGEST_SLEEP)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn steps_advance_elapsed_time_and_jumps_do_not() {
        let time = NodeTime::simulated();
        assert_eq!((time.now_ns(), time.elapsed_ns()), (0, 0));
        // The first time, a step, no step, a jump ahead, a jump back, and the largest time.
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
            (S, 63 * S),
        ] {
            time.set(now);
            assert_eq!((time.now_ns(), time.elapsed_ns()), (now, run));
            assert_eq!(time.at_ns(run), now);
        }
    }

    #[test]
    fn simulator_that_starts_at_0_loses_no_step() {
        let time = NodeTime::simulated();
        for ms in [0, 10, 20] {
            time.set(ms * 1_000_000);
            assert_eq!(time.elapsed_ns(), ms * 1_000_000);
        }
    }

    #[test]
    fn due_times_before_0_are_clamped_to_0() {
        let time = NodeTime::simulated();
        time.set(1_000 * S);
        time.set(1_010 * S);
        time.set(2 * S);
        assert_eq!([1, 8, 9, 11].map(|s| time.at_ns(s * S)), [0, 0, S, 3 * S]);
        time.set(i64::MAX as u64);
        assert_eq!(time.at_ns(u64::MAX), u64::MAX);
    }

    #[test]
    fn readers_never_see_torn_time() {
        const JUMP: u64 = 1_000 * S;
        let time = NodeTime::simulated();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for n in 0..300_000 {
                    // A jump between two positions, and two steps after it.
                    (0..3).for_each(|step| time.set((1 + n % 2) * JUMP + step));
                }
            });
            while !writer.is_finished() {
                let now_ns = time.now_ns();
                assert!(now_ns % JUMP < 3, "{now_ns} ns was never set");
            }
        });
    }

    #[test]
    fn due_time_is_not_later_than_now() {
        let time = NodeTime::simulated();
        time.set(1_000 * S);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| (1..1_000_000).for_each(|n| time.set(1_000 * S + n)));
            while !writer.is_finished() {
                let due_ns = time.at_ns(time.elapsed_ns());
                let now_ns = time.now_ns();
                assert!(due_ns <= now_ns, "due at {due_ns} ns, but now is {now_ns} ns");
                // A timer that is created now does not start earlier either.
                assert!(now_ns <= time.at_ns(time.elapsed_ns()));
            }
        });
    }

    #[test]
    fn host_time_cannot_be_set() {
        let time = NodeTime::default();
        time.set(1);
        let now = time.now_ns();
        assert!(now > 1 && time.elapsed_ns() >= now && time.at_ns(now) == now);
    }
}
