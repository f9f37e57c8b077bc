//! The lock of a client's calls. Tasks with results are woken after it is released: waking one may drop a
//! call of this client, or take a lock whose holder waits for this one.

use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

use rnet_node::sync;

use super::open_calls::OpenCalls;

pub struct CallsGuard<'a> {
    mutex: &'a Mutex<OpenCalls>,
    /// `None` once it is released.
    guard: Option<MutexGuard<'a, OpenCalls>>,
}

pub fn lock(mutex: &Mutex<OpenCalls>) -> CallsGuard<'_> {
    CallsGuard { mutex, guard: Some(sync::lock(mutex)) }
}

impl<'a> CallsGuard<'a> {
    /// Waits for the condvar, or until this time; may return earlier.
    pub fn wait(mut self, condvar: &Condvar, until: Option<Instant>) -> CallsGuard<'a> {
        let mutex = self.mutex;
        if !self.to_wake.is_empty() {
            drop(self);
            return lock(mutex);
        }
        let guard = self.guard.take().expect("it is there until it is dropped");
        CallsGuard { mutex, guard: Some(sync::wait(condvar, guard, until)) }
    }
}

impl Deref for CallsGuard<'_> {
    type Target = OpenCalls;
    fn deref(&self) -> &OpenCalls {
        self.guard.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for CallsGuard<'_> {
    fn deref_mut(&mut self) -> &mut OpenCalls {
        self.guard.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for CallsGuard<'_> {
    fn drop(&mut self) {
        let Some(mut guard) = self.guard.take() else { return };
        if guard.to_wake.is_empty() {
            return;
        }
        let to_wake = std::mem::take(&mut guard.to_wake);
        drop(guard);
        for waker in to_wake {
            // A waker is the user's code. If one panics, the other tasks and this thread's calls must
            // continue.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }
}
