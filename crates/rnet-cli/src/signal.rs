//! Ctrl-C and SIGTERM end a command in good order: statistics are printed, nodes leave, and what was to be written and
//! is not yet is not written. The exit code is 130 for each of the signals.

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::failure::{Failure, Outcome};

const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// More than any id of a process or group: the kernel's are below 2^22.
const INVALID_PGID: libc::pid_t = 1 << 30;

// A signal handler has no argument through which it could reach anything but a static.
/// How many have come.
static SIGNAL_COUNT: AtomicU32 = AtomicU32::new(0);
/// The how many-th ends the process at once.
static EXIT_AT_COUNT: AtomicU32 = AtomicU32::new(2);
/// How the terminal was, if this program has changed it.
static SAVED_TERMINAL: OnceLock<SavedTerminal> = OnceLock::new();
static IS_CHANGED: AtomicBool = AtomicBool::new(false);

/// A terminal as it was.
struct SavedTerminal {
    keys: File,
    mode: Termios,
    /// Where it is drawn on, without blocking, and what restores that.
    screen: Option<(File, &'static [u8])>,
}

extern "C" fn on_signal(_: libc::c_int) {
    if SIGNAL_COUNT.fetch_add(1, Ordering::Relaxed) + 1 >= EXIT_AT_COUNT.load(Ordering::Relaxed) {
        // The second time somebody is in earnest.
        restore_terminal();
        // SAFETY: `_exit` is async-signal-safe and does not return.
        unsafe { libc::_exit(130) }
    }
}

/// Catches SIGINT, SIGTERM and SIGHUP from now on.
pub fn install() {
    for signal in SIGNALS {
        // SAFETY: the handler only touches atomics and calls `_exit`, both async-signal-safe.
        unsafe {
            libc::signal(signal, on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t);
        }
    }
}

/// Keeps how a terminal is now, for [`restore_terminal`]; with what is drawn on, and the bytes that restore that. A second
/// signal, which ends the process at once, restores it too. Returns the mode that is to be changed.
pub fn save_terminal(
    keys: &File,
    screen: Option<(&File, &'static [u8])>,
) -> std::io::Result<Termios> {
    let mode = tcgetattr(keys)?;
    let screen = screen.map(|(out, leave)| Ok::<_, std::io::Error>((out.try_clone()?, leave)));
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

/// From now on a second signal is as the first: for the keeper of a node, which a launcher, an operator and the kernel may
/// all tell to stop. Its sudden end would be the node's.
pub fn ignore_repeated_signals() {
    EXIT_AT_COUNT.store(u32::MAX, Ordering::Relaxed);
}

/// From now on the second signal is the caller's, who says what there is to be said and ends ([`stop_requested_twice`]); the third
/// ends the process at once.
pub fn handle_second_signal() {
    EXIT_AT_COUNT.store(3, Ordering::Relaxed);
}

/// Reads something that may take long, in which the first signal ends the process at once: nothing has been made yet that
/// would have to be taken away again.
pub fn with_immediate_exit<T>(read: impl FnOnce() -> T) -> Outcome<T> {
    let last = EXIT_AT_COUNT.swap(1, Ordering::Relaxed);
    // One that came before.
    check()?;
    let done = read();
    EXIT_AT_COUNT.store(last, Ordering::Relaxed);
    Ok(done)
}

/// Whether one of them has come.
pub fn stop_requested() -> bool {
    SIGNAL_COUNT.load(Ordering::Relaxed) > 0
}

/// Whether a second one has come.
pub fn stop_requested_twice() -> bool {
    SIGNAL_COUNT.load(Ordering::Relaxed) > 1
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
    wait(
        &mut [libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }],
        limit,
        even_if_stopped,
    )
}

/// Waits until a write would not block, or a signal has come.
pub fn wait_writable(fd: BorrowedFd<'_>) -> std::io::Result<()> {
    let mut fds = [libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLOUT, revents: 0 }];
    wait(&mut fds, None, false)
}

/// Sleeps until the time is over, or a signal has come: that is `Interrupted`.
pub fn sleep(time: Duration) -> Outcome {
    wait(&mut [], Some(time), false)?;
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

/// The signals are held back from the look at `SIGNAL_COUNT` until `ppoll` waits, which lets them in: one that comes between the two
/// is not slept through.
fn wait(
    fds: &mut [libc::pollfd],
    limit: Option<Duration>,
    even_if_stopped: bool,
) -> std::io::Result<()> {
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    let blocked = BlockedSignals::new();
    if stop_requested() && !even_if_stopped {
        return Ok(());
    }
    let count = fds.len() as libc::nfds_t;
    // SAFETY: so many entries, a time or none, and a mask that `BlockedSignals` got from the kernel; all outlive the call.
    if unsafe { libc::ppoll(fds.as_mut_ptr(), count, limit, &raw const blocked.previous) } < 0 {
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(())
}

/// After it, `stop_requested` knows of each signal to this process's group that had reached another member of the group before.
///
/// Whoever signals a group holds the kernel's list of tasks for reading (`tasklist_lock`) until every member has its
/// signal. So a producer may be gone, and the end of its pipe be read here, while the loop has not come to this process yet.
/// A change of groups takes the same list for writing, and thus waits until the loop is over; then the signal is pending,
/// and its handler runs before the call returns. The change that is asked for here is refused: there is no such group.
pub fn await_group_signals() {
    // SAFETY: two numbers; it changes nothing, as there is no such group.
    unsafe { libc::setpgid(0, INVALID_PGID) };
}

/// The signals of `install`, held back from this thread until it is dropped.
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
        // SAFETY: the set that the kernel gave.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.previous, ptr::null_mut())
        };
    }
}
