//! Ending a wait from another thread.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use rnet_shm::publisher::Stop;

use crate::Message;
use crate::publisher::Publisher;
use crate::subscriber::Subscriber;
use crate::subscriber_state::SubscriberState;

/// Ends the waits of one subscriber or publisher from any thread; made by
/// [`Subscriber::interrupter`] and [`Publisher::interrupter`].
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

impl<T: Message + ?Sized> Subscriber<T> {
    /// A handle with which other threads can end this subscriber's waits, those in a
    /// [`crate::WaitSet`] included.
    pub fn interrupter(&mut self) -> Interrupter {
        Interrupter(Of::Subscriber(self.receiver().state.clone()))
    }
}

impl<T: Message + ?Sized> Publisher<T> {
    /// A handle with which other threads can end this publisher's waits: a send or a loan that
    /// waits for slow subscribers. Nothing was sent then.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter(Of::Publisher(self.stop()))
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
