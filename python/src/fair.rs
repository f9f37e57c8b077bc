//! A mutex that threads get in the order in which they asked.
//!
//! A thread that waits for messages holds its subscriber's lock in slices of [`SLICE`]. With the
//! standard mutex it would nearly always win it back against a thread that wants to look at the
//! counters; here it queues behind that thread.
//!
//! Never taken with the GIL held, except by [`Fair::try_lock`]: its holder may want the GIL next.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// How long a wait may hold a lock, and the longest time that a signal which came in the moment
/// before a sleep goes unnoticed.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Fair<T> {
    /// Held by whoever is next; the others queue here.
    next: Mutex<()>,
    value: Mutex<T>,
}

impl<T> Fair<T> {
    pub(crate) fn new(value: T) -> Fair<T> {
        Fair { next: Mutex::new(()), value: Mutex::new(value) }
    }

    /// Takes the lock. Release the GIL first.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        let _next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock if it is free, with or without the GIL.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.value.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
