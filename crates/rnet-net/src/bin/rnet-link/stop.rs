//! Stop requests: Ctrl-C, SIGTERM, or no node left.

use std::sync::atomic::{AtomicBool, Ordering};

use rnet_shm::os::stop_signals;
pub use rnet_shm::os::stop_signals::{install as install_signal_handlers, request};

/// The flag itself, for those who wait for it.
pub fn flag() -> &'static AtomicBool {
    stop_signals::requested()
}

pub fn is_requested() -> bool {
    flag().load(Ordering::SeqCst)
}
