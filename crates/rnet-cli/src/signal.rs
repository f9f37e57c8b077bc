//! Ctrl-C and SIGTERM end a command in good order: statistics are printed, nodes leave.

use std::sync::atomic::{AtomicBool, Ordering};

// A signal handler has no argument through which it could reach anything but a static.
static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: libc::c_int) {
    if STOP.swap(true, Ordering::Relaxed) {
        // The second time somebody is in earnest.
        // SAFETY: `_exit` is async-signal-safe and does not return.
        unsafe { libc::_exit(130) }
    }
}

/// Catches SIGINT, SIGTERM and SIGHUP from now on.
pub fn install() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only touches an atomic and calls `_exit`, both async-signal-safe.
        unsafe {
            libc::signal(signal, on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t);
        }
    }
}

/// Whether one of them has come.
pub fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}
