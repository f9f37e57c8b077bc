//! Watches with a callback, which the node's thread for state runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rnet_core::{Error, Result};
use rnet_node::core::NodeCore;

use super::callbacks::Task;
use super::entry::Change;
use super::shared::StateShared;
use super::watch::{Watch, WatchCore};

/// Changes that one task may take before the others have their turn.
const TURN: usize = 32;

impl Watch {
    /// Calls `callback` for each change, on the node's thread for state, until the returned [`WatchHandle`]
    /// is dropped.
    ///
    /// The callbacks of a node share that thread: one that takes long delays the others, and skips what was
    /// overwritten meanwhile. A callback that panics is not called again.
    pub fn on(self, mut callback: impl FnMut(Change) + Send + 'static) -> WatchHandle {
        self.on_result(move |result| {
            if let Ok(change) = result {
                callback(change);
            }
        })
    }

    /// As [`Watch::on`], but also called with each error.
    pub fn on_result(self, callback: impl FnMut(Result<Change>) + Send + 'static) -> WatchHandle {
        WatchHandle::start(self, callback)
    }
}

/// A watch with a callback.
struct CallbackTask<F> {
    watch: WatchCore,
    callback: F,
    over: bool,
    /// Set by the handle as it is dropped, which the callback itself may do.
    cancelled: Arc<AtomicBool>,
}

impl<F: FnMut(Result<Change>) + Send> Task for CallbackTask<F> {
    fn run(&mut self) -> bool {
        for done in 0..TURN {
            if self.cancelled.load(Ordering::Acquire) {
                self.over = true;
                return true;
            }
            let result = match self.watch.next() {
                Ok(None) => return done > 0,
                Ok(Some(change)) => Ok(change),
                Err(error) => Err(error),
            };
            let failed = result.is_err();
            let callback = &mut self.callback;
            if catch_unwind(AssertUnwindSafe(|| callback(result))).is_err() {
                // The panic hook has printed it; a callback in an unknown state is not called again.
                self.over = true;
                return true;
            }
            if failed {
                // Tried again after the next sleep, not at once.
                return false;
            }
        }
        true
    }
    fn is_over(&self) -> bool {
        self.over
    }
    fn prefix(&self) -> String {
        self.watch.prefix().bytes().to_owned()
    }
    fn sleep_limit(&self) -> Duration {
        self.watch.sleep_limit()
    }
}

/// A running callback of the state; it ends when this is dropped.
///
/// Dropping waits for a callback that is running, except inside a callback of the state of the same node.
#[must_use = "the callback ends when the WatchHandle is dropped; keep it or call detach()"]
pub struct WatchHandle {
    id: u64,
    shared: Arc<StateShared>,
    cancelled: Arc<AtomicBool>,
    core: Option<Arc<NodeCore>>,
}

impl WatchHandle {
    pub(super) fn start(
        watch: Watch,
        callback: impl FnMut(Result<Change>) + Send + 'static,
    ) -> WatchHandle {
        let Watch { watch, core, .. } = watch;
        let shared = watch.shared.clone();
        let cancelled = Arc::new(AtomicBool::new(false));
        let id = shared.callbacks.next_id();
        let task = CallbackTask { watch, callback, over: false, cancelled: cancelled.clone() };
        if shared.fork_guard().is_parents() {
            // No thread is here to run it, and what it holds is the parent's.
            std::mem::forget(task);
        } else {
            shared.callbacks.add(&shared, id, Box::new(task));
            if shared.callbacks.error().is_some() {
                core.state.own.ring_self();
            }
        }
        WatchHandle { id, shared, cancelled, core: Some(core) }
    }

    /// What keeps the callback from being called: the thread that is to call it cannot be started, which is
    /// tried again once a second. `None` as a rule.
    pub fn error(&self) -> Option<Error> {
        if self.shared.fork_guard().is_parents() { None } else { self.shared.callbacks.error() }
    }

    /// Lets the callback run until the node ends.
    pub fn detach(mut self) {
        self.core = None;
    }
}

impl Drop for WatchHandle {
    fn drop(&mut self) {
        if self.core.is_some() && !self.shared.fork_guard().is_parents() {
            self.cancelled.store(true, Ordering::Release);
            self.shared.callbacks.remove(self.id);
        }
    }
}

impl std::fmt::Debug for WatchHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchHandle").finish_non_exhaustive()
    }
}
