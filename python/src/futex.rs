//! Sleeping until another thread wakes this one, as in the standard library, except that a signal ends the
//! sleep, so that Python's handlers can run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::thread::futex;
use rustix::time::Timespec;

/// The reason why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SleepEnd {
    Woken,
    TimedOut,
    Signal,
}

/// A one-shot wake-up that a thread sleeps on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parker(Arc<AtomicU32>);

/// Values of its atomic word.
const PARKED: u32 = 0;
const NOTIFIED: u32 = 1;

impl Parker {
    /// Sleeps until it is woken, at most for `limit`. Writes made before the wake-up are visible.
    pub(crate) fn sleep(&self, limit: Option<Duration>) -> SleepEnd {
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        // Acquire: pairs with the release of `wake`.
        while self.0.load(Ordering::Acquire) == PARKED {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let left = left.map(|left| Timespec {
                tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            });
            match futex::wait(&self.0, futex::Flags::PRIVATE, PARKED, left.as_ref()) {
                Err(Errno::INTR) => return SleepEnd::Signal,
                Err(Errno::TIMEDOUT) => return SleepEnd::TimedOut,
                _ => {}
            }
        }
        SleepEnd::Woken
    }

    /// Wakes the thread, or makes its next sleep end at once.
    pub(crate) fn wake(&self) {
        self.0.store(NOTIFIED, Ordering::Release);
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
    }

    pub(crate) fn is(&self, other: &Parker) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
