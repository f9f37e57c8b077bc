//! How a receiver waits: as its subscriber asks for, until it is rung.

use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use rnet_core::{Error, Lane, Result, Wait};
use rnet_shm::channel::reader::Reader;
use rnet_shm::os::barrier::SleeperBarrier;
use rnet_shm::os::bell::{MAX_SLEEP, SleepMode, WakeReason};
use rnet_shm::os::cpu;

use super::Receiver;
use crate::wait_source::WaitSource;

impl WaitSource for Receiver {
    fn is_ready(&self) -> bool {
        self.is_ready()
    }
    fn must_stop(&self) -> bool {
        self.state.waiting.must_stop()
    }
    fn take_stop(&self) -> bool {
        self.state.waiting.take_stop()
    }
    fn wake_words(&self, show: &mut dyn FnMut(&AtomicU64)) {
        self.channels.iter().for_each(|channel| show(channel.asleep_word()));
    }
    fn needs_barrier(&self) -> bool {
        self.channels.iter().any(Reader::needs_barrier)
    }
    /// Counts a sleep that nobody ended though there was something to read.
    fn after_sleep(&self, woken: WakeReason, limit: Duration) {
        if woken == WakeReason::TimedOut && limit > MAX_SLEEP {
            self.channels.iter().for_each(Reader::count_late_wake);
        }
    }
}

impl Receiver {
    /// Waits until [`Receiver::advance`] may find something; `false` when the time is over.
    pub fn wait(&mut self, until: Option<Instant>) -> Result<bool> {
        self.check_fork()?;
        if self.state.bell() != self.waiter.bell() {
            // A wait set had this subscriber before.
            self.set_bell(self.waiter.bell());
        }
        let urgent = self.lane() == Some(Lane::Urgent);
        let mut wait_strategy = std::mem::take(&mut self.wait_strategy);
        if self.qos.wait == Wait::Adaptive || urgent && self.qos.wait == Wait::Block {
            wait_strategy.keep_short_slice(if urgent {
                cpu::SliceLen::Urgent
            } else {
                cpu::SliceLen::Bulk
            });
        }
        let Receiver { waiter, qos, interruptible, .. } = &*self;
        let each = |look: &mut dyn FnMut(&dyn WaitSource)| look(self);
        let waited = wait_strategy.wait_until(waiter, qos.wait, until, *interruptible, each);
        self.wait_strategy = wait_strategy;
        self.tracing.resume_with_credit(&self.state);
        waited
    }

    /// Learns from a message that was waited for.
    pub fn learn_period(&mut self, at: usize) {
        if self.qos.wait != Wait::Adaptive {
            return;
        }
        // Those that were passed over came, too. The counters stand in a file that others may write.
        let counts = self.channels.iter().flat_map(|c| [c.received(), c.skipped()]);
        let count = counts.fold(0, u64::wrapping_add);
        self.wait_strategy.record_arrival(self.channels[at].current_arrival_ns(), count);
    }

    /// Sleeps until something about matching may have changed.
    pub fn wait_for_match(&mut self, until: Option<Instant>) -> Result<bool> {
        if self.state.waiting.take_stop() {
            return Err(Error::Interrupted);
        }
        if self.state.bell() != self.waiter.bell() {
            self.set_bell(self.waiter.bell());
        }
        let now = Instant::now();
        let left = match until {
            Some(until) if until <= now => return Ok(false),
            Some(until) => until - now,
            None => Duration::MAX,
        };
        let state = &self.state;
        let known = || self.channels.iter().chain(self.succession.readers());
        let ready = || {
            state.has_inbox_items()
                || state.waiting.must_stop()
                || known().any(|c| c.is_asking() && c.is_ready())
        };
        if self.waiter.sleep(SleepMode::UntilRung, |_| {}, &SleeperBarrier, left, ready)
            == WakeReason::Signal
            && self.interruptible
        {
            return Err(Error::Interrupted);
        }
        Ok(true)
    }
}
