//! Sleeping until a word changes, as the standard library does it, but for one thing: a signal
//! ends the sleep, so that Python's handlers can run.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex;

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    /// The word is another one, or may be: look.
    Woken,
    TimedOut,
    Signal,
}

/// Sleeps while `word` reads `value`, at the longest for `limit`.
pub(crate) fn wait(word: &AtomicU32, value: u32, limit: Option<Duration>) -> Slept {
    let limit = limit.map(|limit| rustix::time::Timespec {
        tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: i64::from(limit.subsec_nanos()),
    });
    match futex::wait(word, futex::Flags::PRIVATE, value, limit.as_ref()) {
        Err(Errno::INTR) => Slept::Signal,
        Err(Errno::TIMEDOUT) => Slept::TimedOut,
        _ => Slept::Woken,
    }
}

/// Wakes the thread that sleeps at `word`.
pub(crate) fn wake(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
}
