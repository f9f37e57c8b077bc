//! Handle of a callback for endpoints that open and close.

use std::sync::Arc;

use rnet_core::{Error, Result};

use crate::callback_errors::CallbackErrors;
use crate::callbacks::Callback;
use crate::core::NodeCore;
use crate::endpoints::{EndpointEvent, EndpointWatcher};

/// A running callback for endpoints; dropping this stops it.
///
/// Dropping waits for a callback that is running, except inside a callback.
#[must_use = "the callback stops when the EndpointWatch is dropped; keep it or call detach()"]
pub struct EndpointWatch {
    watcher: Arc<EndpointWatcher>,
    /// `None` once it is detached.
    core: Option<Arc<NodeCore>>,
}

impl EndpointWatch {
    /// Calls `callback` for each existing endpoint, and for each that opens or closes.
    ///
    /// # Errors
    /// `Closed` in a forked child; `Io` for the domain's directory.
    pub fn start(core: &Arc<NodeCore>, callback: Callback<EndpointEvent>) -> Result<EndpointWatch> {
        core.state.check_fork()?;
        let watcher = Arc::new(EndpointWatcher::new(callback));
        core.state.matching().watch_endpoints(&watcher)?;
        core.state.refresh();
        Ok(EndpointWatch { watcher, core: Some(core.clone()) })
    }

    /// As [`crate::Subscription::error`].
    pub fn error(&self) -> Option<Error> {
        self.core.as_ref()?.state.dispatch_error()
    }

    /// Calls the callback on this thread for its queued events. For a thread that the bulk dispatch thread
    /// may wait for. Not inside the callback.
    pub fn run(&self) {
        if let Some(core) = &self.core
            && !core.state.fork_guard().is_from_parent()
        {
            self.watcher.run();
        }
    }

    /// Keeps the callback running until the node is closed.
    pub fn detach(mut self) {
        self.core = None;
    }
}

impl Drop for EndpointWatch {
    fn drop(&mut self) {
        if let Some(core) =
            self.core.take().filter(|core| !core.state.fork_guard().is_from_parent())
        {
            core.state.matching().unwatch_endpoints(&self.watcher);
            self.watcher.cancel(!CallbackErrors::is_callback_thread());
        }
    }
}

crate::debug_by!([] EndpointWatch, "EndpointWatch", |_this|);
