//! SIGINT, SIGTERM and SIGHUP as requests to stop: they are counted and waited for, and a given count ends
//! the process.
//!
//! A signal handler has no argument and can only reach statics, so a process has one set of these. For
//! programs only; libraries do not handle signals.
//!
//! Crate `signal-hook` would not remove the unsafe code: its safe functions neither count signals nor restore
//! a terminal, and the function that takes a handler is unsafe itself.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::process::{Pid, setpgid};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// The exit code of a process that a repeated signal ends.
const INTERRUPTED: libc::c_int = 130;
/// Larger than any id of a process or group: the kernel's are below 2^22.
const INVALID_PGID: i32 = 1 << 30;

/// Number of signals and requests so far.
static COUNT: AtomicU32 = AtomicU32::new(0);
/// Whether a signal or request has arrived, for waiters that need a flag.
static REQUESTED: AtomicBool = AtomicBool::new(false);
/// An `eventfd` that is readable from the first signal or request on, so that one that arrives just before a
/// wait ends it.
static ARRIVED: OnceLock<OwnedFd> = OnceLock::new();
/// The signal with this number ends the process at once.
static EXIT_AT: AtomicU32 = AtomicU32::new(2);
/// The terminal's state before this program changed it.
static SAVED_TERMINAL: OnceLock<SavedTerminal> = OnceLock::new();
static IS_CHANGED: AtomicBool = AtomicBool::new(false);

/// The saved state of a terminal.
struct SavedTerminal {
    keys: File,
    mode: Termios,
    /// The file that is drawn on, in non-blocking mode, and the bytes that restore it.
    screen: Option<(File, &'static [u8])>,
}

extern "C" fn on_signal(_: libc::c_int) {
    if note_arrival() >= EXIT_AT.load(Ordering::Relaxed) {
        restore_terminal();
        // SAFETY: `_exit` is async-signal-safe and does not return.
        unsafe { libc::_exit(INTERRUPTED) }
    }
}

/// Counts a signal or request, and ends waits. Returns the count. Async-signal-safe: atomics and one system
/// call on a file that stays open, without `errno`.
fn note_arrival() -> u32 {
    REQUESTED.store(true, Ordering::SeqCst);
    let count = COUNT.fetch_add(1, Ordering::SeqCst) + 1;
    if let Some(arrived) = ARRIVED.get() {
        // Neither blocks nor fails: the counter stays far below its limit.
        let _ = rustix::io::write(arrived, &1_u64.to_ne_bytes());
    }
    count
}

/// Catches the signals from now on. The second one ends the process with exit code 130.
pub fn install() {
    // Without a free descriptor, a signal still ends a wait that it interrupts.
    if let Ok(arrived) = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK) {
        let _ = ARRIVED.set(arrived);
    }
    let handler = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
    for signal in SIGNALS {
        // SAFETY: the handler touches atomics, makes system calls on files that stay open and calls `_exit`,
        // all async-signal-safe.
        unsafe { libc::signal(signal, handler) };
    }
}

/// The number of signals and requests so far.
pub fn count() -> u32 {
    COUNT.load(Ordering::SeqCst)
}

/// Whether a signal or a request has arrived, as a flag.
pub fn requested() -> &'static AtomicBool {
    &REQUESTED
}

/// Counts as a signal, but does not end the process.
pub fn request() {
    note_arrival();
}

/// Makes the signal with this number end the process at once. Returns the previous number.
pub fn exit_at(count: u32) -> u32 {
    EXIT_AT.swap(count, Ordering::Relaxed)
}

/// Saves the mode of a terminal for [`restore_terminal`], with the file that is drawn on and the bytes that
/// restore it. The signal that ends the process restores it too. Returns the mode, for the caller to change.
///
/// # Errors
/// Errors of reading the mode and of duplicating descriptors.
pub fn save_terminal(keys: &File, screen: Option<(&File, &'static [u8])>) -> io::Result<Termios> {
    let mode = tcgetattr(keys)?;
    let screen = screen.map(|(out, leave)| Ok::<_, io::Error>((out.try_clone()?, leave)));
    let kept =
        SavedTerminal { keys: keys.try_clone()?, mode: mode.clone(), screen: screen.transpose()? };
    // A program changes one terminal, once.
    let _ = SAVED_TERMINAL.set(kept);
    IS_CHANGED.store(true, Ordering::Release);
    Ok(mode)
}

/// Restores the terminal, once. Async-signal-safe: two system calls on files that stay open.
pub fn restore_terminal() {
    if !IS_CHANGED.swap(false, Ordering::AcqRel) {
        return;
    }
    if let Some(SavedTerminal { keys, mode, screen }) = SAVED_TERMINAL.get() {
        // Errors are ignored: the terminal may have been closed.
        let _ = tcsetattr(keys, OptionalActions::Now, mode);
        let _ = screen.as_ref().map(|(out, leave)| rustix::io::write(out, leave));
    }
}

/// Waits until the descriptor is ready, the time expires, or a signal or request arrives. Unless
/// `even_if_stopped`, it returns at once if one has arrived before.
///
/// # Errors
/// Errors of `poll(2)`, except `EINTR`.
pub fn wait(
    fd: Option<(BorrowedFd<'_>, PollFlags)>,
    limit: Option<Duration>,
    even_if_stopped: bool,
) -> io::Result<()> {
    if count() > 0 && !even_if_stopped {
        return Ok(());
    }
    // A longer limit than a timespec can hold is none.
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    let arrived = ARRIVED.get();
    let mut polled: Vec<PollFd<'_>> =
        arrived.iter().map(|arrived| PollFd::new(arrived, PollFlags::IN)).collect();
    polled.extend(fd.map(|(fd, events)| PollFd::from_borrowed_fd(fd, events)));
    match poll(&mut polled, limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    // Without a count, a child of this process has raised it, between fork and exec.
    if (even_if_stopped || count() == 0)
        && let Some(arrived) = arrived
    {
        // Only the next signal ends the next such wait. Fails if none has arrived.
        let _ = rustix::io::read(arrived, &mut [0_u8; 8]);
    }
    Ok(())
}

/// After this call, [`count`] includes each signal to this process's group that had already reached another
/// member of the group.
///
/// A sender that signals a group holds the kernel's task list for reading (`tasklist_lock`) until every
/// member has its signal. So a producer may have exited, and this process may read the end of its pipe,
/// before the kernel's loop reaches this process. A change of process groups takes the same list for writing,
/// and thus waits until the loop has finished. Then the signal is pending, and its handler runs before the
/// call returns. The kernel rejects the change that is requested here, because no group has this number.
pub fn await_group_signals() {
    let _ = setpgid(None, Pid::from_raw(INVALID_PGID));
}
