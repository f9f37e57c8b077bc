//! Locks that remain usable after a thread has panicked while holding them: the data is consistent between
//! any two statements.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::callback_errors::CallbackErrors;

/// Locks a mutex, poisoned or not.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until a notification or a time.
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

/// Joins a thread, unless it is the current one: the thread may run the code that joins it.
pub fn join(thread: Option<JoinHandle<()>>) {
    let this = std::thread::current().id();
    if let Some(thread) = thread.filter(|thread| thread.thread().id() != this) {
        let _ = thread.join();
    }
}

/// Joins a thread that calls callbacks or handlers, unless a callback does this: see
/// [`CallbackErrors::is_callback_thread`].
pub fn join_callbacks(thread: Option<JoinHandle<()>>) {
    if !CallbackErrors::is_callback_thread() {
        join(thread);
    }
}
