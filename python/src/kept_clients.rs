//! The clients that a node keeps for `Node.call`: to open one takes longer than a call.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyType;

/// Clients that a node keeps. Of more, the one that was used longest ago is dropped.
const MAX_KEPT: usize = 64;

/// A client of this service, with the classes of requests and replies.
pub(crate) struct Kept {
    pub(crate) name: String,
    pub(crate) request: Py<PyAny>,
    pub(crate) reply: Option<Py<PyAny>>,
    pub(crate) client: Arc<dyn Any + Send + Sync>,
}

impl Kept {
    fn copy(&self, py: Python<'_>) -> Kept {
        let (name, request) = (self.name.clone(), self.request.clone_ref(py));
        let reply = self.reply.as_ref().map(|reply| reply.clone_ref(py));
        Kept { name, request, reply, client: self.client.clone() }
    }
}

/// Whether both are the same class, or equal dtypes: those of structured messages are made for each use.
fn is_same(one: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>) -> bool {
    let is_class = one.is_instance_of::<PyType>();
    let equal = || one.get_type().is(other.get_type()) && one.eq(other).unwrap_or(false);
    one.is(other) || (!is_class && equal())
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
        let py = request.py();
        let of_name = |kept: &&Kept| kept.name == name;
        let of_name: Vec<_> =
            self.lock().iter().filter(of_name).map(|kept| kept.copy(py)).collect();
        // Without the lock: it runs code of Python.
        let found = of_name.into_iter().find(|kept| {
            is_same(kept.request.bind(py), request)
                && match (&kept.reply, reply) {
                    (Some(kept), Some(reply)) => is_same(kept.bind(py), reply),
                    (kept, reply) => kept.is_none() && reply.is_none(),
                }
        })?;
        let mut all = self.lock();
        if let Some(at) = all.iter().position(|kept| Arc::ptr_eq(&kept.client, &found.client)) {
            let used = all.remove(at);
            all.push(used);
        }
        drop(all);
        found.client.downcast().ok()
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
