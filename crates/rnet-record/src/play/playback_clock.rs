//! Maps times of the recording to the monotonic clock.
//!
//! The thread sleeps until shortly before the due time and spins for the rest: a wakeup takes about 50 us,
//! and more on a busy machine.

use std::num::NonZeroU64;
use std::time::Duration;

use rnet::now_ns;
use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec};

use super::Position;

/// Interval between two polls of the controller, in ns.
const CONTROLLER_POLL_NS: u64 = 20_000_000;
/// How long before the due time the thread wakes up, in ns.
const SPIN_NS: u64 = 150_000;
/// Delay from the start to the first message, so that it is not late, in ns.
const LEAD_NS: u64 = 10_000_000;

/// Result of waiting.
#[derive(Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    /// The message is due.
    Due,
    /// The message is not due yet, and the controller is to be polled.
    PollController,
}

/// A linear mapping from times of the recording to those of the monotonic clock.
pub struct PlaybackClock {
    rate: Option<f64>,
    paused: bool,
    /// A time of the recording, and the corresponding monotonic time, in ns.
    base: (u64, u64),
    /// When the controller was last polled.
    polled_ns: u64,
    /// The time up to which the recording is played.
    reached_ns: u64,
}

impl PlaybackClock {
    pub fn new(start_ns: u64, rate: Option<f64>, paused: bool) -> Self {
        // If it is refused, sleeps end up to 50 us later.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let now = now_ns();
        let base = (start_ns, now + LEAD_NS);
        Self { rate, paused, base, polled_ns: now, reached_ns: start_ns }
    }

    /// Waits until this time of the recording, but at most until the controller is to be polled.
    pub fn wait(&mut self, at_ns: u64) -> WaitOutcome {
        let poll_at = self.polled_ns + CONTROLLER_POLL_NS;
        let due = match (self.paused, self.rate) {
            (true, _) => u64::MAX,
            (false, None) => 0,
            (false, Some(rate)) => self.due_ns(at_ns, rate),
        };
        let now = now_ns();
        if now >= poll_at {
            self.polled_ns = now;
            return WaitOutcome::PollController;
        }
        if due <= now {
            self.reached_ns = at_ns;
            return WaitOutcome::Due;
        }
        let until = due.min(poll_at);
        sleep_until(until.saturating_sub(SPIN_NS));
        while now_ns() < until {
            std::hint::spin_loop();
        }
        if due <= until {
            self.reached_ns = at_ns;
            return WaitOutcome::Due;
        }
        self.polled_ns = now_ns();
        WaitOutcome::PollController
    }

    fn due_ns(&self, at_ns: u64, rate: f64) -> u64 {
        let (file, mono) = self.base;
        let after = at_ns.abs_diff(file) as f64 / rate;
        match at_ns >= file {
            true => mono.saturating_add(after as u64),
            false => mono.saturating_sub(after as u64),
        }
    }

    /// How long ago this time was due; `None` if messages have no due time.
    pub fn late_ns(&self, at_ns: u64) -> Option<u64> {
        let rate = self.rate.filter(|_| !self.paused)?;
        Some(now_ns().saturating_sub(self.due_ns(at_ns, rate)))
    }

    pub fn position(&self) -> Position {
        Position { now_ns: self.file_now(), paused: self.paused, rate: self.rate, looped: false }
    }

    fn file_now(&self) -> u64 {
        let (file, mono) = self.base;
        match (self.paused, self.rate) {
            (false, Some(rate)) => {
                let passed = now_ns().saturating_sub(mono) as f64 * rate;
                file.saturating_add(passed as u64)
            }
            _ => self.reached_ns,
        }
    }

    /// Sets the current time of the recording.
    pub fn seek(&mut self, ns: u64) {
        self.base = (ns, now_ns());
        self.reached_ns = ns;
    }

    /// Pauses, or resumes at the same position.
    pub fn toggle_pause(&mut self) {
        let now = self.file_now();
        self.paused = !self.paused;
        self.seek(now);
    }

    /// Pauses at this time, for publishing a single message.
    pub fn step_to(&mut self, ns: u64) {
        self.paused = true;
        self.seek(ns);
    }

    pub fn scale_rate(&mut self, times: f64) {
        let now = self.file_now();
        self.rate = self.rate.map(|rate| (rate * times).clamp(0.01, 100.0));
        self.seek(now);
    }
}

fn sleep_until(due_ns: u64) {
    let due = Duration::from_nanos(due_ns);
    let due = Timespec { tv_sec: due.as_secs() as i64, tv_nsec: due.subsec_nanos().into() };
    // A signal may wake it early: the caller spins or polls again.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &due);
}
