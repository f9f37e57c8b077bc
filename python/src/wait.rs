//! Waits: time limits as Python gives them, and Ctrl-C while one goes on.

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use rnet::Error;

use crate::errors::{bad_value, raise};
use crate::fair::SLICE;

/// Seconds as given by the user.
pub(crate) fn seconds(py: Python<'_>, what: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let why = format!("it is {seconds} s, and must be a finite number of seconds, 0 or more");
        bad_value(py, what, why)
    })
}

/// Why a wait ended without a result.
pub(crate) enum Stop {
    /// An error of rnet.
    Error(Error),
    /// A signal handler raised, `KeyboardInterrupt` for one.
    Raised(PyErr),
}

impl Stop {
    pub(crate) fn into_err(self, py: Python<'_>) -> PyErr {
        match self {
            Stop::Error(error) => raise(py, &error),
            Stop::Raised(error) => error,
        }
    }
}

/// How long a wait may be.
pub(crate) struct Patience {
    limit: Option<Duration>,
    until: Option<Instant>,
}

impl Patience {
    pub(crate) fn new(py: Python<'_>, timeout: Option<f64>) -> PyResult<Patience> {
        let limit = timeout.map(|t| seconds(py, "timeout", t)).transpose()?;
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        Ok(Patience { limit, until })
    }

    /// For as long as it takes.
    pub(crate) fn endless() -> Patience {
        Patience { limit: None, until: None }
    }

    /// How long the next slice may be; zero once the time is over.
    fn slice(&self) -> Duration {
        match self.until {
            Some(until) => until.saturating_duration_since(Instant::now()).min(SLICE),
            None => SLICE,
        }
    }

    /// Runs `wait` without the GIL until it has a result other than that its slice is over or
    /// was interrupted; between slices Python's signal handlers run, and what they raise ends
    /// the wait.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        wait: impl Fn(Duration) -> rnet::Result<T> + Sync,
    ) -> Result<T, Stop> {
        loop {
            let slice = self.slice();
            let error = match py.detach(|| wait(slice)) {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            py.check_signals().map_err(Stop::Raised)?;
            match error {
                Error::Interrupted => {}
                Error::Timeout { what, .. } => {
                    if self.until.is_some_and(|until| until <= Instant::now()) {
                        let ms = self.limit.map_or(0, |limit| limit.as_millis());
                        let after_ms = u64::try_from(ms).unwrap_or(u64::MAX);
                        return Err(Stop::Error(Error::Timeout { what, after_ms }));
                    }
                }
                error => return Err(Stop::Error(error)),
            }
        }
    }
}
