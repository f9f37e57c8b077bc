//! Tasks of asyncio that await messages.
//!
//! A task awaits a future of its event loop. The oldest one's loop is woken by the dispatch
//! thread of the topic's lane (`call_soon_threadsafe`), and then serves in its own thread as many
//! tasks as there are messages. A task that is cancelled takes no message with it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, Wake, Waker};

use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use rnet::Error;

use crate::codec::Decoder;
use crate::errors::{is_malformed, raise};
use crate::receive::{RawSample, SubscriberCore};
use crate::sample;

/// A task that waits.
struct Waiting {
    event_loop: Py<PyAny>,
    future: Py<PyAny>,
    decoder: Arc<Decoder>,
    /// Whether it awaits the value of a message, and not a sample.
    value: bool,
    /// Iterates: what happens to single publishers is not for it, and closing is the end.
    iterates: bool,
}

impl Waiting {
    fn is_done(&self, py: Python<'_>) -> bool {
        let asked = |object: &Py<PyAny>, method| {
            object.call_method0(py, method).and_then(|yes| yes.is_truthy(py)).unwrap_or(true)
        };
        asked(&self.future, "done") || asked(&self.event_loop, "is_closed")
    }

    /// Ends the wait; `false` if it goes on, for the next message.
    fn give(&self, py: Python<'_>, result: rnet::Result<RawSample>) -> PyResult<bool> {
        let value = match result {
            Ok(received) if self.value => self.decoder.value(py, received),
            Ok(received) => sample::new(py, received, self.decoder.clone()),
            Err(Error::Closed { .. }) if self.iterates => {
                Err(PyStopAsyncIteration::new_err("the subscriber is closed"))
            }
            Err(error) => Err(raise(py, &error)),
        };
        match value {
            Err(error) if self.iterates && is_malformed(py, &error) => return Ok(false),
            Ok(value) => self.future.call_method1(py, "set_result", (value,))?,
            Err(error) => self.future.call_method1(py, "set_exception", (error.into_value(py),))?,
        };
        Ok(true)
    }
}

/// The tasks that await one subscriber, in the order in which they came.
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

    /// Has every task look again: the subscriber is closed. Call it without the GIL.
    pub(crate) fn wake_all(&self, core: &Arc<SubscriberCore>) {
        if !self.any() {
            return;
        }
        crate::gate::enter(|py| {
            let loops: Vec<Py<PyAny>> =
                self.lock().iter().map(|task| task.event_loop.clone_ref(py)).collect();
            loops.into_iter().for_each(|event_loop| call_soon(py, &event_loop, core));
        });
    }
}

/// Has the event loop serve its tasks. A loop that is closed has none any more.
fn call_soon(py: Python<'_>, event_loop: &Py<PyAny>, core: &Arc<SubscriberCore>) {
    let serve = Serve { core: core.clone() };
    let _ = Py::new(py, serve)
        .and_then(|serve| event_loop.call_method1(py, "call_soon_threadsafe", (serve,)));
}

/// A future of the running event loop for the next message.
pub(crate) fn next_message(
    py: Python<'_>,
    core: &Arc<SubscriberCore>,
    decoder: Arc<Decoder>,
    value: bool,
    iterates: bool,
) -> PyResult<Py<PyAny>> {
    let event_loop = py.import("asyncio")?.call_method0("get_running_loop")?;
    let future = event_loop.call_method0("create_future")?.unbind();
    let task = Waiting {
        event_loop: event_loop.unbind(),
        future: future.clone_ref(py),
        decoder,
        value,
        iterates,
    };
    core.tasks.lock().push_back(task);
    serve(py, core)?;
    Ok(future)
}

/// Gives messages to tasks, as long as there are both.
fn serve(py: Python<'_>, core: &Arc<SubscriberCore>) -> PyResult<()> {
    while let Some(task) = oldest(py, core) {
        let waker = Waker::from(Arc::new(LoopWaker {
            event_loop: task.event_loop.clone_ref(py),
            core: Arc::downgrade(core),
        }));
        match py.detach(|| core.poll(&waker)) {
            Poll::Pending => {
                core.tasks.lock().push_front(task);
                return Ok(());
            }
            Poll::Ready(Err(error))
                if task.iterates && py.detach(|| core.passes_over(&error)) =>
            {
                core.tasks.lock().push_front(task);
            }
            Poll::Ready(result) => {
                if !task.give(py, result)? {
                    core.tasks.lock().push_front(task);
                }
            }
        }
    }
    Ok(())
}

/// Takes the first task out that still waits.
fn oldest(py: Python<'_>, core: &SubscriberCore) -> Option<Waiting> {
    loop {
        // Python is not called with the lock held.
        let task = core.tasks.lock().pop_front()?;
        if !task.is_done(py) {
            return Some(task);
        }
    }
}

/// Wakes an event loop from the dispatch thread.
struct LoopWaker {
    event_loop: Py<PyAny>,
    core: Weak<SubscriberCore>,
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
    core: Arc<SubscriberCore>,
}

#[pymethods]
impl Serve {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        serve(py, &self.core)
    }
}
