//! SIGINT, SIGTERM and SIGHUP as requests to stop: counted, waited for, and at a given count the end of the
//! process.
//!
//! A signal handler has no argument through which it could reach anything but a static, so a process has one
//! set of these. For programs; libraries leave signals alone.

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
/// More than any id of a process or group: the kernel's are below 2^22.
const INVALID_PGID: i32 = 1 << 30;

/// How many signals and requests have come.
static COUNT: AtomicU32 = AtomicU32::new(0);
/// Whether one has come, for those who wait for a flag.
static REQUESTED: AtomicBool = AtomicBool::new(false);
/// The signal with this number ends the process at once.
static EXIT_AT: AtomicU32 = AtomicU32::new(2);
/// The terminal before this program changed it.
static SAVED_TERMINAL: OnceLock<SavedTerminal> = OnceLock::new();
static IS_CHANGED: AtomicBool = AtomicBool::new(false);

/// A terminal as it was.
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

/// Whether a signal or a request has come, as a flag.
pub fn requested() -> &'static AtomicBool {
    &REQUESTED
}

/// Counts as a signal, but does not end the process.
pub fn request() {
    REQUESTED.store(true, Ordering::SeqCst);
    COUNT.fetch_add(1, Ordering::Relaxed);
}

/// From now on the signal with this number ends the process at once. Returns the previous number.
pub fn exit_at(count: u32) -> u32 {
    EXIT_AT.swap(count, Ordering::Relaxed)
}

/// Keeps the mode of a terminal for [`restore_terminal`], with the file that is drawn on and the bytes that
/// restore it. The signal that ends the process restores it too. Returns the mode that is to be changed.
///
/// # Errors
/// Those of reading the mode and of duplicating descriptors.
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

/// Restores the terminal, once. It is async-signal-safe: two system calls on files that stay open.
pub fn restore_terminal() {
    if !IS_CHANGED.swap(false, Ordering::AcqRel) {
        return;
    }
    if let Some(SavedTerminal { keys, mode, screen }) = SAVED_TERMINAL.get() {
        // A terminal that is gone needs no care.
        let _ = tcsetattr(keys, OptionalActions::Now, mode);
        let _ = screen.as_ref().map(|(out, leave)| rustix::io::write(out, leave));
    }
}

/// Waits until the descriptor is ready, the time is over, or a signal comes. Unless `even_if_stopped`, it
/// returns at once if one has come before.
///
/// The signals are blocked from the check of the count until `ppoll` waits, which lets them in: a signal
/// between the two ends the wait.
///
/// # Errors
/// Those of `ppoll(2)`, except `EINTR`.
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
    // SAFETY: so many entries, a time or none, and a mask that `BlockedSignals` got from the kernel; all
    // outlive the call.
    if unsafe { libc::ppoll(polled.as_mut_ptr(), len, limit, &raw const blocked.previous) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(())
}

/// After it, [`count`] includes each signal to this process's group that had reached another member of the
/// group before.
///
/// Whoever signals a group holds the kernel's list of tasks for reading (`tasklist_lock`) until every member
/// has its signal. So a producer may be gone, and the end of its pipe be read here, while the loop has not
/// come to this process yet. A change of groups takes the same list for writing, and thus waits until the
/// loop is over; then the signal is pending, and its handler runs before the call returns. The kernel refuses
/// the change that is asked for here: no group has this number.
pub fn await_group_signals() {
    let _ = setpgid(None, Pid::from_raw(INVALID_PGID));
}

/// The signals of [`install`], blocked in this thread until it is dropped.
struct BlockedSignals {
    previous: libc::sigset_t,
}

impl BlockedSignals {
    fn new() -> BlockedSignals {
        // SAFETY: a set of signals is an array of integers, for which zeros are a value.
        let mut signals: libc::sigset_t = unsafe { std::mem::zeroed() };
        let mut previous = signals;
        for signal in SIGNALS {
            // SAFETY: a set of this function's own, and a signal that exists.
            unsafe { libc::sigaddset(&raw mut signals, signal) };
        }
        // SAFETY: both sets are of this function.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, &raw mut previous) };
        BlockedSignals { previous }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        let previous = &raw const self.previous;
        // SAFETY: the set that the kernel gave.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, previous, ptr::null_mut()) };
    }
}
