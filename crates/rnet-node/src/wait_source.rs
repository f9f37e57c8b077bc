//! What a thread waits for, alone or among others, and the one way in which it waits: as a subscriber, a watch of
//! the state, a wait set, or a dispatch thread.

use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use rnet_core::{Error, Result, Wait};
use rnet_shm::os::barrier::ConditionalBarrier;
use rnet_shm::os::bell::{MAX_SLEEP, SleepMode, Waiter, WakeReason};

use crate::wait_strategy::{WaitStrategy, WaitTarget};

/// Something that a thread waits for at its bell.
pub trait WaitSource {
    /// Whether there may be something to take.
    fn is_ready(&self) -> bool;
    /// Whether the wait is to end without it.
    fn must_stop(&self) -> bool {
        false
    }
    /// As [`WaitSource::must_stop`], and forgets it.
    fn take_stop(&self) -> bool {
        false
    }
    /// How long the thread may sleep.
    fn sleep_limit(&self) -> Duration {
        Duration::MAX
    }
    /// Shows the words in which wakers look for a sleeper.
    fn wake_words(&self, _show: &mut dyn FnMut(&AtomicU64)) {}
    /// Whether a waker counts on the barrier of the thread that sleeps.
    fn needs_barrier(&self) -> bool {
        false
    }
    /// The thread is about to sleep; told where [`WaitSource::wake_words`] does not show it.
    fn before_sleep(&self) {}
    /// The thread has slept, for at most `limit`.
    fn after_sleep(&self, _woken: WakeReason, _limit: Duration) {}
}

/// Where a thread waits for several things. `each` shows them, as they are when it is called: others may come
/// and go meanwhile, and ring.
pub struct BellWaitTarget<'a, E> {
    pub waiter: &'a Waiter,
    /// What the bell read before it was looked whether something is ready.
    pub before: u32,
    pub by_the_clock: bool,
    /// Whether the thread asks for stops when it wakes; a dispatch thread, which never does, would not sleep.
    pub checks_stop: bool,
    pub each: E,
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
        // Simulated time goes on with a ring and nothing else.
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
    /// Waits until something that `each` shows is ready; `false` when the time is over.
    ///
    /// # Errors
    /// `Interrupted` if one of them says so, or by a signal if that may be.
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
            // Read first: who comes after the look ends the sleep.
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
