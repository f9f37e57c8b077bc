//! Ending a wait from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use rnet_shm::channel::publisher::InterruptHandle;
use rnet_shm::os::bell::Bells;
use rnet_shm::os::fork::ForkGuard;

use crate::match_event::BellCell;

/// Interrupts the waits of one subscriber, publisher or state watch from any thread; created by
/// `Subscriber::interrupter`, `Publisher::interrupter` and `Watch::interrupter`.
///
/// A waiting thread has exclusive access to the subscriber, publisher or watch (`recv` and `send` take `&mut
/// self`). If several threads share one behind a lock, this makes the waiting thread return and release it.
#[derive(Clone)]
pub struct Interrupter(Target);

#[derive(Clone)]
enum Target {
    WaitControl(Arc<WaitControl>),
    Publisher(InterruptHandle),
}

impl Interrupter {
    /// Makes the wait in progress return `Interrupted`, or the next one if there is no wait. A wait that
    /// becomes ready at the same moment returns normally; then the next wait that is not ready is
    /// interrupted.
    pub fn interrupt(&self) {
        match &self.0 {
            Target::WaitControl(waiting) => waiting.request_stop(),
            Target::Publisher(handle) => handle.interrupt(),
        }
    }
}

impl From<&Arc<WaitControl>> for Interrupter {
    fn from(waiting: &Arc<WaitControl>) -> Interrupter {
        Interrupter(Target::WaitControl(waiting.clone()))
    }
}

impl Interrupter {
    pub(crate) fn of_publisher(handle: InterruptHandle) -> Interrupter {
        Interrupter(Target::Publisher(handle))
    }
}

crate::debug_by!([] Interrupter, "Interrupter", |_this|);

/// The bell that a thread waits on, and whether the wait must stop.
pub struct WaitControl {
    stop: AtomicBool,
    bell: BellCell,
    bells: Arc<Bells>,
    fork_guard: ForkGuard,
}

impl WaitControl {
    /// Controls a thread that waits at `bell` of `bells`; in a forked child, stop requests do nothing.
    pub fn new(bells: Arc<Bells>, bell: u64, fork_guard: ForkGuard) -> WaitControl {
        WaitControl { stop: AtomicBool::new(false), bell: BellCell::new(bell), bells, fork_guard }
    }

    pub(crate) fn bells(&self) -> &Arc<Bells> {
        &self.bells
    }

    pub(crate) fn bell(&self) -> u64 {
        self.bell.get()
    }

    /// Sets the bell that the thread waits on.
    pub fn set_bell(&self, bell: u64) {
        self.bell.set(bell);
    }

    /// Rings the bell, which wakes the waiting thread.
    pub(crate) fn ring(&self) {
        self.bells.ring(self.bell());
    }

    /// Ends the current wait, or the next one.
    pub fn request_stop(&self) {
        if self.fork_guard.is_from_parent() {
            return;
        }
        self.stop.store(true, Ordering::Release);
        // A wait set that has not checked `stop` yet may change the bell at the same time: one of the two
        // sees the other's change. Without the fence the wait could last up to a second longer.
        fence(Ordering::SeqCst);
        self.ring();
    }

    /// Whether the wait must end.
    pub fn must_stop(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// As [`WaitControl::must_stop`], and clears the request.
    pub fn take_stop(&self) -> bool {
        self.must_stop() && self.stop.swap(false, Ordering::AcqRel)
    }
}
