//! Tasks of asyncio that await changes: as `crate::tasks` has them for messages.
//!
//! A task awaits a future of its event loop. When there is something, the loop of the oldest one is
//! woken from the node's thread for state, and then serves in its own thread as many tasks as
//! there are changes. A task that is cancelled takes no change with it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, Wake, Waker};

use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use rnet::{Error, state};

use super::entry::Change;
use super::watch::WatchCore;
use crate::errors::raise;

/// A task that waits.
struct Waiting {
    event_loop: Py<PyAny>,
    future: Py<PyAny>,
    /// Iterates: closing is the end, and no error.
    iterates: bool,
}

impl Waiting {
    fn is_done(&self, py: Python<'_>) -> bool {
        let asked = |object: &Py<PyAny>, method| {
            object.call_method0(py, method).and_then(|yes| yes.is_truthy(py)).unwrap_or(true)
        };
        asked(&self.future, "done") || asked(&self.event_loop, "is_closed")
    }

    fn give(
        &self,
        py: Python<'_>,
        core: &WatchCore,
        result: rnet::Result<state::Change>,
    ) -> PyResult<()> {
        let change = match result {
            Ok(told) => Change::new(py, told, &core.types),
            Err(Error::Closed { .. }) if self.iterates => {
                Err(PyStopAsyncIteration::new_err("the watch is closed"))
            }
            Err(error) => Err(raise(py, &error)),
        };
        match change {
            Ok(change) => self.future.call_method1(py, "set_result", (change,))?,
            Err(error) => self.future.call_method1(py, "set_exception", (error.into_value(py),))?,
        };
        Ok(())
    }
}

/// The tasks that await one watch, in the order in which they came.
#[derive(Default)]
pub(crate) struct Tasks(Mutex<VecDeque<Waiting>>);

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a task waits.
    pub(crate) fn any(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Takes the first task out that still waits.
    fn oldest(&self, py: Python<'_>) -> Option<Waiting> {
        loop {
            // Python is not called with the lock held.
            let task = self.lock().pop_front()?;
            if !task.is_done(py) {
                return Some(task);
            }
        }
    }
}

/// Has every task look again: the watch is closed. Call it without the GIL.
pub(crate) fn wake_all(core: &Arc<WatchCore>) {
    if !core.tasks.any() {
        return;
    }
    crate::gate::enter(|py| {
        let loops: Vec<Py<PyAny>> =
            core.tasks.lock().iter().map(|task| task.event_loop.clone_ref(py)).collect();
        loops.into_iter().for_each(|event_loop| call_soon(py, &event_loop, core));
    });
}

/// Has the event loop serve its tasks. A loop that is closed has none any more.
fn call_soon(py: Python<'_>, event_loop: &Py<PyAny>, core: &Arc<WatchCore>) {
    let serve = Serve { core: core.clone() };
    let _ = Py::new(py, serve)
        .and_then(|serve| event_loop.call_method1(py, "call_soon_threadsafe", (serve,)));
}

/// A future of the running event loop for the next change.
pub(crate) fn next_change(
    py: Python<'_>,
    core: &Arc<WatchCore>,
    iterates: bool,
) -> PyResult<Py<PyAny>> {
    let event_loop = py.import("asyncio")?.call_method0("get_running_loop")?;
    let future = event_loop.call_method0("create_future")?.unbind();
    let event_loop = event_loop.unbind();
    let task = Waiting { event_loop, future: future.clone_ref(py), iterates };
    core.tasks.lock().push_back(task);
    serve(py, core)?;
    Ok(future)
}

/// Gives changes to tasks, as long as there are both.
fn serve(py: Python<'_>, core: &Arc<WatchCore>) -> PyResult<()> {
    while let Some(task) = core.tasks.oldest(py) {
        let waker = Waker::from(Arc::new(LoopWaker {
            event_loop: task.event_loop.clone_ref(py),
            core: Arc::downgrade(core),
        }));
        match py.detach(|| core.poll(&waker)) {
            Poll::Pending => {
                core.tasks.lock().push_front(task);
                return Ok(());
            }
            Poll::Ready(result) => task.give(py, core, result)?,
        }
    }
    Ok(())
}

/// Wakes an event loop from the node's thread.
struct LoopWaker {
    event_loop: Py<PyAny>,
    core: Weak<WatchCore>,
}

impl Wake for LoopWaker {
    fn wake(self: Arc<Self>) {
        let Some(core) = self.core.upgrade() else { return };
        crate::gate::enter(|py| call_soon(py, &self.event_loop, &core));
    }
}

/// What an event loop calls to serve its tasks.
#[pyclass(frozen, module = "rnet")]
struct Serve {
    core: Arc<WatchCore>,
}

#[pymethods]
impl Serve {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        serve(py, &self.core)
    }
}
