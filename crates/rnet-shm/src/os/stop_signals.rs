//! SIGINT, SIGTERM and SIGHUP as requests to stop: they are counted and waited for, and a given count ends
//! the process.
//!
//! A signal handler has no argument and can only reach statics, so a process has one set of these. For
//! programs only; libraries do not handle signals.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::PollFlags;
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
    REQUESTED.store(true, Ordering::SeqCst);
    if COUNT.fetch_add(1, Ordering::Relaxed) + 1 >= EXIT_AT.load(Ordering::Relaxed) {
        restore_terminal();
        // SAFETY: `_exit` is async-signal-safe and does not return.
        unsafe { libc::_exit(INTERRUPTED) }
    }
}

/// Catches the signals from now on. The second one ends the process with exit code 130.
pub fn install() {
    let handler = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
    for signal in SIGNALS {
        // SAFETY: the handler touches atomics, makes system calls on files that stay open and calls `_exit`,
        // all async-signal-safe.
        unsafe { libc::signal(signal, handler) };
    }
}

/// The number of signals and requests so far.
pub fn count() -> u32 {
    COUNT.load(Ordering::Relaxed)
}

/// Whether a signal or a request has arrived, as a flag.
pub fn requested() -> &'static AtomicBool {
    &REQUESTED
}

/// Counts as a signal, but does not end the process.
pub fn request() {
    REQUESTED.store(true, Ordering::SeqCst);
    COUNT.fetch_add(1, Ordering::Relaxed);
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

/// Waits until the descriptor is ready, the time expires, or a signal arrives. Unless `even_if_stopped`, it
/// returns at once if a signal has arrived before.
///
/// The signals are blocked from the check of the count until `ppoll` waits, which unblocks them: a signal
/// between the two ends the wait.
///
/// # Errors
/// Errors of `ppoll(2)`, except `EINTR`.
pub fn wait(
    fd: Option<(BorrowedFd<'_>, PollFlags)>,
    limit: Option<Duration>,
    even_if_stopped: bool,
) -> io::Result<()> {
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    let mut polled = fd.map(|(fd, events)| libc::pollfd {
        fd: fd.as_raw_fd(),
        events: events.bits().cast_signed(),
        revents: 0,
    });
    let polled = polled.as_mut_slice();
    let blocked = BlockedSignals::new();
    if count() > 0 && !even_if_stopped {
        return Ok(());
    }
    let len = polled.len() as libc::nfds_t;
    // SAFETY: as many entries as given, a time or null, and a mask that `BlockedSignals` got from the kernel;
    // all outlive the call.
    if unsafe { libc::ppoll(polled.as_mut_ptr(), len, limit, &raw const blocked.previous) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
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

/// The signals of [`install`], blocked in this thread until this value is dropped.
struct BlockedSignals {
    previous: libc::sigset_t,
}

impl BlockedSignals {
    fn new() -> BlockedSignals {
        // SAFETY: a signal set is an array of integers, for which zeros are valid.
        let mut signals: libc::sigset_t = unsafe { std::mem::zeroed() };
        let mut previous = signals;
        for signal in SIGNALS {
            // SAFETY: a local signal set, and a valid signal.
            unsafe { libc::sigaddset(&raw mut signals, signal) };
        }
        // SAFETY: both sets are local.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, &raw mut previous) };
        BlockedSignals { previous }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        let previous = &raw const self.previous;
        // SAFETY: the set that the kernel returned.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, previous, ptr::null_mut()) };
    }
}
