//! How a process is stopped: SIGINT, then SIGTERM, then SIGKILL, each after the time of the previous one.
//!
//! SIGINT comes first because most programs exit cleanly on it: Python runs `finally` and `atexit`, which
//! it does not on SIGTERM.

use std::time::{Duration, Instant};

use rustix::process::Signal;

/// A stop in progress.
#[derive(Debug)]
pub struct StopSequence {
    /// The remaining signals, and the time that the process has after each.
    steps: [Option<(Signal, Duration)>; 3],
    at: usize,
    /// When the next signal is sent; `None` if that is beyond the range of the clock.
    due: Option<Instant>,
}

/// A signal to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopStep {
    /// The signal.
    pub signal: Signal,
    /// The previous signal, and how long the process ran after it.
    pub after: Option<(Signal, Duration)>,
}

impl StopSequence {
    /// Begins with SIGINT, or with SIGTERM if the process has no time after SIGINT.
    pub fn begin(interrupt_timeout_ms: u64, stop_timeout_ms: u64) -> StopSequence {
        let ms = Duration::from_millis;
        let interrupt = (interrupt_timeout_ms > 0).then(|| (Signal::INT, ms(interrupt_timeout_ms)));
        let terminate = Some((Signal::TERM, ms(stop_timeout_ms)));
        let kill = Some((Signal::KILL, Duration::MAX));
        let at = usize::from(interrupt.is_none());
        StopSequence { steps: [interrupt, terminate, kill], at, due: Some(Instant::now()) }
    }

    /// The signal that is due, once.
    pub fn next_due(&mut self) -> Option<StopStep> {
        let now = Instant::now();
        self.due.filter(|due| now >= *due)?;
        let (signal, timeout) = (*self.steps.get(self.at)?)?;
        let after = self.at.checked_sub(1).and_then(|before| self.steps[before]);
        self.at += 1;
        self.due = now.checked_add(timeout);
        Some(StopStep { signal, after })
    }

    /// The time until the next signal is due, if there is one.
    pub fn until_next(&self) -> Option<Duration> {
        let due = self.due.filter(|_| self.at < self.steps.len())?;
        Some(due.saturating_duration_since(Instant::now()))
    }
}

/// The name of a signal of [`StopSequence`].
pub fn signal_name(signal: Signal) -> &'static str {
    match signal {
        Signal::INT => "SIGINT",
        Signal::TERM => "SIGTERM",
        _ => "SIGKILL",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All signals of a stop without waiting for its times.
    fn signals(mut stop: StopSequence) -> Vec<(Signal, Option<Signal>)> {
        let mut all = Vec::new();
        loop {
            stop.due = Some(Instant::now());
            let Some(step) = stop.next_due() else { return all };
            all.push((step.signal, step.after.map(|(signal, _)| signal)));
        }
    }

    #[test]
    fn each_signal_comes_once_and_in_order() {
        let (int, term, kill) = (Signal::INT, Signal::TERM, Signal::KILL);
        let all = [(int, None), (term, Some(int)), (kill, Some(term))];
        assert_eq!(signals(StopSequence::begin(1, 1)), all);
        assert_eq!(signals(StopSequence::begin(0, 1)), [(term, None), (kill, Some(term))]);
    }

    #[test]
    fn the_next_signal_waits_for_its_time() {
        let mut stop = StopSequence::begin(600_000, 600_000);
        assert_eq!(stop.until_next(), Some(Duration::ZERO));
        assert_eq!(stop.next_due(), Some(StopStep { signal: Signal::INT, after: None }));
        assert_eq!(stop.next_due(), None);
        assert!(stop.until_next().is_some_and(|left| left > Duration::ZERO));
        assert_eq!(
            StopSequence::begin(u64::MAX, 0).next_due().map(|step| step.signal),
            Some(Signal::INT)
        );
    }
}
