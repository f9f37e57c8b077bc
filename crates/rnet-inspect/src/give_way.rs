//! Giving way to the nodes of a robot, for programs that only look on: docs/design/observers.md.

pub use rnet_shm::os::priority::{NormalPriority, PriorityChange};

/// Has the calling thread, and what it starts from now on, give way to the nodes of a robot: it never takes the processor
/// from an ordinary thread that runs. Each thread that only looks on does so; one that operates a robot does not, nor one
/// that starts nodes: [`NormalPriority`] does that for one that has given way. Without a right nobody undoes it.
///
/// Returns whether it gives way now. It does not where somebody has chosen a policy or a nice value for the thread, and
/// where `RNET_TUNE_THREADS` is 0.
pub fn lower_priority(way: PriorityChange) -> bool {
    // What is no value is told of when a node opens.
    rnet_node::settings::may_tune_threads().unwrap_or(false)
        && rnet_shm::os::priority::lower_priority(way)
}
