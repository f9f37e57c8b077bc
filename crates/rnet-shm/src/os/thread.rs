//! Starting the threads of a node.

use std::thread::JoinHandle;

use rnet_core::Result;

/// Starts a thread that leaves signals to the threads of the user's program.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let failed = |e: std::io::Error| crate::os::shortage::no_thread(name, &e);
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the call writes the set that it is given.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // But not of this one, which is no message but a fault of the thread itself: while it is
    // blocked, a file that a peer truncates ends the process (docs/decisions/0010).
    // SAFETY: `all` was written above.
    unsafe { libc::sigdelset(all.as_mut_ptr(), libc::SIGBUS) };
    // SAFETY: `all` was written above; the call writes `before`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
    // SAFETY: `before` was written above; the new thread has inherited the full mask.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    thread.map_err(failed)
}

/// Has this thread go before all that are scheduled by need (`SCHED_FIFO` at its lowest priority), where the process
/// may ask for that; leaves it alone where somebody has chosen a real-time policy for it. Whether it goes first now.
pub fn use_realtime_priority() -> bool {
    // SAFETY: it asks about this thread alone.
    let policy = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
    // Those of `SCHED_BATCH` and `SCHED_IDLE` go behind all others.
    if matches!(policy, libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE) {
        return true;
    }
    // SAFETY: `sched_param` is plain data, of which all zeros are a value.
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = 1;
    // SAFETY: it changes this thread alone, and reads `param` during the call.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &param) == 0
    }
}
