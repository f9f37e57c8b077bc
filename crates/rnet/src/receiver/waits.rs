//! How a receiver waits: spinning, dozing by the rhythm of the topic, asleep until it is rung.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rnet_core::{Error, Lane, Result, Wait};
use rnet_shm::barrier::AskingBarrier;
use rnet_shm::bell::{Sleep, Woken};
use rnet_shm::channel::Reader;
use rnet_shm::{clock, cpu};

use super::Receiver;
use crate::rhythm::Plan;

/// Looks at the clock once per this many turns of a spin.
const SPINS_PER_LOOK: u32 = 32;

impl Receiver {
    /// Waits until [`Receiver::advance`] may find something; `false` when the time is over.
    pub(crate) fn wait(&mut self, until: Option<Instant>) -> Result<bool> {
        self.check_birth()?;
        if self.state.take_stop() {
            return Err(Error::Interrupted);
        }
        if self.lane() == Some(Lane::Urgent) {
            cpu::ask_for_short_slices();
        }
        match self.qos.wait {
            Wait::Spin => Ok(self.spin(until)),
            Wait::Block => self.sleep(until, Sleep::Woken),
            Wait::Adaptive => self.wait_adaptively(until),
        }
    }

    fn wait_adaptively(&mut self, until: Option<Instant>) -> Result<bool> {
        if std::mem::take(&mut self.leaves) {
            cpu::leave();
        }
        let since_ns = clock::now_ns();
        self.awake = false;
        loop {
            let (now, now_ns) = (Instant::now(), clock::now_ns());
            if until.is_some_and(|until| until <= now) {
                return Ok(self.is_ready());
            }
            let at = |ns: u64| {
                let at = now.checked_add(Duration::from_nanos(ns.saturating_sub(now_ns)));
                until.into_iter().chain(at).min()
            };
            match self.rhythm.plan(now_ns, since_ns) {
                Plan::Sleep => {
                    self.awake = false;
                    return self.sleep(until, Sleep::Woken);
                }
                Plan::Spin(to_ns) => {
                    if self.spin(at(to_ns)) {
                        return Ok(true);
                    }
                }
                Plan::Doze(to_ns) => {
                    if self.sleep(at(to_ns), Sleep::ByTheClock)? {
                        self.awake = false;
                        return Ok(true);
                    }
                    let now_ns = clock::now_ns();
                    // Else it was the user's time that was over.
                    if now_ns >= to_ns {
                        self.awake = true;
                        self.rhythm.dozed(now_ns - to_ns);
                    }
                }
            }
        }
    }

    fn spin(&self, until: Option<Instant>) -> bool {
        loop {
            for _ in 0..SPINS_PER_LOOK {
                // A wait that is to end says so when it is taken up again.
                if self.is_ready() || self.state.must_stop() {
                    return true;
                }
                std::hint::spin_loop();
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return self.is_ready();
            }
        }
    }

    fn sleep(&mut self, until: Option<Instant>, sleep: Sleep) -> Result<bool> {
        if self.state.bell() != self.waiter.bell() {
            // A wait set had this subscriber before.
            self.set_bell(self.waiter.bell());
        }
        loop {
            let now = Instant::now();
            let left = match until {
                Some(until) if until <= now => return Ok(self.is_ready()),
                Some(until) => until - now,
                None => Duration::MAX,
            };
            let (state, channels, errors) = (&self.state, &self.channels, &self.errors);
            let ready = || {
                !errors.is_empty()
                    || channels.iter().any(Reader::is_ready)
                    || state.full.load(Ordering::Acquire)
                    || state.must_stop()
            };
            let places = channels.iter().map(Reader::asleep_word);
            let barrier = AskingBarrier(|| channels.iter().any(Reader::needs_barrier));
            let woken = self.waiter.sleep(sleep, places, &barrier, left, ready);
            if self.is_ready() {
                self.note_if_late(woken, left);
                return Ok(true);
            }
            let told = self.state.take_stop();
            if told || (woken == Woken::Signal && self.interruptible) {
                return Err(Error::Interrupted);
            }
        }
    }

    /// Counts a sleep of at most `limit` that nobody ended though there was something to read.
    pub(crate) fn note_if_late(&self, woken: Woken, limit: Duration) {
        if woken == Woken::TimedOut && limit > rnet_shm::bell::MAX_SLEEP {
            self.channels.iter().for_each(Reader::note_if_late);
        }
    }
}
