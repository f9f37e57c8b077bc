//! `rnet.Goal`: a goal of an action that was sent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rnet::{CancelReason, Error, Received};

use super::action::ActionClientCore;
use super::caller::Begun;
use super::{decoded, limit, lock};
use crate::codec::Codec;
use crate::errors::{OrRaise, raise};
use crate::fork::{ForkGuard, Own};
use crate::release::release;
use crate::shared::NodeShared;
use crate::tasks::{Next, Source};
use crate::wait::SLICE;
use crate::waiters::{self, Awaited, Waiters};

type Inner = Arc<Own<rnet::Goal<[u8], [u8]>>>;
type Bytes = Received<[u8]>;
/// How a goal ended.
type Outcome = rnet::Result<Arc<Bytes>>;

/// The types of what a client of an action hears.
pub(crate) struct Heard {
    pub(super) feedback: Codec,
    pub(super) result: Codec,
}

/// The goal itself.
struct Held {
    /// `None` once it was closed: it holds the node.
    goal: Mutex<Option<Inner>>,
    /// Why it was closed.
    ended: OnceLock<Error>,
    /// How it ended, for every further call of `result`.
    outcome: OnceLock<Outcome>,
    /// Whether its outcome is known, or the goal was closed.
    done: AtomicBool,
    client: Arc<ActionClientCore>,
    fork_guard: ForkGuard,
}

impl Held {
    fn inner(&self) -> Option<Inner> {
        if self.fork_guard.is_parents() { None } else { lock(&self.goal).clone() }
    }

    fn closed_error(&self) -> Error {
        let what = self.fork_guard.name(format!("the goal of {}", self.client.name));
        self.ended.get().cloned().unwrap_or(Error::Closed { what })
    }

    /// Waits for feedback for a part of the time; `None` when there is no more. Call it without the GIL.
    ///
    /// # Errors
    /// `Interrupted`: it is to be asked again.
    fn feedback(&self, slice: Duration) -> rnet::Result<Option<Bytes>> {
        self.inner().map_or(Ok(None), |goal| goal.feedback_within(slice))
    }

    /// The same of the result.
    ///
    /// # Errors
    /// As there.
    fn result(&self, slice: Duration) -> Outcome {
        if let Some(outcome) = self.outcome.get().filter(|_| !self.fork_guard.is_parents()) {
            return outcome.clone();
        }
        let Some(goal) = self.inner() else { return Err(self.closed_error()) };
        let result = goal.result_within(slice);
        let ended = !matches!(result, Err(Error::Interrupted));
        self.done.fetch_or(ended, Ordering::Relaxed);
        // Closed by another thread, it is that which ended it.
        let result = result.map(Arc::new).map_err(|error| match (&error, self.ended.get()) {
            (Error::Cancelled { .. }, Some(why)) => why.clone(),
            _ => error,
        });
        match &result {
            // Of two threads that wait, one receives the result.
            Err(Error::Closed { .. }) => self.outcome.get().cloned().unwrap_or(result),
            Err(Error::Interrupted) => result,
            _ => self.outcome.get_or_init(|| result).clone(),
        }
    }
}

/// What may be waited for: feedback or the result, and the line of those who do.
struct Side {
    held: Arc<Held>,
    of_feedback: bool,
    waiters: Waiters,
}

impl Awaited for Side {
    fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    fn poll_ready(&self, waker: &Waker) -> bool {
        let context = &mut Context::from_waker(waker);
        self.held.inner().is_none_or(|goal| {
            match self.of_feedback {
                true => goal.poll_feedback_ready(context),
                false => goal.poll_result_ready(context),
            }
            .is_ready()
        })
    }

    fn is_parents(&self) -> bool {
        self.held.fork_guard.is_parents()
    }
}

/// What the Python object, its client and those who wait share.
pub(crate) struct GoalCore {
    held: Arc<Held>,
    feedback: Arc<Side>,
    result: Arc<Side>,
}

impl GoalCore {
    pub(super) fn new(
        goal: rnet::Goal<[u8], [u8]>,
        client: Arc<ActionClientCore>,
    ) -> Arc<GoalCore> {
        let held = Arc::new(Held {
            goal: Mutex::new(Some(Arc::new(Own::new(goal)))),
            ended: OnceLock::new(),
            outcome: OnceLock::new(),
            done: AtomicBool::new(false),
            client,
            fork_guard: ForkGuard::here(),
        });
        let side = |of_feedback| {
            Arc::new(Side { held: held.clone(), of_feedback, waiters: Waiters::default() })
        };
        let (feedback, result) = (side(true), side(false));
        Arc::new(GoalCore { held, feedback, result })
    }

    fn finish(&self) -> Option<Inner> {
        self.held.client.leave(self);
        lock(&self.held.goal).take()
    }
}

impl Begun for GoalCore {
    type Client = rnet::ActionClient<[u8], [u8], [u8]>;
    type Codecs = Heard;

    fn close(&self, error: Error) {
        if self.held.fork_guard.is_parents() {
            return;
        }
        let _ = self.held.ended.set(error);
        if let Some(goal) = self.finish() {
            goal.abandon();
        }
        self.held.done.store(true, Ordering::Relaxed);
        self.feedback.waiters.wake_all();
        self.result.waiters.wake_all();
    }
}

impl Drop for GoalCore {
    fn drop(&mut self) {
        if !self.held.fork_guard.is_parents() {
            release(self.finish());
        }
    }
}

/// A goal that was sent by `ActionClient.send`.
///
/// `for feedback in goal` and `async for feedback in goal` give its feedback until it has ended; `goal.result()` and
/// `await goal` its result, each time they are asked. `cancel` asks its server to end it. The end of a `with` block, or the
/// end of the object, cancels it without a wait.
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Goal {
    pub(super) core: Arc<GoalCore>,
    pub(super) _node: Arc<NodeShared>,
}

impl Goal {
    fn heard(&self, py: Python<'_>, bytes: &Bytes) -> PyResult<Py<PyAny>> {
        let client = &self.core.held.client;
        decoded(py, &client.codecs.feedback, bytes, &format!("feedback of {}", client.name))
    }

    fn returned(&self, py: Python<'_>, bytes: &Bytes) -> PyResult<Py<PyAny>> {
        let client = &self.core.held.client;
        decoded(py, &client.codecs.result, bytes, &format!("the result of {}", client.name))
    }

    /// Asks until there is something; `Interrupted` when the time is over.
    fn wait<T: Send>(
        &self,
        py: Python<'_>,
        until: Option<Instant>,
        ask: impl Fn(&Held, Duration) -> rnet::Result<T> + Sync,
    ) -> PyResult<Result<T, Error>> {
        loop {
            let left = until.map(|end| end.saturating_duration_since(Instant::now()));
            let slice = left.map_or(SLICE, |left| left.min(SLICE));
            match py.detach(|| ask(&self.core.held, slice)) {
                Err(Error::Interrupted) if left != Some(Duration::ZERO) => py.check_signals()?,
                got => return Ok(got),
            }
        }
    }
}

#[pymethods]
impl Goal {
    /// Waits for the result, for `timeout` seconds, None for as long as it takes; calls `on_feedback` with each
    /// feedback that comes before it, in this thread.
    ///
    /// Raises Timeout, and the goal goes on; Cancelled with its reason once the handler has ended; CallFailed,
    /// ServerLost, Refused and the others of `Client.call`. Asked again, it gives the same again.
    #[pyo3(signature = (timeout = None, *, on_feedback = None))]
    fn result(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
        on_feedback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let limit = limit(py, timeout)?;
        let until = Instant::now().checked_add(limit);
        let over = || {
            let topic = self.core.held.client.name.clone();
            let what = format!("the result of a goal of {topic}");
            let after_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
            raise(py, &Error::Timeout { topic, what, after_ms })
        };
        if let Some(hear) = on_feedback {
            loop {
                match self.wait(py, until, Held::feedback)? {
                    Ok(Some(bytes)) => hear.call1((self.heard(py, &bytes)?,)).map(drop)?,
                    Ok(None) => break,
                    Err(Error::Interrupted) => return Err(over()),
                    Err(error) => return Err(raise(py, &error)),
                }
            }
        }
        match self.wait(py, until, Held::result)? {
            Ok(bytes) => self.returned(py, &bytes),
            Err(Error::Interrupted) => Err(over()),
            Err(error) => Err(raise(py, &error)),
        }
    }

    /// Asks the server to end the goal, which is then Cancelled once its handler has ended, or has its result if that
    /// came first. Raises Full if the server stands still, and was not asked.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let cancel = || self.core.held.inner().map_or(Ok(()), |goal| goal.cancel());
        py.detach(cancel).or_raise(py)
    }

    /// Whether its end was had: the result, or why there is none.
    #[getter]
    fn done(&self) -> bool {
        self.core.held.fork_guard.is_parents() || self.core.held.done.load(Ordering::Relaxed)
    }

    fn __await__(slf: Py<Self>) -> Next {
        Next::new(Sought { goal: slf, of_feedback: false })
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let next = self.wait(py, None, Held::feedback)?.or_raise(py)?;
        next.map(|bytes| self.heard(py, &bytes)).transpose()
    }

    fn __anext__(slf: Py<Self>) -> Next {
        Next::new(Sought { goal: slf, of_feedback: true })
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        let (topic, reason) = (self.core.held.client.name.clone(), CancelReason::Caller);
        py.detach(|| self.core.close(Error::Cancelled { topic, reason }));
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Goal of {}>", self.core.held.client.name)
    }
}

/// What tasks await.
struct Sought {
    goal: Py<Goal>,
    of_feedback: bool,
}

impl Sought {
    fn side(&self) -> &Arc<Side> {
        let core = &self.goal.get().core;
        if self.of_feedback { &core.feedback } else { &core.result }
    }
}

impl Source for Sought {
    fn look(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let goal = self.goal.get();
        let held = &goal.core.held;
        let found = match self.of_feedback {
            true => match py.detach(|| held.feedback(Duration::ZERO)) {
                Ok(Some(bytes)) => Ok(goal.heard(py, &bytes)?),
                Ok(None) => return Err(PyStopAsyncIteration::new_err("the goal has ended")),
                Err(error) => Err(error),
            },
            false => match py.detach(|| held.result(Duration::ZERO)) {
                Ok(bytes) => Ok(goal.returned(py, &bytes)?),
                Err(error) => Err(error),
            },
        };
        match found {
            Ok(found) => Ok(Some(found)),
            Err(Error::Interrupted) => Ok(None),
            Err(error) => Err(raise(py, &error)),
        }
    }

    fn waiters(&self) -> &Waiters {
        &self.side().waiters
    }

    fn pass_on(&self) {
        waiters::pass_on(self.side());
    }

    fn is_parents(&self) -> bool {
        self.side().is_parents()
    }

    fn is_thrown_away(&self) {
        // A task that awaits the result wants the goal; one that hears feedback need not.
        if let (false, Some(goal)) = (self.of_feedback, self.goal.get().core.held.inner()) {
            let _ = goal.cancel();
        }
    }
}
