//! The threads on which Zenoh works.

/// Left to itself Zenoh waits for its sockets in one thread and reads them in another, which costs each frame a wake-up
/// of 15 µs and more. Here the threads that wait read as well, and are as many as those were together. Those that write
/// stay apart: what waits for them must not keep them from being read (docs/design/wire.md, section 9).
const THREADS: &str = "(rx: (worker_threads: 4), acc: (handover: rx), net: (handover: rx))";
/// Where Zenoh looks for this.
const SETTING: &str = "ZENOH_RUNTIME";

/// To be called before any thread is started. What the user has set stays.
pub fn choose_threads() {
    if std::env::var_os(SETTING).is_none() {
        // SAFETY: there is no other thread yet that could read the environment.
        unsafe { std::env::set_var(SETTING, THREADS) };
    }
}
