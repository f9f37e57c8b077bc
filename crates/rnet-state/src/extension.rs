//! Connects the state to the events of its node.

use std::sync::Arc;

use rnet_core::Result;
use rnet_node::Extension;
use rnet_shm::state::FileStatus;

use crate::shared::StateShared;

impl Extension for StateShared {
    fn start_threads(self: Arc<Self>) -> bool {
        self.ensure_sweep_thread()
    }

    /// Executes the last wills of dead nodes, and cleans up after them. The region determines which nodes are
    /// dead; the node's own observations do not matter.
    fn nodes_ended(self: Arc<Self>) -> bool {
        self.region().forget_dead();
        !self.region().has_dead() || self.sweep()
    }

    fn has_unknown_nodes(&self, is_known: &dyn Fn(u64) -> bool) -> bool {
        self.region().has_unknown_owners(is_known)
    }

    fn put_back(&self) -> Result<FileStatus> {
        self.region().restore_file()
    }

    fn stop(&self) {
        self.stop_sweep();
    }
}
