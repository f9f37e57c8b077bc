//! Stop requests: Ctrl-C, SIGTERM, or no node left.

use std::sync::atomic::{AtomicBool, Ordering};

// A signal handler has no argument, so it can reach only a static.
static STOP_REQUESTED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: libc::c_int) {
    if STOP_REQUESTED.swap(true, Ordering::SeqCst) {
        // The second request exits at once.
        // SAFETY: `_exit` is async-signal-safe and does not return.
        unsafe { libc::_exit(130) }
    }
}

/// Handles SIGINT, SIGTERM and SIGHUP from now on.
pub fn install_signal_handlers() {
    let handler = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only touches an atomic and calls `_exit`, both async-signal-safe.
        unsafe { libc::signal(signal, handler) };
    }
}

/// The flag itself, for waiting threads.
pub fn flag() -> &'static AtomicBool {
    &STOP_REQUESTED
}

pub fn request() {
    STOP_REQUESTED.store(true, Ordering::SeqCst);
}

pub fn is_requested() -> bool {
    STOP_REQUESTED.load(Ordering::SeqCst)
}
