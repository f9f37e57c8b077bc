//! What everything of a dashboard shares: what it was started with, whether it ends, and what its threads serve.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;

use rnet::inspect::Snapshot;

use crate::options::Options;
use crate::wire::Refusal;

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`lock`]; `None` while another thread holds it.
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Somebody wants something served; it ends when this is dropped.
pub type DropGuard = Arc<()>;

/// What a thread serves.
pub struct Registration<T> {
    guard: Weak<()>,
    pub item: T,
}

impl<T> Registration<T> {
    pub fn is_active(&self) -> bool {
        self.guard.strong_count() > 0
    }
}

/// What is added for a thread that serves it, and sleeps while there is nothing.
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
    /// Has something served until the guard is dropped.
    pub fn add(&self, item: T) -> DropGuard {
        let guard = DropGuard::default();
        lock(&self.added).push(Registration { guard: Arc::downgrade(&guard), item });
        self.woken.notify_all();
        guard
    }

    pub fn wake(&self) {
        // Under the lock, so that who has looked and is about to sleep is woken too.
        let _added = lock(&self.added);
        self.woken.notify_all();
    }

    /// Takes what was added, and waits for it if there is nothing to do. Whether there was something.
    pub fn take(&self, app: &AppState, served: &mut Vec<Registration<T>>) -> bool {
        let mut added = lock(&self.added);
        while added.is_empty() && served.is_empty() && !app.is_stopped() {
            added = self.woken.wait(added).unwrap_or_else(PoisonError::into_inner);
        }
        let is_new = !added.is_empty();
        served.append(&mut added);
        is_new
    }

    /// Sleeps until something is added, for `limit` at most.
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

    /// The domain as it is now.
    pub fn snapshot(&self) -> rnet::Result<Snapshot> {
        self.options.location.domain()?.snapshot()
    }

    /// Refuses what changes something where nothing may be changed.
    pub fn check_writable(&self) -> Result<(), Refusal> {
        match self.options.read_only {
            false => Ok(()),
            true => Err(Refusal::new("read_only", "the dashboard was started with --read-only")),
        }
    }
}
