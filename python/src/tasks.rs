//! The coroutine of an asyncio task that waits for the next message of a subscriber or the next change of a
//! watch.
//!
//! Like that of `asyncio.Queue.get`, it does nothing before it runs, and takes an item at the moment at which
//! it returns it. A cancelled coroutine has not taken an item; see `crate::wait_queue`.

use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;

use crate::lock::lock;
use crate::members::{Member, Members};
use crate::wait_queue::{self, Pollable};

/// Passes the messages of a subscriber, or the changes of a watch, to an async callback. It does not keep the
/// node.
#[pyclass(frozen, module = "rnet")]
pub(crate) struct Delivery {
    next: Box<dyn Fn() -> Next + Send + Sync>,
    source: Arc<dyn Member>,
}

impl Delivery {
    /// For a source that `members` keeps, and closes when its owner is closed.
    pub(crate) fn new<M: Member + 'static>(
        source: &Arc<M>,
        members: &Members,
        next: impl Fn() -> Next + Send + Sync + 'static,
    ) -> Delivery {
        let source: Arc<dyn Member> = source.clone();
        members.retain(&Arc::new(CloseOnDrop(source.clone())));
        Delivery { next: Box::new(next), source }
    }
}

#[pymethods]
impl Delivery {
    /// The next item.
    fn recv_async(&self) -> Next {
        (self.next)()
    }

    /// Closes the subscriber or the watch: it has lost its reader.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.source.close());
    }
}

struct CloseOnDrop(Arc<dyn Member>);

impl Member for CloseOnDrop {
    fn close(&self) {
        self.0.close();
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

enum CoroutineState {
    NotStarted,
    /// Is in the queue, or was woken.
    Waiting(u64),
    Finished,
}

/// A coroutine that returns the next message, change, reply or job.
#[pyclass(frozen, module = "rnet")]
pub(crate) struct Next {
    /// The source that it waits for.
    source: Arc<dyn Pollable>,
    /// Takes an item, if one is available.
    try_take: Box<TryTake>,
    /// Runs when an exception ends the wait, such as the cancellation of the task.
    cancel: Box<dyn Fn() + Send + Sync>,
    state: Mutex<CoroutineState>,
}

type TryTake = dyn Fn(Python<'_>) -> PyResult<Option<Py<PyAny>>> + Send + Sync;

impl Next {
    pub(crate) fn new(
        source: Arc<dyn Pollable>,
        try_take: impl Fn(Python<'_>) -> PyResult<Option<Py<PyAny>>> + Send + Sync + 'static,
    ) -> Next {
        Next {
            source,
            try_take: Box::new(try_take),
            cancel: Box::new(|| ()),
            state: Mutex::new(CoroutineState::NotStarted),
        }
    }

    /// Runs `cancel` without the GIL when an exception ends the wait.
    pub(crate) fn on_cancel(mut self, cancel: impl Fn() + Send + Sync + 'static) -> Next {
        self.cancel = Box::new(cancel);
        self
    }

    /// Runs the next step: returns the object that the task sleeps on, or raises StopIteration with the
    /// result.
    fn run(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let wait_queue = self.source.wait_queue();
        let woken = match &*lock(&self.state) {
            CoroutineState::NotStarted => None,
            CoroutineState::Waiting(id)
                if !self.source.is_from_parent() && wait_queue.is_waiting(*id) =>
            {
                return Err(PyRuntimeError::new_err("another task is already awaiting this"));
            }
            CoroutineState::Waiting(id) => Some(*id),
            CoroutineState::Finished => {
                return Err(PyRuntimeError::new_err("it was already awaited"));
            }
        };
        if woken.is_none() && wait_queue.must_yield() {
            // Messages that are always available must not starve the other tasks.
            return Ok(py.None());
        }
        let looked = (self.try_take)(py);
        let Ok(None) = looked else {
            self.end(py);
            return match looked {
                Err(error) => Err(error),
                Ok(found) => Err(PyStopIteration::new_err((found,))),
            };
        };
        let (id, yielded) =
            wait_queue.enqueue_task(py, woken.is_some()).inspect_err(|_| self.end(py))?;
        *lock(&self.state) = CoroutineState::Waiting(id);
        py.detach(|| wait_queue::wake_or_arm(&self.source));
        Ok(yielded.unbind())
    }

    /// Ends the coroutine in any state.
    fn end(&self, py: Python<'_>) {
        let before = std::mem::replace(&mut *lock(&self.state), CoroutineState::Finished);
        let CoroutineState::Waiting(id) = before else { return };
        // In a forked child the queue may be locked by a thread that does not exist there.
        if self.source.is_from_parent() {
            return;
        }
        let wait_queue = self.source.wait_queue();
        if !wait_queue.remove(id) && wait_queue.has_waiters() {
            py.detach(|| wait_queue::wake_or_arm(&self.source));
        }
    }
}

#[pymethods]
impl Next {
    fn __await__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.run(py)
    }

    /// Continues the coroutine.
    fn send(&self, py: Python<'_>, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.run(py)
    }

    /// Raises an exception in the coroutine, such as asyncio.CancelledError.
    #[pyo3(signature = (exception, value = None, _traceback = None, /))]
    fn throw(
        &self,
        py: Python<'_>,
        exception: Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        _traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        self.end(py);
        py.detach(|| (self.cancel)());
        Err(PyErr::from_value(value.filter(|value| !value.is_none()).unwrap_or(exception)))
    }

    /// Closes the coroutine.
    fn close(&self, py: Python<'_>) {
        self.end(py);
    }
}

impl Drop for Next {
    fn drop(&mut self) {
        if matches!(*lock(&self.state), CoroutineState::Waiting(_)) {
            let _ = Python::try_attach(|py| self.end(py));
        }
    }
}
