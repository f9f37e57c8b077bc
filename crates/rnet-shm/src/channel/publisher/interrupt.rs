//! Ending a send that waits for room from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use rnet_core::Error;

use super::Writer;
use crate::os::bell::Bells;
use crate::os::fork::ForkGuard;

/// Ends the waits of one writer; made by [`Writer::interrupt_handle`].
#[derive(Clone, Debug)]
pub struct InterruptHandle {
    requested: Arc<AtomicBool>,
    bells: Arc<Bells>,
    bell: u64,
    fork_guard: ForkGuard,
}

impl InterruptHandle {
    /// Has the wait for room that goes on end with `Interrupted`, or the next one if none does.
    pub fn interrupt(&self) {
        if self.fork_guard.is_from_parent() {
            return;
        }
        self.requested.store(true, Ordering::Release);
        // Whoever is about to sleep has read the bell before it looks at `asked` for the last time.
        fence(Ordering::SeqCst);
        self.bells.ring(self.bell);
    }
}

impl Writer {
    /// A handle with which other threads can end this writer's waits.
    pub fn interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle {
            requested: self.interrupted.clone(),
            bells: self.waiter.bells().clone(),
            bell: self.waiter.bell(),
            fork_guard: self.fork_guard,
        }
    }

    /// Ends a wait that is to end, once.
    pub(super) fn check_interrupted(&self) -> Result<(), Error> {
        if self.interrupted.swap(false, Ordering::AcqRel) {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }
}
