//! Ending a send that waits for room from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use rnet_core::Error;

use super::Writer;
use crate::bell::Bells;
use crate::fork::ForkGuard;

/// Ends the waits of one writer; made by [`Writer::stop`].
#[derive(Clone, Debug)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    bells: Arc<Bells>,
    bell: u64,
    fork_guard: ForkGuard,
}

impl Stop {
    /// Has the wait for room that goes on end with `Interrupted`, or the next one if none does.
    pub fn ask(&self) {
        if self.fork_guard.is_parents() {
            return;
        }
        self.asked.store(true, Ordering::Release);
        // Whoever is about to sleep has read the bell before it looks at `asked` for the last time.
        fence(Ordering::SeqCst);
        self.bells.ring(self.bell);
    }
}

impl Writer {
    /// A handle with which other threads can end this writer's waits.
    pub fn stop(&self) -> Stop {
        Stop {
            asked: self.stop.clone(),
            bells: self.waiter.bells().clone(),
            bell: self.waiter.bell(),
            fork_guard: self.fork_guard,
        }
    }

    /// Ends a wait that is to end, once.
    pub(super) fn check_stop(&self) -> Result<(), Error> {
        if self.stop.swap(false, Ordering::AcqRel) { Err(Error::Interrupted) } else { Ok(()) }
    }
}
