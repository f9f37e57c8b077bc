//! How a receiver waits: spinning, dozing by the period of the topic, asleep until it is rung.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rnet_core::{Error, Lane, Result, Wait};
use rnet_shm::barrier::AskingBarrier;
use rnet_shm::bell::{Sleep, Woken};
use rnet_shm::channel::Reader;
use rnet_shm::clock;
use rnet_shm::cpu::{self, ShortSlice};

use super::Receiver;
use crate::period_estimator::Plan;

/// Looks at the clock once per this many turns of a spin.
const SPINS_PER_LOOK: u32 = 32;

/// How a spin went.
struct Spun {
    ready: bool,
    /// The longest time between two looks at the clock, where it has an end.
    gap_ns: u64,
}

impl Receiver {
    /// Waits until [`Receiver::advance`] may find something; `false` when the time is over.
    pub fn wait(&mut self, until: Option<Instant>) -> Result<bool> {
        self.check_fork()?;
        if self.state.take_stop() {
            return Err(Error::Interrupted);
        }
        match self.qos.wait {
            Wait::Spin => Ok(self.spin(until).ready),
            Wait::Block => self.sleep(until, Sleep::Woken),
            Wait::Adaptive => self.wait_adaptively(until),
        }
    }

    fn wait_adaptively(&mut self, until: Option<Instant>) -> Result<bool> {
        let since_ns = clock::now_ns();
        (self.waits_since_ns, self.awake) = (since_ns, false);
        loop {
            let (now, now_ns) = (Instant::now(), clock::now_ns());
            if until.is_some_and(|until| until <= now) {
                return Ok(self.is_ready());
            }
            let at = |ns: u64| {
                let at = now.checked_add(Duration::from_nanos(ns.saturating_sub(now_ns)));
                until.into_iter().chain(at).min()
            };
            match self.period.plan(now_ns, since_ns) {
                Plan::Sleep => {
                    self.awake = false;
                    return self.sleep(until, Sleep::Woken);
                }
                Plan::Spin(to_ns) => {
                    let spun = self.spin(at(to_ns));
                    self.period.held_up(clock::now_ns(), spun.gap_ns);
                    if spun.ready {
                        return Ok(true);
                    }
                }
                Plan::Doze(to_ns) => {
                    if self.sleep(at(to_ns), self.doze())? {
                        self.awake = false;
                        return Ok(true);
                    }
                    let now_ns = clock::now_ns();
                    // Else it was the user's time that was over.
                    if now_ns >= to_ns {
                        self.awake = true;
                        self.period.dozed(now_ns, now_ns - to_ns);
                    }
                }
            }
        }
    }

    fn spin(&self, until: Option<Instant>) -> Spun {
        let (mut looked, mut gap) = (until.map(|_| Instant::now()), Duration::ZERO);
        loop {
            for _ in 0..SPINS_PER_LOOK {
                // A wait that is to end says so when it is taken up again.
                if self.is_ready() || self.state.must_stop() {
                    return Spun { ready: true, gap_ns: gap.as_nanos() as u64 };
                }
                std::hint::spin_loop();
            }
            let (Some(until), Some(before)) = (until, looked) else { continue };
            let now = Instant::now();
            gap = gap.max(now - before);
            looked = Some(now);
            if now >= until {
                return Spun { ready: self.is_ready(), gap_ns: gap.as_nanos() as u64 };
            }
        }
    }

    /// How to sleep until a message is due.
    fn doze(&self) -> Sleep {
        if self.node.own.bells().tunes_threads() { Sleep::ByTheClock } else { Sleep::Woken }
    }

    /// Has the thread go before those that compute, once it is woken.
    fn keep_short_slice(&mut self) {
        let urgent = self.lane() == Some(Lane::Urgent);
        if self.node.own.bells().tunes_threads() && (urgent || self.qos.wait == Wait::Adaptive) {
            let whom = if urgent { cpu::For::Urgent } else { cpu::For::Bulk };
            ShortSlice::keep(&mut self.short_slice, whom);
        }
    }

    /// Learns from a message that was waited for.
    pub fn learn_period(&mut self, at: usize) {
        if self.qos.wait != Wait::Adaptive {
            return;
        }
        // Those that were passed over came, too. The counters stand in a file that others may write.
        let counts = self.channels.iter().flat_map(|c| [c.received(), c.skipped()]);
        let count = counts.fold(0, u64::wrapping_add);
        let (sent_ns, now_ns) = (self.channels[at].current_sent_ns(), clock::now_ns());
        self.period.learn(sent_ns, count);
        if self.awake {
            self.period.met(now_ns.saturating_sub(sent_ns));
        }
        // One that was sent before has not been waited for.
        if sent_ns >= self.waits_since_ns {
            self.period.held_up(now_ns, now_ns.saturating_sub(sent_ns));
        }
    }

    fn sleep(&mut self, until: Option<Instant>, sleep: Sleep) -> Result<bool> {
        if self.state.bell() != self.waiter.bell() {
            // A wait set had this subscriber before.
            self.set_bell(self.waiter.bell());
        }
        if self.is_ready() {
            return Ok(true);
        }
        self.keep_short_slice();
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
    pub fn note_if_late(&self, woken: Woken, limit: Duration) {
        if woken == Woken::TimedOut && limit > rnet_shm::bell::MAX_SLEEP {
            self.channels.iter().for_each(Reader::note_if_late);
        }
    }
}
