//! What a task of asyncio awaits: the next message of a subscriber, the next change of a watch.
//!
//! It is a coroutine, as that of `asyncio.Queue.get`: nothing happens before it runs, and it takes
//! what there is at the moment at which it returns it. Being cancelled, it has taken nothing; see
//! `crate::waiters`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;

use crate::members::{Member, Members};
use crate::waiters::Waiters;

/// Where what is awaited comes from.
pub(crate) trait Source: Send + Sync {
    /// What is there, if something is.
    fn look(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>>;

    fn waiters(&self) -> &Waiters;

    /// [`crate::waiters::pass_on`], unless in a forked child. Called without the GIL.
    fn pass_on(&self);

    /// As [`crate::waiters::Awaited::is_parents`].
    fn is_parents(&self) -> bool;

    /// An exception has ended the wait, that of a task that was cancelled for one.
    fn is_thrown_away(&self) {}
}

/// What hands the messages of a subscriber, or the changes of a watch, to an async callback. It does not keep the node.
#[pyclass(frozen, module = "rnet")]
pub(crate) struct Delivery {
    next: Box<dyn Fn() -> Next + Send + Sync>,
    source: Arc<dyn Member>,
}

impl Delivery {
    /// Of what `members` keep, and close when their owner is let go of.
    pub(crate) fn new<M: Member + 'static>(
        source: &Arc<M>,
        members: &Members,
        next: impl Fn() -> Next + Send + Sync + 'static,
    ) -> Delivery {
        let source: Arc<dyn Member> = source.clone();
        members.keep(&Arc::new(CloseOnDrop(source.clone())));
        Delivery { next: Box::new(next), source }
    }
}

#[pymethods]
impl Delivery {
    /// The next one.
    fn recv_async(&self) -> Next {
        (self.next)()
    }

    /// Closes the subscriber, or the watch: nobody reads it any more.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.source.close());
    }
}

struct CloseOnDrop(Arc<dyn Member>);

impl Member for CloseOnDrop {
    fn close(&self) {
        self.0.close();
    }

    fn is_over(&self) -> bool {
        self.0.is_over()
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

enum Step {
    Fresh,
    /// Is in the line, or was woken.
    Waits(u64),
    Over,
}

/// The coroutine.
#[pyclass(frozen, module = "rnet")]
pub(crate) struct Next {
    source: Box<dyn Source>,
    step: Mutex<Step>,
}

impl Next {
    pub(crate) fn new(source: impl Source + 'static) -> Next {
        Next { source: Box::new(source), step: Mutex::new(Step::Fresh) }
    }

    fn step(&self) -> MutexGuard<'_, Step> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs on: gives what the task sleeps on, or raises StopIteration with the result.
    fn run(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let waiters = self.source.waiters();
        let woken = match &*self.step() {
            Step::Fresh => None,
            Step::Waits(id) if !self.source.is_parents() && waiters.is_waiting(*id) => {
                return Err(PyRuntimeError::new_err("another task awaits this already"));
            }
            Step::Waits(id) => Some(*id),
            Step::Over => return Err(PyRuntimeError::new_err("it was awaited before")),
        };
        if woken.is_none() && waiters.must_break() {
            // Messages that are always there must not keep everything else from running.
            return Ok(py.None());
        }
        let looked = self.source.look(py);
        let Ok(None) = looked else {
            self.end(py);
            return match looked {
                Err(error) => Err(error),
                Ok(found) => Err(PyStopIteration::new_err((found,))),
            };
        };
        let (id, yielded) =
            waiters.enter_task(py, woken.is_some()).inspect_err(|_| self.end(py))?;
        *self.step() = Step::Waits(id);
        py.detach(|| self.source.pass_on());
        Ok(yielded.unbind())
    }

    /// Ends it, wherever it is.
    fn end(&self, py: Python<'_>) {
        let before = std::mem::replace(&mut *self.step(), Step::Over);
        let Step::Waits(id) = before else { return };
        // In a forked child the line may be locked by a thread that is not there.
        if self.source.is_parents() {
            return;
        }
        let waiters = self.source.waiters();
        if !waiters.leave(id) && waiters.any() {
            py.detach(|| self.source.pass_on());
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

    /// Runs on, as coroutines do.
    fn send(&self, py: Python<'_>, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.run(py)
    }

    /// Ends it by an exception, asyncio.CancelledError for one.
    #[pyo3(signature = (exception, value = None, _traceback = None, /))]
    fn throw(
        &self,
        py: Python<'_>,
        exception: Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        _traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        self.end(py);
        py.detach(|| self.source.is_thrown_away());
        Err(PyErr::from_value(value.filter(|value| !value.is_none()).unwrap_or(exception)))
    }

    /// Ends it.
    fn close(&self, py: Python<'_>) {
        self.end(py);
    }
}

impl Drop for Next {
    fn drop(&mut self) {
        if matches!(*self.step(), Step::Waits(_)) {
            let _ = Python::try_attach(|py| self.end(py));
        }
    }
}
