//! The lock of a client's book. Tasks that something was found for are woken when it is free again: to wake one may
//! drop a call of this client, or take a lock whose holder wants this one.

use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

use rnet_node::sync;

use super::book::Book;

pub struct Locked<'a> {
    mutex: &'a Mutex<Book>,
    /// `None` once it is free.
    guard: Option<MutexGuard<'a, Book>>,
}

pub fn lock(mutex: &Mutex<Book>) -> Locked<'_> {
    Locked { mutex, guard: Some(sync::lock(mutex)) }
}

impl<'a> Locked<'a> {
    /// Waits for the bell, or until that moment; may return before.
    pub fn wait(mut self, bell: &Condvar, until: Option<Instant>) -> Locked<'a> {
        let mutex = self.mutex;
        if !self.woken.is_empty() {
            drop(self);
            return lock(mutex);
        }
        let guard = self.guard.take().expect("it is there until it is dropped");
        Locked { mutex, guard: Some(sync::wait(bell, guard, until)) }
    }
}

impl Deref for Locked<'_> {
    type Target = Book;
    fn deref(&self) -> &Book {
        self.guard.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Book {
        self.guard.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let Some(mut guard) = self.guard.take() else { return };
        if guard.woken.is_empty() {
            return;
        }
        let woken = std::mem::take(&mut guard.woken);
        drop(guard);
        for waker in woken {
            // It is the user's code. One that panics must not keep the others, nor this thread's calls, from going on.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }
}
