//! What a client's object, the calls or goals that it has begun, and its node share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use rnet::Error;

use super::lock;
use crate::fork::{ForkGuard, Own};
use crate::members::Member;
use crate::release::release;

/// A call or a goal. It holds its client, which knows where it is.
pub(crate) trait Begun: Send + Sync {
    /// What begins it.
    type Client: Clone + Send + Sync;
    /// Of what its client hears.
    type Codecs: Send + Sync;

    /// Ends it; whoever waits for it gets `error`. Call it without the GIL.
    fn close(&self, error: Error);
}

/// The client of a service or of an action.
pub(crate) struct Caller<B: Begun> {
    pub(super) name: String,
    pub(super) codecs: B::Codecs,
    held: Mutex<Option<Own<B::Client>>>,
    /// What is open, by its address: it holds the node, and ends with the client.
    begun: Mutex<HashMap<usize, Weak<B>>>,
    fork_guard: ForkGuard,
}

impl<B: Begun> Caller<B> {
    pub(super) fn new(name: String, client: B::Client, codecs: B::Codecs) -> Caller<B> {
        Caller {
            name,
            codecs,
            held: Mutex::new(Some(Own::new(client))),
            begun: Mutex::default(),
            fork_guard: ForkGuard::here(),
        }
    }

    fn closed_error(&self) -> Error {
        Error::Closed { what: self.fork_guard.name(format!("the client of {}", self.name)) }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.fork_guard.is_parents() || lock(&self.held).is_none()
    }

    /// Call it without the GIL.
    pub(super) fn inner(&self) -> rnet::Result<B::Client> {
        if self.fork_guard.is_parents() {
            return Err(self.closed_error());
        }
        lock(&self.held).as_deref().cloned().ok_or_else(|| self.closed_error())
    }

    pub(super) fn enter(&self, begun: &Arc<B>) {
        lock(&self.begun).insert(Arc::as_ptr(begun).addr(), Arc::downgrade(begun));
        // It may have been closed since this began.
        if lock(&self.held).is_none() {
            begun.close(self.closed_error());
        }
    }

    pub(super) fn leave(&self, begun: &B) {
        lock(&self.begun).remove(&std::ptr::from_ref(begun).addr());
    }
}

impl<B: Begun> Member for Caller<B> {
    fn close(&self) {
        if self.fork_guard.is_parents() {
            return;
        }
        let held = lock(&self.held).take();
        drop(held);
        let begun = std::mem::take(&mut *lock(&self.begun));
        let open = begun.values().filter_map(Weak::upgrade);
        open.for_each(|begun| begun.close(self.closed_error()));
    }
}

impl<B: Begun> Drop for Caller<B> {
    fn drop(&mut self) {
        if !self.fork_guard.is_parents() {
            release(lock(&self.held).take());
        }
    }
}
