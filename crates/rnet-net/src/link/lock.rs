//! Locks that a panic elsewhere does not poison: what they guard is whole between any two statements.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
