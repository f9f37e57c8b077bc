//! Waits: time limits as Python gives them, and Ctrl-C while one goes on.
//!
//! A wait sleeps without the GIL for as long as it takes, and a signal that the kernel gives to
//! the waiting thread ends the sleep: Python's handlers run, and the wait goes on. That is the
//! main thread for every signal sent to the process, Ctrl-C among them, unless the program blocks
//! it there. What cannot be seen by the sleep is a signal that another thread took (for CPython's
//! own locks, too), or that came in the moment between looking for signals and falling asleep;
//! it is found when the slice is over.

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use rnet::Error;

use crate::errors::{bad_value, raise};

/// How long a sleep goes on without a look for signals: one wake-up a second at most.
pub(crate) const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The same for a wait that spins, which no signal ends, and which has nobody to wake.
pub(crate) const SPIN_SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Seconds as given by the user.
pub(crate) fn seconds(py: Python<'_>, what: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let why = format!("it is {seconds} s, and must be a finite number of seconds, 0 or more");
        bad_value(py, what, why)
    })
}

/// Time limit of calls, drivers and other hosts' state when none is given.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// A time-out as given by the user, who gives `math.inf` for none.
pub(crate) fn timeout(py: Python<'_>, given: f64) -> PyResult<Option<Duration>> {
    let is_finite = given != f64::INFINITY;
    is_finite.then(|| seconds(py, "timeout", given)).transpose()
}

/// How long an answer may take: `configured` unless the user gives a time-out.
pub(crate) fn answer_limit(
    py: Python<'_>,
    given: Option<f64>,
    configured: Duration,
) -> PyResult<Duration> {
    given.map_or(Ok(configured), |given| Ok(timeout(py, given)?.unwrap_or(Duration::MAX)))
}

/// How long a wait may be.
#[derive(Clone, Copy)]
pub(crate) struct WaitLimit {
    limit: Option<Duration>,
    /// The time-out that the user gave, of which `limit` is the rest: the error names it.
    given: Option<Duration>,
    slice: Duration,
}

impl WaitLimit {
    pub(crate) fn new(py: Python<'_>, given: Option<f64>) -> PyResult<WaitLimit> {
        let limit = given.map_or(Ok(None), |given| timeout(py, given))?;
        Ok(WaitLimit { limit, given: limit, ..WaitLimit::unlimited() })
    }

    /// For as long as it takes.
    pub(crate) fn unlimited() -> WaitLimit {
        WaitLimit { limit: None, given: None, slice: SIGNAL_CHECK_INTERVAL }
    }

    /// With other slices than [`SIGNAL_CHECK_INTERVAL`].
    pub(crate) fn in_slices(self, slice: Duration) -> WaitLimit {
        WaitLimit { slice, ..self }
    }

    /// A part of a wait that may take `given` seconds altogether.
    pub(crate) fn part_of(self, py: Python<'_>, given: Option<f64>) -> PyResult<WaitLimit> {
        Ok(WaitLimit { given: given.map_or(Ok(None), |given| timeout(py, given))?, ..self })
    }

    /// Runs `wait` without the GIL until it has a result other than that its slice is over or
    /// was interrupted; between slices Python's signal handlers run, and what they raise ends
    /// the wait.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        wait: impl FnMut(Duration) -> rnet::Result<T> + Send,
    ) -> PyResult<T> {
        self.try_run(py, wait)?.map_err(|timeout| raise(py, &timeout))
    }

    /// As [`WaitLimit::run`]. The inner error says that the time is over; the outer one may be a `Timeout`, too, which
    /// a signal handler has raised.
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
