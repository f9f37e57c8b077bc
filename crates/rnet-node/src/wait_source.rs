//! The sources that a thread waits for, alone or together, and the common wait of subscribers, state watches,
//! wait sets and dispatch threads.

use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use rnet_core::{Error, Result, Wait};
use rnet_shm::os::barrier::ConditionalBarrier;
use rnet_shm::os::bell::{MAX_SLEEP, SleepMode, Waiter, WakeReason};

use crate::wait_loop::{WaitStrategy, WaitTarget};

/// A source that a thread waits for at its bell.
pub trait WaitSource {
    /// Whether something may be available.
    fn is_ready(&self) -> bool;
    /// Whether the wait must end without an item.
    fn must_stop(&self) -> bool {
        false
    }
    /// As [`WaitSource::must_stop`], and clears the request.
    fn take_stop(&self) -> bool {
        false
    }
    /// Longest time that the thread may sleep.
    fn sleep_limit(&self) -> Duration {
        Duration::MAX
    }
    /// Passes the words that wakers check for a sleeper to `show`.
    fn wake_words(&self, _show: &mut dyn FnMut(&AtomicU64)) {}
    /// Whether a waker relies on the barrier of the sleeping thread.
    fn needs_barrier(&self) -> bool {
        false
    }
    /// Called before the thread sleeps; needed if [`WaitSource::wake_words`] does not show the sleep.
    fn before_sleep(&self) {}
    /// Called after the thread has slept, for at most `limit`.
    fn after_sleep(&self, _woken: WakeReason, _limit: Duration) {}
}

/// The wait of a thread for several sources. `each` passes the current sources on each call: sources may be
/// added and removed meanwhile, and ring.
pub struct BellWaitTarget<'a, E> {
    /// The waiting thread and its bell.
    pub(crate) waiter: &'a Waiter,
    /// Value of the bell before the sources were checked.
    pub(crate) before: u32,
    /// Whether a sleep must end precisely at its limit.
    pub(crate) by_the_clock: bool,
    /// Whether the thread checks stop requests when it wakes; a dispatch thread never does, and would not
    /// sleep.
    pub(crate) checks_stop: bool,
    /// Passes each source to a function.
    pub(crate) each: E,
}

fn any<E: Fn(&mut dyn FnMut(&dyn WaitSource))>(
    each: &E,
    is: impl Fn(&dyn WaitSource) -> bool,
) -> bool {
    let mut found = false;
    each(&mut |one| found = found || is(one));
    found
}

impl<E: Fn(&mut dyn FnMut(&dyn WaitSource))> WaitTarget for BellWaitTarget<'_, E> {
    fn poll(&mut self) -> bool {
        // Simulated time advances only with a ring.
        self.waiter.read() != self.before
            || any(&self.each, |one| one.is_ready() || self.checks_stop && one.must_stop())
    }

    fn sleep(&mut self, sleep: SleepMode, limit: Duration) -> WakeReason {
        let (each, checks_stop) = (&self.each, self.checks_stop);
        let woken = self.waiter.sleep_since(
            if self.by_the_clock { SleepMode::Timed } else { sleep },
            self.before,
            |show| each(&mut |one| one.wake_words(show)),
            &ConditionalBarrier(|| any(each, |one| one.needs_barrier())),
            limit,
            || {
                each(&mut |one| one.before_sleep());
                any(each, |one| one.is_ready() || checks_stop && one.must_stop())
            },
        );
        each(&mut |one| one.after_sleep(woken, limit));
        woken
    }
}

impl WaitStrategy {
    /// Waits until a source of `each` is ready; `false` on a timeout.
    ///
    /// # Errors
    /// `Interrupted` if a source requests it, or by a signal if `interruptible` is set.
    pub fn wait_until(
        &mut self,
        waiter: &Waiter,
        wait: Wait,
        until: Option<Instant>,
        interruptible: bool,
        each: impl Fn(&mut dyn FnMut(&dyn WaitSource)),
    ) -> Result<bool> {
        let waited = self.wait_for_any(waiter, wait, until, interruptible, each);
        self.end_first_spin();
        waited
    }

    fn wait_for_any(
        &mut self,
        waiter: &Waiter,
        wait: Wait,
        until: Option<Instant>,
        interruptible: bool,
        each: impl Fn(&mut dyn FnMut(&dyn WaitSource)),
    ) -> Result<bool> {
        let mut interrupted = false;
        loop {
            // Read first: an item that arrives after the check ends the sleep.
            let before = waiter.read();
            if any(&each, |one| one.is_ready()) {
                return Ok(true);
            }
            let mut limit = Duration::MAX;
            each(&mut |one| {
                interrupted |= one.take_stop();
                limit = limit.min(one.sleep_limit());
            });
            if interrupted {
                return Err(Error::Interrupted);
            }
            let left = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return Ok(false),
                left => left.unwrap_or(Duration::MAX),
            };
            let tunes = waiter.bells().tunes_threads();
            let by_the_clock = tunes && limit < left.min(MAX_SLEEP);
            let mut target =
                BellWaitTarget { waiter, before, by_the_clock, checks_stop: true, each: &each };
            let woken = self.wait(&mut target, wait, left.min(limit));
            interrupted = interruptible && woken == WakeReason::Signal;
        }
    }
}
