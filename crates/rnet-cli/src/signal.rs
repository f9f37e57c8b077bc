//! Ctrl-C and SIGTERM end a command in good order: statistics are printed, nodes leave, and what was to be written and
//! is not yet is not written. The exit code is 130 for each of the signals.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rnet_shm::os::stop_signals;
use rustix::event::PollFlags;

use crate::failure::{Failure, Outcome};

pub use rnet_shm::os::stop_signals::{
    await_group_signals, install, restore_terminal, save_terminal,
};

/// From now on a second signal is as the first: for the keeper of a node, which a launcher, an operator and the kernel may
/// all tell to stop. Its sudden end would be the node's.
pub fn ignore_repeated_signals() {
    stop_signals::exit_at(u32::MAX);
}

/// From now on the second signal is the caller's, who says what there is to be said and ends ([`stop_requested_twice`]); the third
/// ends the process at once.
pub fn handle_second_signal() {
    stop_signals::exit_at(3);
}

/// Reads something that may take long, in which the first signal ends the process at once: nothing has been made yet that
/// would have to be taken away again.
pub fn with_immediate_exit<T>(read: impl FnOnce() -> T) -> Outcome<T> {
    let last = stop_signals::exit_at(1);
    // One that came before.
    check()?;
    let done = read();
    stop_signals::exit_at(last);
    Ok(done)
}

/// Whether one of them has come.
pub fn stop_requested() -> bool {
    stop_signals::count() > 0
}

/// Whether a second one has come.
pub fn stop_requested_twice() -> bool {
    stop_signals::count() > 1
}

/// `Interrupted` if one of them has come: to be asked before anything is written that cannot be taken back.
pub fn check() -> Outcome {
    if stop_requested() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Waits until a read would not block, or a signal has come.
pub fn wait_readable(fd: BorrowedFd<'_>) -> std::io::Result<()> {
    wait_readable_for(fd, None, false)
}

/// The same, for a time at most. With `even_if_stopped`, it waits even if one has come.
pub fn wait_readable_for(
    fd: BorrowedFd<'_>,
    limit: Option<Duration>,
    even_if_stopped: bool,
) -> std::io::Result<()> {
    stop_signals::wait(Some((fd, PollFlags::IN)), limit, even_if_stopped)
}

/// Waits until a write would not block, or a signal has come.
pub fn wait_writable(fd: BorrowedFd<'_>) -> std::io::Result<()> {
    stop_signals::wait(Some((fd, PollFlags::OUT)), None, false)
}

/// Sleeps until the time is over, or a signal has come: that is `Interrupted`.
pub fn sleep(time: Duration) -> Outcome {
    stop_signals::wait(None, Some(time), false)?;
    check()
}

/// Looks again and again for something, for so long at most; `None` at the end of the time.
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
