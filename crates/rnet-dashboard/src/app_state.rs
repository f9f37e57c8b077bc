//! State shared by all parts of a dashboard: options, shutdown, and the registrations of its threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;

use rnet::inspect::Snapshot;

use crate::options::Options;

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Like [`lock`]; `None` if another thread holds the lock.
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Keeps a registration active until it is dropped.
pub type DropGuard = Arc<()>;

/// An item that a thread serves while its guard exists.
pub struct Registration<T> {
    guard: Weak<()>,
    pub item: T,
}

impl<T> Registration<T> {
    pub fn is_active(&self) -> bool {
        self.guard.strong_count() > 0
    }
}

/// Registrations for a thread that serves them, and sleeps without any.
pub struct Registrations<T> {
    added: Mutex<Vec<Registration<T>>>,
    woken: Condvar,
}

impl<T> Default for Registrations<T> {
    fn default() -> Registrations<T> {
        Registrations { added: Mutex::default(), woken: Condvar::new() }
    }
}

impl<T> Registrations<T> {
    /// Registers an item until the guard is dropped.
    pub fn add(&self, item: T) -> DropGuard {
        let guard = DropGuard::default();
        lock(&self.added).push(Registration { guard: Arc::downgrade(&guard), item });
        self.woken.notify_all();
        guard
    }

    pub fn wake(&self) {
        // Under the lock, so that a thread that is about to sleep is woken too.
        let _added = lock(&self.added);
        self.woken.notify_all();
    }

    /// Moves new registrations to `served`; waits for one if there is nothing to serve. Returns whether any
    /// were added.
    pub fn take(&self, app: &AppState, served: &mut Vec<Registration<T>>) -> bool {
        let mut added = lock(&self.added);
        while added.is_empty() && served.is_empty() && !app.is_stopped() {
            added = self.woken.wait(added).unwrap_or_else(PoisonError::into_inner);
        }
        let is_new = !added.is_empty();
        served.append(&mut added);
        is_new
    }

    /// Sleeps until something is registered, for at most `limit`.
    pub fn pause(&self, app: &AppState, limit: Duration) {
        let added = lock(&self.added);
        if added.is_empty() && !app.is_stopped() {
            let _ = self.woken.wait_timeout(added, limit);
        }
    }
}

pub struct AppState {
    pub options: Options,
    stopped: AtomicBool,
}

impl AppState {
    pub fn new(options: Options) -> AppState {
        AppState { options, stopped: AtomicBool::new(false) }
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// A snapshot of the domain.
    pub fn snapshot(&self) -> rnet::Result<Snapshot> {
        self.options.location.domain()?.snapshot()
    }
}
