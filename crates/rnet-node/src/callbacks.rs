//! The user's callbacks for one kind of event, and the guard of each.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use rnet_shm::os::fork::ForkGuard;

use crate::callback_errors::CallbackErrors;
use crate::sync::lock;

/// A callback for events of type `E`.
pub type Callback<E> = Box<dyn FnMut(&E) + Send>;

/// The node whose dispatch thread calls the callbacks.
pub trait CallsBack: Send + Sync + 'static {
    /// Whether this process is a forked child, which has no such thread.
    fn is_from_parent(&self) -> bool;
}

type SharedCallback<E> = Arc<Mutex<Callback<E>>>;

/// The callbacks for one kind of event.
///
/// They are called without a lock on the list: a callback may add another, or create and close endpoints,
/// which reads the list.
pub struct Callbacks<E> {
    list: Mutex<Vec<SharedCallback<E>>>,
    any: AtomicBool,
    fork_guard: ForkGuard,
}

impl<E> Default for Callbacks<E> {
    fn default() -> Self {
        Callbacks {
            list: Mutex::default(),
            any: AtomicBool::new(false),
            fork_guard: ForkGuard::here(),
        }
    }
}

impl<E: 'static> Callbacks<E> {
    /// Adds a callback, until the guard is dropped. In a forked child, which has no thread that could call
    /// it, it is not added.
    pub fn add(
        self: &Arc<Self>,
        node: &Arc<impl CallsBack>,
        callback: Callback<E>,
    ) -> CallbackGuard {
        if node.is_from_parent() {
            return CallbackGuard::default();
        }
        let callback = Arc::new(Mutex::new(callback));
        lock(&self.list).push(callback.clone());
        self.any.store(true, Ordering::Release);
        let (callbacks, node) = (Arc::downgrade(self), Arc::downgrade(node));
        // It is freed with what it was set for, even if the guard is kept.
        let callback = Arc::downgrade(&callback);
        CallbackGuard(Some(Box::new(move || {
            let (Some(callbacks), Some(node), Some(callback)) =
                (callbacks.upgrade(), node.upgrade(), callback.upgrade())
            else {
                return;
            };
            if node.is_from_parent() {
                return;
            }
            callbacks.remove(&callback);
            if !CallbackErrors::is_callback_thread() {
                drop(lock(&callback));
            }
        })))
    }

    fn remove(&self, callback: &SharedCallback<E>) {
        let mut list = lock(&self.list);
        list.retain(|other| !Arc::ptr_eq(other, callback));
        self.any.store(!list.is_empty(), Ordering::Release);
    }

    fn has(&self, callback: &SharedCallback<E>) -> bool {
        lock(&self.list).iter().any(|other| Arc::ptr_eq(other, callback))
    }

    /// Calls all callbacks. A callback that panics is not called again; the others are called, and then the
    /// panic continues, so that the dispatch thread counts it.
    pub fn call(&self, event: &E) {
        let mut panicked = None;
        // Weak, so that a callback that another one removes is freed at once.
        let list: Vec<_> = lock(&self.list).iter().map(Arc::downgrade).collect();
        for callback in list.iter().filter_map(Weak::upgrade) {
            // Only the bulk dispatch thread calls this, one event at a time.
            let mut call = lock(&callback);
            // Its guard may have been dropped since; that waits for this lock only after the removal.
            if !self.has(&callback) {
                continue;
            }
            let called = catch_unwind(AssertUnwindSafe(|| call(event)));
            drop(call);
            // A callback may fork: the child has no other thread, and its locks may be held.
            if self.fork_guard.is_from_parent() {
                return;
            }
            if let Err(panic) = called {
                panicked = Some(panic);
                self.remove(&callback);
            }
        }
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
    }

    /// Whether no callback is registered. Takes no lock.
    pub fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }
}

/// Keeps a callback for events: dropping it removes the callback.
///
/// Dropping waits for a call that is running, except inside a callback.
#[must_use = "the callback is removed when its guard is dropped; keep it or call detach()"]
#[derive(Default)]
pub struct CallbackGuard(Option<Box<dyn FnOnce() + Send + Sync>>);

impl CallbackGuard {
    /// Keeps the callback for as long as what it was set for exists.
    pub fn detach(mut self) {
        self.0 = None;
    }
}

impl Drop for CallbackGuard {
    fn drop(&mut self) {
        if let Some(remove) = self.0.take() {
            remove();
        }
    }
}

crate::debug_by!([] CallbackGuard, "CallbackGuard", |_this|);
