//! Executing the last wills of nodes that died, and cleaning up behind them.
//!
//! Every node that has opened the state does so when a peer goes; the region sees to it that they do not
//! disturb each other. It is done on a thread of its own, `rnet-sweep`, which ends with the work: the control
//! thread, which notices the departure, has others to tell.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::shared::StateShared;
use rnet_node::sync::{join, lock};
use rnet_shm::os::thread::spawn;

/// When what could not be done is tried again.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Whether there is something to sweep, and who does.
#[derive(Default)]
pub(super) struct Sweeper {
    is_pending: AtomicBool,
    stop: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl StateShared {
    /// Has the state cleaned up: a node went. `false` if that is to be tried again.
    pub(crate) fn sweep(self: &Arc<Self>) -> bool {
        self.sweeper.is_pending.store(true, Ordering::Release);
        self.ensure_sweep_thread()
    }

    /// Starts the thread if it is needed; `false` if that fails, and is to be tried again.
    pub(crate) fn ensure_sweep_thread(self: &Arc<Self>) -> bool {
        let sweeper = &self.sweeper;
        if !sweeper.is_pending.load(Ordering::Acquire) {
            return true;
        }
        let mut thread = lock(&sweeper.thread);
        if sweeper.stop.load(Ordering::Acquire) {
            return true;
        }
        // One that runs still looks again before it ends; who set the mark behind that look comes back in a
        // second.
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
                // For the persister, or for room: others have to do something first.
                std::thread::park_timeout(RETRY_INTERVAL);
            }
        }
    }

    /// Ends the thread, after the node that it is cleaning up behind.
    pub(crate) fn stop_sweep(&self) {
        let mut thread = lock(&self.sweeper.thread);
        self.sweeper.stop.store(true, Ordering::Release);
        join(thread.take());
    }
}
