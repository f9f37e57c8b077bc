//! Locks whose values are sound whatever panicked with them.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The lock of a mutex whose value is sound whatever panicked with it.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
