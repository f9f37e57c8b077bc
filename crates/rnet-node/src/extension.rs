//! Extensions of a node, which the node does not know by type: the state, calls.

use std::any::Any;
use std::sync::Arc;

use rnet_core::Result;
use rnet_shm::state::FileStatus;

/// A part that a node opens at most once, at its first use, and stops with the node: the state of a domain,
/// for example.
///
/// The node's control thread calls all functions except [`Extension::stop`]. Other threads wait for it, so
/// they must be fast.
pub trait Extension: Any + Send + Sync {
    /// Starts the threads that could not be started before; `false` if one of them still cannot start, which
    /// is retried in a second.
    fn start_threads(self: Arc<Self>) -> bool;

    /// A node has exited, or may have: cleans up what it left. `false` if the cleanup must be retried.
    fn nodes_ended(self: Arc<Self>) -> bool;

    /// Whether the extension knows nodes that the engine does not (`is_known` returns true for those it
    /// does). Called once per second: such nodes may have died unnoticed.
    fn has_unknown_nodes(&self, is_known: &dyn Fn(u64) -> bool) -> bool;

    /// Restores the extension's file in the domain's directory if somebody has removed it.
    ///
    /// # Errors
    /// The reason why the file cannot be restored.
    fn put_back(&self) -> Result<FileStatus>;

    /// Stops the extension's threads: the node is closing.
    fn stop(&self);
}
