//! The threads on which Zenoh works, and what all threads of the link ask of the scheduler.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Left to itself Zenoh waits for its sockets in one thread and reads them in another, which costs each frame a wake-up
/// of 15 µs and more. Here the threads that wait read as well, and are as many as those were together. Those that write
/// stay apart: what waits for them must not keep them from being read (docs/design/wire.md, section 9).
const ZENOH_THREADS: &str = "(rx: (worker_threads: 4), acc: (handover: rx), net: (handover: rx))";
/// Where Zenoh looks for this.
const ZENOH_RUNTIME_VAR: &str = "ZENOH_RUNTIME";

/// As for nodes: `0` leaves the threads as they are.
const TUNE_THREADS_VAR: &str = "RNET_TUNE_THREADS";

/// To be called before any thread is started. What the user has set stays.
pub fn configure_threads() {
    // A frame passes through three threads of a link, each of which is woken for it. On a busy machine each would wait
    // for the end of another's time slice; threads that are started from here on have a short one, as dispatch threads
    // of nodes have (decision 0023), and get no more of the processor for it.
    if std::env::var_os(TUNE_THREADS_VAR).is_none_or(|value| value != "0") {
        rnet::cpu::keep_short_slices();
    }
    if std::env::var_os(ZENOH_RUNTIME_VAR).is_none() {
        // SAFETY: there is no other thread yet that could read the environment.
        unsafe { std::env::set_var(ZENOH_RUNTIME_VAR, ZENOH_THREADS) };
    }
}

/// Lets this process have as many files as it may: connections that have said nothing yet are not to leave the domain
/// without any.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // Where it may not, it has what it had.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
