//! The threads of Zenoh, and the scheduling of all threads of the link.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// By default, Zenoh waits for its sockets in one thread and reads them in another, which costs each frame
/// a wake-up of 15 µs and more. Here the waiting threads read as well, and are as many as both kinds
/// together. Writing threads stay separate: a blocked writer must not block the reads (docs/design/wire.md,
/// section 9).
const ZENOH_THREADS: &str = "(rx: (worker_threads: 4), acc: (handover: rx), net: (handover: rx))";
/// Zenoh reads its runtime settings from this variable.
const ZENOH_RUNTIME_VAR: &str = "ZENOH_RUNTIME";

/// As for nodes: `0` leaves the threads unchanged.
const TUNE_THREADS_VAR: &str = "RNET_TUNE_THREADS";

/// Call it before any thread is started. Values that the user has set stay.
pub fn configure_threads() {
    // A frame passes through three threads of a link, each of which is woken for it. On a busy machine each
    // would wait for the end of another's time slice. Threads started from here on have a short slice, like
    // dispatch threads of nodes (decision 0023), and get no larger share of the CPU.
    if std::env::var_os(TUNE_THREADS_VAR).is_none_or(|value| value != "0") {
        rnet::bridge::keep_short_slices();
    }
    if std::env::var_os(ZENOH_RUNTIME_VAR).is_none() {
        rnet_shm::os::process::set_env(ZENOH_RUNTIME_VAR, ZENOH_THREADS);
    }
}

/// Raises the file limit to the maximum: unidentified connections must not use up the files of the domain.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // If that fails, the earlier limit stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
