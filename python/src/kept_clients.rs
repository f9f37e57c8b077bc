//! The clients that a node keeps for `Node.call`: to open one takes longer than a call.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

/// Clients that a node keeps. Of more, the one that was used longest ago is dropped.
const MAX_KEPT: usize = 64;

/// A client of this service, with the classes of requests and replies.
pub(crate) struct Kept {
    pub(crate) name: String,
    pub(crate) request: Py<PyAny>,
    pub(crate) reply: Option<Py<PyAny>>,
    pub(crate) client: Arc<dyn Any + Send + Sync>,
}

/// The one that was used last is at the end. The lock is held with the GIL, and never while that is let go of.
#[derive(Default)]
pub(crate) struct KeptClients(Mutex<Vec<Kept>>);

impl KeptClients {
    fn lock(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client of a service with these classes.
    pub(crate) fn find<C: Send + Sync + 'static>(
        &self,
        name: &str,
        request: &Bound<'_, PyAny>,
        reply: Option<&Bound<'_, PyAny>>,
    ) -> Option<Arc<C>> {
        let mut all = self.lock();
        let reply = reply.map(|reply| reply.as_ptr());
        let at = all.iter().position(|kept| {
            kept.name == name
                && kept.request.as_ptr() == request.as_ptr()
                && kept.reply.as_ref().map(|reply| reply.as_ptr()) == reply
        })?;
        let used = all.remove(at);
        let client = used.client.clone().downcast().ok();
        all.push(used);
        client
    }

    /// Keeps one; returns another that is kept no longer, to be dropped without the GIL.
    pub(crate) fn keep(&self, kept: Kept) -> Option<Kept> {
        let mut all = self.lock();
        let oldest = (all.len() >= MAX_KEPT).then(|| all.remove(0));
        all.push(kept);
        oldest
    }

    /// All of them, to be dropped without the GIL.
    pub(crate) fn take(&self) -> Vec<Kept> {
        std::mem::take(&mut *self.lock())
    }
}
