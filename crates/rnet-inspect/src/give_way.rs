//! Lowers the priority of observer programs below the nodes of a robot: docs/design/observers.md.

pub use rnet_shm::os::priority::{NormalPriority, PriorityChange};

/// Lowers the priority of the calling thread, and of the threads and processes that it starts from now on: it
/// never preempts a running normal thread. Each observer thread calls this. A thread that operates a robot or
/// starts nodes does not; [`NormalPriority`] restores the priority of one that did. An unprivileged process
/// cannot undo it.
///
/// Returns whether the thread has the lower priority now. It does not if a policy or a nice value was set for
/// the thread, or if `RNET_TUNE_THREADS` is 0.
pub fn lower_priority(way: PriorityChange) -> bool {
    // An invalid value is reported when a node opens.
    rnet_node::settings::may_tune_threads().unwrap_or(false)
        && rnet_shm::os::priority::lower_priority(way)
}
