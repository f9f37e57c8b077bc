//! Locks of values that stay consistent even if a thread panicked while holding the lock.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose value stays consistent even after a panic.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
