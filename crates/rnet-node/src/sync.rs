//! Locks that serve on after a thread has panicked while it held them: what they guard is whole between two statements.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// Locks, poisoned or not.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until somebody notifies, or until a moment.
pub fn wait<'a, T>(
    bell: &Condvar,
    guard: MutexGuard<'a, T>,
    until: Option<Instant>,
) -> MutexGuard<'a, T> {
    match until {
        None => bell.wait(guard).unwrap_or_else(PoisonError::into_inner),
        Some(until) => {
            let left = until.saturating_duration_since(Instant::now());
            bell.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0
        }
    }
}

/// Waits for the end of a thread, unless it is this one: what it runs may be what ends it.
pub fn join(thread: Option<JoinHandle<()>>) {
    let this = std::thread::current().id();
    if let Some(thread) = thread.filter(|thread| thread.thread().id() != this) {
        let _ = thread.join();
    }
}
