//! Executes the last wills of nodes that died, and cleans up after them.
//!
//! Every node that has opened the state does this when a peer disappears; the region coordinates them. It
//! runs on a separate thread, `rnet-sweep`, which exits when the work is done: the control thread, which
//! detects the departure, has other peers to notify.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::shared::StateShared;
use rnet_node::sync::{join, lock};
use rnet_shm::os::thread::spawn;

/// Interval between attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Pending sweeps, and their thread.
#[derive(Default)]
pub(super) struct Sweeper {
    is_pending: AtomicBool,
    stop: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl StateShared {
    /// Starts a sweep because a node disappeared. `false` if the caller must try again.
    pub(crate) fn sweep(self: &Arc<Self>) -> bool {
        self.sweeper.is_pending.store(true, Ordering::Release);
        self.ensure_sweep_thread()
    }

    /// Starts the thread if it is needed; `false` if that fails and the caller must try again.
    pub(crate) fn ensure_sweep_thread(self: &Arc<Self>) -> bool {
        let sweeper = &self.sweeper;
        if !sweeper.is_pending.load(Ordering::Acquire) {
            return true;
        }
        let mut thread = lock(&sweeper.thread);
        if sweeper.stop.load(Ordering::Acquire) {
            return true;
        }
        // A running thread checks the mark again before it exits; a caller that sets the mark after that
        // check tries again a second later.
        if thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return false;
        }
        if let Some(done) = thread.take() {
            let _ = done.join();
        }
        let state = self.clone();
        match spawn("rnet-sweep", move || state.run_sweep()) {
            Ok(started) => {
                *thread = Some(started);
                true
            }
            Err(_) => false,
        }
    }

    fn run_sweep(&self) {
        let sweeper = &self.sweeper;
        let mut left = false;
        while !sweeper.stop.load(Ordering::Acquire)
            && (sweeper.is_pending.swap(false, Ordering::AcqRel) || left)
        {
            left = self.region.has_dead() && !self.region.sweep_dead();
            if left {
                // Waits for the persister or for free memory: other processes must act first.
                std::thread::park_timeout(RETRY_INTERVAL);
            }
        }
    }

    /// Stops the thread, after it has finished its current node.
    pub(crate) fn stop_sweep(&self) {
        let mut thread = lock(&self.sweeper.thread);
        self.sweeper.stop.store(true, Ordering::Release);
        join(thread.take());
    }
}
