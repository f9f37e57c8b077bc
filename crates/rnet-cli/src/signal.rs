//! Ctrl-C and SIGTERM end a command in an orderly way: it prints statistics, closes its nodes, and does not
//! begin further writes. The exit code is 130 for both signals.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rnet_shm::os::stop_signals;
use rustix::event::PollFlags;

use crate::failure::{Failure, Outcome};

pub use rnet_shm::os::stop_signals::{
    await_group_signals, install, restore_terminal, save_terminal,
};

/// From now on a second signal acts like the first: for the keeper of a node, which a launcher, an operator
/// and the kernel may all stop. If it were killed, its node would die.
pub fn ignore_repeated_signals() {
    stop_signals::exit_at(u32::MAX);
}

/// From now on the caller handles the second signal: it prints what is needed and exits
/// ([`stop_requested_twice`]); the third ends the process at once.
pub fn handle_second_signal() {
    stop_signals::exit_at(3);
}

/// Runs a read that may take long, during which the first signal ends the process at once: nothing has been
/// created yet that must be removed.
pub fn with_immediate_exit<T>(read: impl FnOnce() -> T) -> Outcome<T> {
    let last = stop_signals::exit_at(1);
    // A signal that arrived before.
    check()?;
    let done = read();
    stop_signals::exit_at(last);
    Ok(done)
}

/// Whether a signal has arrived.
pub fn stop_requested() -> bool {
    stop_signals::count() > 0
}

/// Whether a second signal has arrived.
pub fn stop_requested_twice() -> bool {
    stop_signals::count() > 1
}

/// `Interrupted` if a signal has arrived: to be checked before an irreversible write.
pub fn check() -> Outcome {
    if stop_requested() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Waits until a read would not block, or a signal has arrived.
pub fn wait_readable(fd: BorrowedFd<'_>) -> std::io::Result<()> {
    wait_readable_for(fd, None, false)
}

/// The same, with a time limit. With `even_if_stopped`, it waits even if a signal has arrived.
pub fn wait_readable_for(
    fd: BorrowedFd<'_>,
    limit: Option<Duration>,
    even_if_stopped: bool,
) -> std::io::Result<()> {
    stop_signals::wait(Some((fd, PollFlags::IN)), limit, even_if_stopped)
}

/// Waits until a write would not block, or a signal has arrived.
pub fn wait_writable(fd: BorrowedFd<'_>) -> std::io::Result<()> {
    stop_signals::wait(Some((fd, PollFlags::OUT)), None, false)
}

/// Sleeps until the time has passed; `Interrupted` if a signal arrives.
pub fn sleep(time: Duration) -> Outcome {
    stop_signals::wait(None, Some(time), false)?;
    check()
}

/// Polls for a result until this time has passed; then returns `None`.
pub fn poll<T>(
    limit: Duration,
    step: Duration,
    mut look: impl FnMut() -> Outcome<Option<T>>,
) -> Outcome<Option<T>> {
    let end = Instant::now().checked_add(limit);
    loop {
        let found = look()?;
        if found.is_some() || end.is_some_and(|end| Instant::now() >= end) {
            return Ok(found);
        }
        sleep(step)?;
    }
}
