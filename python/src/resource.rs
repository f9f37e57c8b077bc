//! The part of robot-net that a Python object holds until it or its node is closed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use pyo3::prelude::*;
use rnet::Error;

use crate::drop_without_gil::drop_without_gil;
use crate::errors::OrRaise;
use crate::fork::{ForkGuard, ProcessOwned};
use crate::interpreter;
use crate::lock::lock;
use crate::members::Member;
use crate::wait_queue::{Pollable, WaitQueue};

/// State shared by a Python object and its node.
pub(crate) struct Resource<T: Send + 'static> {
    /// The name in errors.
    what: String,
    inner: Mutex<Option<ProcessOwned<T>>>,
    /// Set first when it is closed, because the lock may be held for long.
    closed: Arc<AtomicBool>,
    /// Whether dropping it waits for a function of the user.
    calls_back: bool,
    fork_guard: ForkGuard,
}

impl<T: Send + 'static> Resource<T> {
    pub(crate) fn new(what: String, inner: T) -> Resource<T> {
        Resource {
            what,
            inner: Mutex::new(Some(ProcessOwned::new(inner))),
            closed: Arc::default(),
            calls_back: false,
            fork_guard: ForkGuard::here(),
        }
    }

    /// For a resource that calls functions of the user until it is dropped. `closed` becomes true before
    /// that.
    pub(crate) fn with_callbacks(what: String, inner: T, closed: Arc<AtomicBool>) -> Resource<T> {
        let mut resource = Resource::new(what, inner);
        (resource.closed, resource.calls_back) = (closed, true);
        resource
    }

    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    pub(crate) fn closed_error(&self) -> Error {
        Error::Closed { what: self.fork_guard.name(self.what.clone()) }
    }

    /// Whether it belongs to the parent of this forked process, whose threads may hold its lock.
    pub(crate) fn is_from_parent(&self) -> bool {
        self.fork_guard.is_from_parent()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_from_parent() || self.closed.load(Ordering::SeqCst)
    }

    /// Runs `run` on the value, under its lock. With the GIL held, `run` must neither wait nor release the
    /// GIL.
    #[inline]
    pub(crate) fn with<R>(&self, run: impl FnOnce(&mut T) -> rnet::Result<R>) -> rnet::Result<R> {
        if self.is_closed() {
            return Err(self.closed_error());
        }
        match lock(&self.inner).as_deref_mut() {
            Some(inner) => run(inner),
            None => Err(self.closed_error()),
        }
    }

    /// A clone of the value, which stays usable while other threads close this.
    pub(crate) fn get(&self) -> rnet::Result<T>
    where
        T: Clone,
    {
        self.with(|inner| Ok(inner.clone()))
    }

    /// Drops a clone from [`Resource::get`], with the GIL held. It may be the last one that holds the node,
    /// if this was closed meanwhile.
    pub(crate) fn drop_clone(&self, inner: T) {
        let mut inner = Some(inner);
        let _ = self.with(|_| {
            drop(inner.take());
            Ok(())
        });
        if inner.is_some() {
            drop_without_gil(inner);
        }
    }

    /// The result of `ask` for the value, without the GIL.
    pub(crate) fn query<R: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut T) -> R + Send,
    ) -> PyResult<R> {
        py.detach(|| self.with(|inner| Ok(ask(inner)))).or_raise(py)
    }

    /// Closes it, and returns the value, to be dropped without the GIL.
    pub(crate) fn take(&self) -> Option<ProcessOwned<T>> {
        if self.is_from_parent() {
            return None;
        }
        self.closed.store(true, Ordering::SeqCst);
        lock(&self.inner).take()
    }
}

impl<T: Send + 'static> Resource<Option<T>> {
    /// Closes it, and returns the value to the first caller.
    pub(crate) fn close_and_take(&self) -> rnet::Result<T> {
        let taken = self.with(|inner| Ok(inner.take()))?;
        drop(self.take());
        taken.ok_or_else(|| self.closed_error())
    }
}

impl<T: Send + 'static> Member for Resource<T> {
    fn close(&self) {
        // Unlocks before the drop, because the drop may wait for a function of the user, which may close this
        // resource.
        let inner = self.take();
        drop(inner);
    }

    fn is_finished(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

impl<T: Send + 'static> Drop for Resource<T> {
    fn drop(&mut self) {
        match self.take() {
            None => {}
            Some(inner) if self.calls_back => interpreter::drop_in_time(inner),
            Some(inner) => drop_without_gil(inner),
        }
    }
}

/// One condition of the value that callers may wait for, and the queue of its waiters.
pub(crate) struct WaitCondition<T: Send + Sync + 'static> {
    resource: Arc<Resource<Arc<T>>>,
    poll: fn(&T, &mut Context<'_>) -> Poll<()>,
    pub(crate) wait_queue: WaitQueue,
}

impl<T: Send + Sync + 'static> WaitCondition<T> {
    pub(crate) fn new(
        resource: &Arc<Resource<Arc<T>>>,
        poll: fn(&T, &mut Context<'_>) -> Poll<()>,
    ) -> Arc<WaitCondition<T>> {
        Arc::new(WaitCondition {
            resource: resource.clone(),
            poll,
            wait_queue: WaitQueue::default(),
        })
    }

    /// Whether the condition is met. Call it without the GIL.
    pub(crate) fn is_ready(&self) -> rnet::Result<bool> {
        let context = &mut Context::from_waker(Waker::noop());
        self.resource.get().map(|inner| (self.poll)(&inner, context).is_ready())
    }
}

impl<T: Send + Sync + 'static> Pollable for WaitCondition<T> {
    fn wait_queue(&self) -> &WaitQueue {
        &self.wait_queue
    }

    fn poll_ready(&self, waker: &Waker) -> bool {
        let context = &mut Context::from_waker(waker);
        self.resource.get().map_or(true, |inner| (self.poll)(&inner, context).is_ready())
    }

    fn is_from_parent(&self) -> bool {
        self.resource.is_from_parent()
    }
}
