//! Ending a wait from another thread.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use rnet_shm::publisher::Stop;

use crate::subscriber_state::SubscriberState;

/// Ends the waits of one subscriber or publisher from any thread; made by
/// `Subscriber::interrupter` and `Publisher::interrupter`.
///
/// A thread that waits has the subscriber or publisher to itself (`recv` and `send` take
/// `&mut self`). Where several share one behind a lock, this asks the one that waits to let go of
/// it.
#[derive(Clone)]
pub struct Interrupter(Of);

#[derive(Clone)]
enum Of {
    Subscriber(Arc<SubscriberState>),
    Publisher(Stop),
}

impl Interrupter {
    /// Has the wait that goes on end with `Interrupted`, or the next one if none does. A wait
    /// that finds a message, or room for one, at that moment is over as if it had not been asked.
    pub fn interrupt(&self) {
        match &self.0 {
            Of::Subscriber(state) => state.ask_to_stop(),
            Of::Publisher(stop) => stop.ask(),
        }
    }
}

impl Interrupter {
    #[doc(hidden)]
    pub fn of_subscriber(state: &Arc<SubscriberState>) -> Interrupter {
        Interrupter(Of::Subscriber(state.clone()))
    }

    #[doc(hidden)]
    pub fn of_publisher(stop: Stop) -> Interrupter {
        Interrupter(Of::Publisher(stop))
    }
}

impl std::fmt::Debug for Interrupter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interrupter").finish_non_exhaustive()
    }
}

impl SubscriberState {
    fn ask_to_stop(&self) {
        if self.fork_guard.is_parents() {
            return;
        }
        self.stop.store(true, Ordering::Release);
        // The bell may be changed meanwhile by a wait set that has not looked at `stop` yet: one
        // of both sees the other. Were it not so, the wait would go on for a second at most.
        fence(Ordering::SeqCst);
        self.bells.ring(self.bell());
    }

    /// Whether a wait is to end.
    pub fn must_stop(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// As [`SubscriberState::must_stop`], and forgets it.
    pub fn take_stop(&self) -> bool {
        self.must_stop() && self.stop.swap(false, Ordering::AcqRel)
    }
}
