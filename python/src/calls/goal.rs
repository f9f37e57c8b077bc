//! `rnet.Goal`: a goal that was sent to an action.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rnet::{CancelReason, Error, Received};

use super::action::ActionClientCore;
use super::decoded;
use super::shared_client::OpenCall;
use crate::codec::Codec;
use crate::drop_without_gil::drop_without_gil;
use crate::errors::{OrRaise, raise};
use crate::fork::ProcessOwned;
use crate::node_core::NodeCore;
use crate::resource::{Resource, WaitCondition};
use crate::tasks::Next;
use crate::wait::{answer_limit, poll_until};

type Inner = rnet::Goal<[u8], [u8]>;
type Bytes = Received<[u8]>;
/// The outcome of a goal.
type Outcome = rnet::Result<Arc<Bytes>>;

/// The types of the messages that an action client receives.
pub(crate) struct GoalCodecs {
    pub(super) feedback: Codec,
    pub(super) result: Codec,
}

/// State shared by the Python object, its client and its waiters.
pub(crate) struct GoalCore {
    /// Kept until it is closed: it holds the node.
    resource: Arc<Resource<Arc<Inner>>>,
    feedback: Arc<WaitCondition<Inner>>,
    result: Arc<WaitCondition<Inner>>,
    /// The reason why it was closed.
    close_error: OnceLock<Error>,
    /// The outcome, for further calls of `result`.
    outcome: OnceLock<Outcome>,
    /// Whether its outcome is known, or the goal was closed.
    done: AtomicBool,
    client: Arc<ActionClientCore>,
}

impl GoalCore {
    pub(super) fn new(goal: Inner, client: Arc<ActionClientCore>) -> Arc<GoalCore> {
        let resource =
            Arc::new(Resource::new(format!("the goal of {}", client.name), Arc::new(goal)));
        Arc::new(GoalCore {
            feedback: WaitCondition::new(&resource, Inner::poll_feedback_ready),
            result: WaitCondition::new(&resource, Inner::poll_result_ready),
            resource,
            close_error: OnceLock::new(),
            outcome: OnceLock::new(),
            done: AtomicBool::new(false),
            client,
        })
    }

    /// Waits for feedback for a part of the time; `None` at the end of the feedback. Call it without the GIL.
    ///
    /// # Errors
    /// `Interrupted`: try again.
    fn feedback(&self, slice: Duration) -> rnet::Result<Option<Bytes>> {
        self.resource.get().map_or(Ok(None), |goal| goal.feedback_within(slice))
    }

    /// Waits for the result for a part of the time.
    ///
    /// # Errors
    /// Like those of `feedback`.
    fn result(&self, slice: Duration) -> Outcome {
        if let Some(outcome) = self.outcome.get().filter(|_| !self.resource.is_from_parent()) {
            return outcome.clone();
        }
        let closed = |error| self.close_error.get().cloned().unwrap_or(error);
        let goal = self.resource.get().map_err(closed)?;
        let result = goal.result_within(slice);
        let ended = !matches!(result, Err(Error::Interrupted));
        self.done.fetch_or(ended, Ordering::Relaxed);
        // If another thread closed the goal, the error is the one that it was closed with.
        let result = result.map(Arc::new).map_err(|error| match (&error, self.close_error.get()) {
            (Error::Cancelled { .. }, Some(why)) => why.clone(),
            _ => error,
        });
        match &result {
            // If two threads wait, only one of them receives the result.
            Err(Error::Closed { .. }) => self.outcome.get().cloned().unwrap_or(result),
            Err(Error::Interrupted) => result,
            _ => self.outcome.get_or_init(|| result).clone(),
        }
    }

    fn finish(&self) -> Option<ProcessOwned<Arc<Inner>>> {
        self.client.unregister(self);
        self.resource.take()
    }
}

impl OpenCall for GoalCore {
    fn close(&self, error: Error) {
        if self.resource.is_from_parent() {
            return;
        }
        let _ = self.close_error.set(error);
        if let Some(goal) = self.finish() {
            goal.abandon();
        }
        self.done.store(true, Ordering::Relaxed);
        self.feedback.wait_queue.wake_all();
        self.result.wait_queue.wake_all();
    }
}

impl Drop for GoalCore {
    fn drop(&mut self) {
        drop_without_gil(self.finish());
    }
}

/// A goal in progress, created by `ActionClient.send`.
///
/// `for feedback in goal` and `async for feedback in goal` iterate over the feedback until the goal ends.
/// `goal.result()` and `await goal` return the result, each time they are called. `cancel` asks the server to
/// cancel the goal. The end of a `with` block, or deleting the object, cancels it without waiting.
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Goal {
    pub(super) core: Arc<GoalCore>,
    pub(super) _node: Arc<NodeCore>,
}

impl Goal {
    fn decode_feedback(&self, py: Python<'_>, bytes: &Bytes) -> PyResult<Py<PyAny>> {
        let client = &self.core.client;
        decoded(py, &client.codecs.feedback, bytes, &format!("feedback of {}", client.name))
    }

    fn decode_result(&self, py: Python<'_>, bytes: &Bytes) -> PyResult<Py<PyAny>> {
        let client = &self.core.client;
        decoded(py, &client.codecs.result, bytes, &format!("the result of {}", client.name))
    }

    /// The item for a task, if one is available.
    fn try_take(&self, py: Python<'_>, of_feedback: bool) -> PyResult<Option<Py<PyAny>>> {
        let found = match of_feedback {
            true => match py.detach(|| self.core.feedback(Duration::ZERO)) {
                Ok(Some(bytes)) => Ok(self.decode_feedback(py, &bytes)?),
                Ok(None) => return Err(PyStopAsyncIteration::new_err("the goal has ended")),
                Err(error) => Err(error),
            },
            false => match py.detach(|| self.core.result(Duration::ZERO)) {
                Ok(bytes) => Ok(self.decode_result(py, &bytes)?),
                Err(error) => Err(error),
            },
        };
        match found {
            Ok(found) => Ok(Some(found)),
            Err(Error::Interrupted) => Ok(None),
            Err(error) => Err(raise(py, &error)),
        }
    }
}

#[pymethods]
impl Goal {
    /// Waits for the result, up to `timeout` seconds, without a limit by default. Calls `on_feedback` in this thread with
    /// each feedback that arrives before the result.
    ///
    /// Raises WaitTimeoutError, after which the goal continues; CallCancelledError with the reason once the handler has ended;
    /// CallFailedError, ServerLostError, RefusedError and the other errors of `Client.call`. Later calls return or raise the
    /// same again.
    #[pyo3(signature = (*, timeout = None, on_feedback = None))]
    fn result(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
        on_feedback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let limit = answer_limit(py, timeout, Duration::MAX)?;
        let until = Instant::now().checked_add(limit);
        let over = || {
            let topic = self.core.client.name.clone();
            let what = format!("the result of a goal of {topic}");
            raise(py, &Error::timeout(topic, what, limit))
        };
        if let Some(hear) = on_feedback {
            loop {
                match poll_until(py, until, |slice| self.core.feedback(slice))? {
                    Ok(Some(bytes)) => {
                        hear.call1((self.decode_feedback(py, &bytes)?,)).map(drop)?
                    }
                    Ok(None) => break,
                    Err(Error::Interrupted) => return Err(over()),
                    Err(error) => return Err(raise(py, &error)),
                }
            }
        }
        match poll_until(py, until, |slice| self.core.result(slice))? {
            Ok(bytes) => self.decode_result(py, &bytes),
            Err(Error::Interrupted) => Err(over()),
            Err(error) => Err(raise(py, &error)),
        }
    }

    /// Asks the server to cancel the goal. The goal is cancelled once its handler has ended, or has its
    /// result if that came first. Raises FullError if the server does not read; the server was then not asked.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let cancel = || self.core.resource.get().map_or(Ok(()), |goal| goal.cancel());
        py.detach(cancel).or_raise(py)
    }

    /// Whether the outcome was received: the result, or the error.
    #[getter]
    fn done(&self) -> bool {
        self.core.resource.is_from_parent() || self.core.done.load(Ordering::Relaxed)
    }

    fn __await__(slf: Py<Self>) -> Next {
        let core = slf.get().core.clone();
        let next = Next::new(core.result.clone(), move |py| slf.get().try_take(py, false));
        // Cancelling a task that awaits the result cancels the goal; cancelling one that reads feedback does
        // not.
        next.on_cancel(move || drop(core.resource.get().map(|goal| goal.cancel())))
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let next = poll_until(py, None, |slice| self.core.feedback(slice))?.or_raise(py)?;
        next.map(|bytes| self.decode_feedback(py, &bytes)).transpose()
    }

    fn __anext__(slf: Py<Self>) -> Next {
        Next::new(slf.get().core.feedback.clone(), move |py| slf.get().try_take(py, true))
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        let (topic, reason) = (self.core.client.name.clone(), CancelReason::Caller);
        py.detach(|| self.core.close(Error::Cancelled { topic, reason }));
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Goal of {}>", self.core.client.name)
    }
}
