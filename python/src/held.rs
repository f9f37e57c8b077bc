//! What an object of Python has of robot-net, until it or its node is closed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use crate::errors::closed;
use crate::fork::{ForkGuard, Own};
use crate::gate;
use crate::members::Member;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a Python object and its node share.
pub(crate) struct Held<T: Send + 'static> {
    inner: Mutex<Option<Own<T>>>,
    /// Set first when it is closed: the lock may be held for long.
    closed: AtomicBool,
    fork_guard: ForkGuard,
}

impl<T: Send + 'static> Held<T> {
    pub(crate) fn new(inner: T) -> Arc<Held<T>> {
        let inner = Mutex::new(Some(Own::new(inner)));
        Arc::new(Held { inner, closed: AtomicBool::new(false), fork_guard: ForkGuard::here() })
    }

    /// Runs on what is held, without the GIL.
    pub(crate) fn with<R: Send>(
        &self,
        py: Python<'_>,
        name: &str,
        run: impl FnOnce(&mut T) -> R + Send,
    ) -> PyResult<R> {
        let done = match self.is_closed() {
            true => None,
            false => py.detach(|| lock(&self.inner).as_deref_mut().map(run)),
        };
        done.ok_or_else(|| closed(py, self.fork_guard.name(name.to_owned())))
    }

    /// Runs on what is held for the last time, and drops it, without the GIL. `None` if it is closed already.
    pub(crate) fn end_with<R: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut T) -> R + Send,
    ) -> Option<R> {
        if self.fork_guard.is_parents() || self.closed.swap(true, Ordering::SeqCst) {
            return None;
        }
        py.detach(|| {
            let mut held = lock(&self.inner).take()?;
            Some(run(&mut held))
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.fork_guard.is_parents() || self.closed.load(Ordering::SeqCst)
    }
}

impl<T: Send + 'static> Member for Held<T> {
    fn close(&self) {
        if self.fork_guard.is_parents() {
            return;
        }
        self.closed.store(true, Ordering::SeqCst);
        // Unlocked again before it ends: that may wait for a function of the user's.
        let held = lock(&self.inner).take();
        drop(held);
    }

    fn is_over(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

impl<T: Send + 'static> Drop for Held<T> {
    fn drop(&mut self) {
        if !self.fork_guard.is_parents()
            && let Some(inner) = lock(&self.inner).take()
        {
            gate::drop_in_time(inner);
        }
    }
}
