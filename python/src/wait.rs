//! Waits: time limits as Python passes them, and Ctrl-C during a wait.
//!
//! A wait sleeps without the GIL. A signal that the kernel delivers to the waiting thread ends the sleep:
//! Python's handlers run, and the wait continues. The kernel delivers a process signal, such as Ctrl-C, to
//! the main thread unless the program blocks it there. The sleep cannot notice a signal that another thread
//! took (as with CPython's own locks), or one that arrived between the check for signals and the start of the
//! sleep. Such a signal is found when the slice is over.

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use rnet::Error;

use crate::errors::{bad_value, raise};

/// Longest sleep between two checks for signals: at most one wake-up a second.
pub(crate) const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The same for a wait that signals do not interrupt.
pub(crate) const UNINTERRUPTED_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The same for a wait that spins, which signals do not end, and which needs no wake-ups.
pub(crate) const SPIN_SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Seconds as the user passed them.
pub(crate) fn seconds(py: Python<'_>, what: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let why = format!("it is {seconds} s, and must be a finite number of seconds, 0 or more");
        bad_value(py, what, why)
    })
}

/// Runs `wait` without the GIL, in slices, until its result is not an interruption or `until` has passed; the
/// result is then `Interrupted`. Between slices Python's signal handlers run.
pub(crate) fn poll_until<T: Send>(
    py: Python<'_>,
    until: Option<Instant>,
    mut wait: impl FnMut(Duration) -> rnet::Result<T> + Send,
) -> PyResult<rnet::Result<T>> {
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let slice = left.map_or(SIGNAL_CHECK_INTERVAL, |left| left.min(SIGNAL_CHECK_INTERVAL));
        match py.detach(|| wait(slice)) {
            Err(Error::Interrupted) if left != Some(Duration::ZERO) => py.check_signals()?,
            result => return Ok(result),
        }
    }
}

/// Time limit of calls, drivers and other hosts' state if none is given.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// A time-out as the user passed it: `math.inf` means none.
pub(crate) fn timeout(py: Python<'_>, given: f64) -> PyResult<Option<Duration>> {
    let is_finite = given != f64::INFINITY;
    is_finite.then(|| seconds(py, "timeout", given)).transpose()
}

/// Time limit for an answer: `configured` unless the user passes a time-out.
pub(crate) fn answer_limit(
    py: Python<'_>,
    given: Option<f64>,
    configured: Duration,
) -> PyResult<Duration> {
    given.map_or(Ok(configured), |given| Ok(timeout(py, given)?.unwrap_or(Duration::MAX)))
}

/// The limit of a wait.
#[derive(Clone, Copy)]
pub(crate) struct WaitLimit {
    limit: Option<Duration>,
    /// The time-out that the user passed, for errors; `limit` is the rest of it.
    given: Option<Duration>,
    slice: Duration,
}

impl WaitLimit {
    pub(crate) fn new(py: Python<'_>, given: Option<f64>) -> PyResult<WaitLimit> {
        let limit = given.map_or(Ok(None), |given| timeout(py, given))?;
        Ok(WaitLimit { limit, given: limit, ..WaitLimit::unlimited() })
    }

    /// A wait without a limit.
    pub(crate) fn unlimited() -> WaitLimit {
        WaitLimit { limit: None, given: None, slice: SIGNAL_CHECK_INTERVAL }
    }

    /// The same limit with another slice than [`SIGNAL_CHECK_INTERVAL`].
    pub(crate) fn in_slices(self, slice: Duration) -> WaitLimit {
        WaitLimit { slice, ..self }
    }

    /// A part of a wait whose total limit is `given` seconds.
    pub(crate) fn part_of(self, py: Python<'_>, given: Option<f64>) -> PyResult<WaitLimit> {
        Ok(WaitLimit { given: given.map_or(Ok(None), |given| timeout(py, given))?, ..self })
    }

    /// Runs `wait` without the GIL until its result is neither a time-out of the slice nor an interruption.
    /// Between slices Python's signal handlers run, and an exception from them ends the wait.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        wait: impl FnMut(Duration) -> rnet::Result<T> + Send,
    ) -> PyResult<T> {
        self.try_run(py, wait)?.map_err(|timeout| raise(py, &timeout))
    }

    /// Like [`WaitLimit::run`]. The inner error is the time-out of this wait. The outer error may also be a
    /// `Timeout`, raised by a signal handler.
    pub(crate) fn try_run<T: Send>(
        &self,
        py: Python<'_>,
        mut wait: impl FnMut(Duration) -> rnet::Result<T> + Send,
    ) -> PyResult<rnet::Result<T>> {
        let until = self.limit.and_then(|limit| Instant::now().checked_add(limit));
        let left = || until.map(|until| until.saturating_duration_since(Instant::now()));
        loop {
            let slice = left().map_or(self.slice, |left| left.min(self.slice));
            let error = match py.detach(|| wait(slice)) {
                Ok(value) => return Ok(Ok(value)),
                Err(error) => error,
            };
            py.check_signals()?;
            match error {
                Error::Interrupted => {}
                Error::Timeout { topic, what, .. } => {
                    if left().is_some_and(|left| left.is_zero()) {
                        let ms = self.given.map_or(0, |given| given.as_millis());
                        let after_ms = u64::try_from(ms).unwrap_or(u64::MAX);
                        return Ok(Err(Error::Timeout { topic, what, after_ms }));
                    }
                }
                error => return Err(raise(py, &error)),
            }
        }
    }
}
