//! The lock of a client's book. Tasks that something was found for are woken when it is free again: to wake one may
//! drop a call of this client, or take a lock whose holder wants this one.

use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::book::Book;

pub struct Locked<'a> {
    mutex: &'a Mutex<Book>,
    /// `None` once it is free.
    guard: Option<MutexGuard<'a, Book>>,
}

pub fn lock(mutex: &Mutex<Book>) -> Locked<'_> {
    let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
    Locked { mutex, guard: Some(guard) }
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
        let guard = match until {
            None => bell.wait(guard).unwrap_or_else(PoisonError::into_inner),
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                bell.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0
            }
        };
        Locked { mutex, guard: Some(guard) }
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
