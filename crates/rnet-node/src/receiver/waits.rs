//! How a receiver waits: as its subscriber asks for, until it is rung.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rnet_core::{Error, Lane, Result, Wait};
use rnet_shm::barrier::AskingBarrier;
use rnet_shm::bell::{MAX_SLEEP, Sleep, Waiter, Woken};
use rnet_shm::channel::Reader;
use rnet_shm::cpu;

use super::Receiver;
use crate::pace::Place;
use crate::subscriber_state::SubscriberState;

/// What a receiver waits for, and where it sleeps.
struct Channels<'a> {
    state: &'a SubscriberState,
    channels: &'a [Reader],
    waiter: &'a mut Waiter,
}

impl Place for Channels<'_> {
    fn poll(&mut self) -> bool {
        self.channels.iter().any(Reader::is_ready)
            || self.state.full.load(Ordering::Acquire)
            || self.state.must_stop()
    }

    fn sleep(&mut self, sleep: Sleep, limit: Duration) -> Woken {
        let Channels { state, channels, waiter } = self;
        let (state, channels) = (*state, *channels);
        let places = channels.iter().map(Reader::asleep_word);
        let barrier = AskingBarrier(|| channels.iter().any(Reader::needs_barrier));
        let ready = || {
            channels.iter().any(Reader::is_ready)
                || state.full.load(Ordering::Acquire)
                || state.must_stop()
        };
        let woken = waiter.sleep(sleep, places, &barrier, limit, ready);
        note_if_late(channels, woken, limit);
        woken
    }
}

/// Counts a sleep of at most `limit` that nobody ended though there was something to read.
fn note_if_late(channels: &[Reader], woken: Woken, limit: Duration) {
    if woken == Woken::TimedOut && limit > MAX_SLEEP {
        channels.iter().for_each(Reader::note_if_late);
    }
}

impl Receiver {
    /// Waits until [`Receiver::advance`] may find something; `false` when the time is over.
    pub fn wait(&mut self, until: Option<Instant>) -> Result<bool> {
        self.check_fork()?;
        if self.state.take_stop() {
            return Err(Error::Interrupted);
        }
        if self.state.bell() != self.waiter.bell() {
            // A wait set had this subscriber before.
            self.set_bell(self.waiter.bell());
        }
        let urgent = self.lane() == Some(Lane::Urgent);
        if self.qos.wait == Wait::Adaptive || urgent && self.qos.wait == Wait::Block {
            self.pace.keep_short_slice(if urgent { cpu::For::Urgent } else { cpu::For::Bulk });
        }
        loop {
            if self.is_ready() {
                return Ok(true);
            }
            let left = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return Ok(false),
                left => left.unwrap_or(Duration::MAX),
            };
            let Receiver { pace, state, channels, waiter, .. } = self;
            let mut place = Channels { state, channels, waiter };
            let woken = pace.wait(&mut place, self.qos.wait, left);
            if self.is_ready() {
                return Ok(true);
            }
            let told = self.state.take_stop();
            if told || (woken == Woken::Signal && self.interruptible) {
                return Err(Error::Interrupted);
            }
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
        self.pace.came(self.channels[at].current_sent_ns(), count);
    }

    /// As in its own waits, of a sleep of the thread that has this subscriber among others.
    pub fn note_if_late(&self, woken: Woken, limit: Duration) {
        note_if_late(&self.channels, woken, limit);
    }
}
