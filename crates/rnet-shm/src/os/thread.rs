//! Starting the threads of a node.

use std::thread::JoinHandle;

use rnet_core::Result;

/// Starts a thread that blocks signals, so that the threads of the user's program handle them.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let failed = |e: std::io::Error| crate::os::shortage::no_thread(name, &e);
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the call writes the set that it is given.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // Except SIGBUS, which reports a fault of the thread itself: while it is blocked, a file that a peer
    // truncates kills the process (docs/decisions/0010).
    // SAFETY: `all` was written above.
    unsafe { libc::sigdelset(all.as_mut_ptr(), libc::SIGBUS) };
    // SAFETY: `all` was written above; the call writes `before`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
    // SAFETY: `before` was written above; the new thread has inherited the full mask.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    thread.map_err(failed)
}

/// Gives this thread precedence over all normally scheduled threads (`SCHED_FIFO` at its lowest priority) if
/// the process may do so; does nothing if a real-time policy was chosen for it. Returns whether it has
/// precedence now.
pub fn use_realtime_priority() -> bool {
    // SAFETY: it queries only this thread.
    let policy = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
    // `SCHED_BATCH` and `SCHED_IDLE` threads run after all others.
    if matches!(policy, libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE) {
        return true;
    }
    // SAFETY: `sched_param` is plain data, for which all zeros is a valid value.
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = 1;
    // SAFETY: it changes only this thread, and reads `param` during the call.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &param) == 0
    }
}
