//! What stands on a node without the node knowing what it is: the state, calls.

use std::any::Any;
use std::sync::Arc;

use rnet_core::Result;
use rnet_shm::state::FileStatus;

/// Something that a node has one of from its first use on, and that ends with it: the state of a domain, say.
///
/// All but [`Extension::stop`] are called by the node's control thread, which others wait for: they take no time.
pub trait Extension: Any + Send + Sync {
    /// Starts the threads that could not be started before; `false` if some still cannot, and it is to be tried
    /// again in a second.
    fn start_threads(self: Arc<Self>) -> bool;

    /// A node has ended, or may have: what it left is to be cleaned up. `false` if that is to be tried again.
    fn nodes_ended(self: Arc<Self>) -> bool;

    /// Whether it knows of nodes that the engine does not (`is_known` says of which it does), once a second: they
    /// may have died before anybody could tell.
    fn has_unknown_nodes(&self, is_known: &dyn Fn(u64) -> bool) -> bool;

    /// Sees to it that others find its file in the domain's directory, from which somebody may have removed it.
    ///
    /// # Errors
    /// What keeps it from being put back.
    fn put_back(&self) -> Result<FileStatus>;

    /// Ends its threads: the node ends.
    fn stop(&self);
}
