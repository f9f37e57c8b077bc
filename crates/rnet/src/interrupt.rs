//! Ending a wait from another thread.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::Message;
use crate::receiver::SubscriberState;
use crate::subscriber::Subscriber;

/// Ends the waits of one subscriber from any thread; made by [`Subscriber::interrupter`].
///
/// A thread that waits has the subscriber to itself (`recv` takes `&mut self`). Where several
/// share one behind a lock, this asks the one that waits to let go of it.
#[derive(Clone)]
pub struct Interrupter {
    state: Arc<SubscriberState>,
}

impl Interrupter {
    /// Has the wait that goes on end with `Interrupted`, or the next one if none does. A wait
    /// that finds a message at that moment returns it.
    pub fn interrupt(&self) {
        self.state.ask_to_stop();
    }
}

impl<T: Message + ?Sized> Subscriber<T> {
    /// A handle with which other threads can end this subscriber's waits, those in a
    /// [`crate::WaitSet`] included.
    pub fn interrupter(&mut self) -> Interrupter {
        Interrupter { state: self.receiver().state.clone() }
    }
}

impl std::fmt::Debug for Interrupter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interrupter").finish_non_exhaustive()
    }
}

impl SubscriberState {
    fn ask_to_stop(&self) {
        if self.birth.is_parents() {
            return;
        }
        self.stop.store(true, Ordering::Release);
        // The bell may be changed meanwhile by a wait set that has not looked at `stop` yet: one
        // of both sees the other. Were it not so, the wait would go on for a second at most.
        fence(Ordering::SeqCst);
        self.bells.ring(self.bell());
    }

    /// Whether a wait is to end.
    pub(crate) fn must_stop(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// As [`SubscriberState::must_stop`], and forgets it.
    pub(crate) fn take_stop(&self) -> bool {
        self.must_stop() && self.stop.swap(false, Ordering::AcqRel)
    }
}
