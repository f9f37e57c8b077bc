//! Watches with a callback, which a dispatch thread of the node runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rnet_core::{Error, Lane, Result};
use rnet_node::core::NodeCore;
use rnet_node::dispatch::Task;
use rnet_node::wait_source::WaitSource;

use super::entry::Change;
use super::watch::{Watch, WatchCore};

/// Maximum number of changes of one task before other tasks run.
const MAX_CHANGES_PER_TURN: usize = 32;

impl Watch {
    /// Calls `callback` for each change, on the dispatch thread of the bulk lane (with [`Watch::urgent`]: of
    /// the urgent lane), until the returned [`WatchHandle`] is dropped.
    ///
    /// The callbacks and timers of a lane share that thread: a slow callback delays the others, and skips
    /// values that are overwritten in the meantime. A callback that panics is not called again.
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
    id: u64,
    watch: WatchCore,
    callback: F,
    over: bool,
    /// Whether the last check failed; the next one follows after the next sleep, not immediately.
    failed: bool,
    /// Set when the handle is dropped, which may happen in the callback itself.
    cancelled: Arc<AtomicBool>,
    /// Number of changes at the last report to the thread.
    reported: u64,
}

impl<F: FnMut(Result<Change>) + Send> Task for CallbackTask<F> {
    fn id(&self) -> u64 {
        self.id
    }
    fn describe(&self) -> String {
        format!("the callback of the keys under {}", self.watch.prefix.bytes())
    }
    fn set_bell(&mut self, bell: u64) {
        self.watch.set_bell(bell);
    }
    fn run(&mut self, _lane: Lane, must_yield: &dyn Fn() -> bool) -> bool {
        self.failed = false;
        for done in 0..MAX_CHANGES_PER_TURN {
            // At least one, as with messages.
            if done > 0 && must_yield() {
                return true;
            }
            if self.cancelled.load(Ordering::Acquire) {
                self.over = true;
                return true;
            }
            let result = match self.watch.next() {
                Ok(None) => return done > 0,
                Ok(Some(change)) => Ok(change),
                Err(error) => Err(error),
            };
            self.failed = result.is_err();
            // The dispatch thread drops a callback that panics, together with its watch.
            (self.callback)(result);
            if self.failed || self.watch.is_from_parent() {
                return false;
            }
        }
        true
    }
    fn wait_sources(&self, look: &mut dyn FnMut(&dyn WaitSource)) {
        if !self.failed {
            look(&self.watch);
        }
    }
    fn take_arrival(&mut self) -> Option<(u64, u64)> {
        self.watch.arrivals_since(&mut self.reported)
    }
    fn is_finished(&self) -> bool {
        self.over
    }
}

/// A running callback for state changes; dropping this handle stops it.
///
/// Dropping waits for a callback that is running, except inside a callback.
#[must_use = "the callback stops when the WatchHandle is dropped; keep it or call detach()"]
pub struct WatchHandle {
    id: u64,
    cancelled: Arc<AtomicBool>,
    core: Option<Arc<NodeCore>>,
}

impl WatchHandle {
    pub(super) fn start(
        watch: Watch,
        callback: impl FnMut(Result<Change>) + Send + 'static,
    ) -> WatchHandle {
        let Watch { watch, core, .. } = watch;
        let (lane, cancelled) = (watch.lane, Arc::new(AtomicBool::new(false)));
        let (id, over, failed, reported) = (core.state.next_task(), false, false, 0);
        let task = CallbackTask {
            id,
            watch,
            callback,
            over,
            failed,
            cancelled: cancelled.clone(),
            reported,
        };
        if core.state.fork_guard().is_from_parent() {
            // This process has no thread for it, and its resources belong to the parent.
            std::mem::forget(task);
        } else {
            core.state.dispatcher(lane).add(Box::new(task));
        }
        WatchHandle { id, cancelled, core: Some(core) }
    }

    /// The error if the callback is not called because its thread cannot be started (retried once a second).
    /// Normally `None`.
    pub fn error(&self) -> Option<Error> {
        let core = self.core.as_ref().filter(|core| !core.state.fork_guard().is_from_parent())?;
        core.state.dispatch_error()
    }

    /// Keeps the callback running until the node closes.
    pub fn detach(mut self) {
        self.core = None;
    }
}

impl Drop for WatchHandle {
    fn drop(&mut self) {
        if let Some(core) =
            self.core.take().filter(|core| !core.state.fork_guard().is_from_parent())
        {
            self.cancelled.store(true, Ordering::Release);
            core.state.end_task(self.id);
        }
    }
}

rnet_node::debug_by!([] WatchHandle, "WatchHandle", |_this|);
