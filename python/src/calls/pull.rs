//! `rnet.Puller`: a worker of a work queue, and `rnet.Job`, what it has.

use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use pyo3::types::PyString;
use rnet::{Error, HandlerError};

use super::push::SLICE;
use super::service::{Service, failed, failure, run_wanted, stats};
use super::{decoded, lock};
use crate::callback::call_by;
use crate::codec::Codec;
use crate::errors::{OrRaise, closed, raise};
use crate::fork::{ForkGuard, Own};
use crate::members::{Kind, Member};
use crate::release::release;
use crate::shared::NodeShared;
use crate::tasks::{Next, Source};
use crate::wait::WaitLimit;
use crate::waiters::{self, Awaited, Waiters};

type Inner = Arc<Own<rnet::Puller<[u8]>>>;

/// Opens a worker with a handler.
pub(crate) fn open_handler(
    py: Python<'_>,
    node: &Arc<NodeShared>,
    (name, ty): (&str, Option<&Bound<'_, PyAny>>),
    function: Py<PyAny>,
) -> PyResult<Service> {
    let (function, with_context) = super::handler(py, function, "job")?;
    let codec = Codec::new(py, ty)?;
    let (message_type, what) = (codec.message_type.clone(), format!("a job of {name}"));
    let run = move |py: Python<'_>, job: &[u8], context: &rnet::JobContext| {
        let job = decoded(py, &codec, job, &what).map_err(|error| failure(py, &error))?;
        let context = JobContext { inner: context.clone() };
        let called = match with_context {
            true => call_by(py, &function, (job, context)),
            false => call_by(py, &function, (job,)),
        };
        called.map(drop).map_err(|error| failed(&error, function.bind(py)))
    };
    Service::hold(py, node, || {
        let builder = node.node()?.pull::<[u8]>(name).message_type(message_type);
        builder.on(move |job, context| {
            run_wanted(|| context.is_cancelled(), |py| run(py, job, context))
        })
    })
}

/// What a handler of jobs may ask: given to one that takes two arguments.
#[pyclass(frozen, module = "rnet")]
pub(crate) struct JobContext {
    inner: rnet::JobContext,
}

#[pymethods]
impl JobContext {
    /// Whether another worker had the job and was lost: it may be done already.
    #[getter]
    fn redelivered(&self) -> bool {
        self.inner.redelivered()
    }

    /// Name of the node that pushed it.
    #[getter]
    fn pusher(&self) -> &str {
        self.inner.pusher()
    }

    /// Whether nobody waits for its acknowledgement any more.
    #[getter]
    fn cancelled(&self, py: Python<'_>) -> bool {
        py.detach(|| self.inner.is_cancelled())
    }

    /// Why, for what runs the handler, which does not know by this.
    fn _peek_reason(&self, py: Python<'_>) -> Option<&'static str> {
        super::reason_name(py.detach(|| self.inner.peek_cancel_reason()))
    }
}

/// What the Python object, its node and those who wait share.
pub(crate) struct PullerCore {
    name: String,
    held: Mutex<Option<Inner>>,
    waiters: Waiters,
    fork_guard: ForkGuard,
}

impl PullerCore {
    fn closed_error(&self) -> Error {
        Error::Closed { what: self.fork_guard.name(format!("the worker of {}", self.name)) }
    }

    /// Call it without the GIL.
    fn inner(&self) -> rnet::Result<Inner> {
        if self.fork_guard.is_parents() {
            return Err(self.closed_error());
        }
        lock(&self.held).clone().ok_or_else(|| self.closed_error())
    }

    fn recv(&self, slice: Duration) -> rnet::Result<rnet::Job<[u8]>> {
        let what = || "a job".to_owned();
        let job = self.inner()?.recv_within(slice)?;
        job.ok_or_else(|| Error::Timeout { topic: self.name.clone(), what: what(), after_ms: 0 })
    }
}

impl Awaited for PullerCore {
    fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    fn poll_ready(&self, waker: &Waker) -> bool {
        let context = &mut Context::from_waker(waker);
        self.inner().map_or(true, |puller| puller.poll_ready(context).is_ready())
    }

    fn is_parents(&self) -> bool {
        self.fork_guard.is_parents()
    }
}

impl Member for PullerCore {
    fn close(&self) {
        if self.fork_guard.is_parents() {
            return;
        }
        let puller = lock(&self.held).take();
        if let Some(puller) = puller {
            // Another thread may hold it, too, while it waits.
            puller.close();
        }
        self.waiters.wake_all();
    }
}

impl Drop for PullerCore {
    fn drop(&mut self) {
        if !self.fork_guard.is_parents() {
            release(lock(&self.held).take());
        }
    }
}

/// A worker of a work queue, which has one job at a time. Made by `Node.pull`.
///
/// `recv`, `for job in worker` and `async for job in worker` give the next Job, once the one before was
/// acknowledged. `close`, the end of a `with` block, or the end of the node closes it: a job that it has goes to
/// another worker.
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Puller {
    core: Arc<PullerCore>,
    codec: Arc<Codec>,
    node: Arc<NodeShared>,
}

impl Puller {
    pub(crate) fn open(
        py: Python<'_>,
        node: &Arc<NodeShared>,
        (name, ty): (&str, Option<&Bound<'_, PyAny>>),
    ) -> PyResult<Puller> {
        let codec = Arc::new(Codec::new(py, ty)?);
        let message_type = codec.message_type.clone();
        let open = || {
            let puller = node.node()?.pull::<[u8]>(name).message_type(message_type).open()?;
            let core = Arc::new(PullerCore {
                name: puller.name().to_owned(),
                held: Mutex::new(Some(Arc::new(Own::new(puller)))),
                waiters: Waiters::default(),
                fork_guard: ForkGuard::here(),
            });
            node.members.add(Kind::Service, &core);
            Ok(core)
        };
        let core = py.detach(open).or_raise(py)?;
        Ok(Puller { core, codec, node: node.clone() })
    }

    /// The object of a job. One that is no message of its type has failed.
    fn job(&self, py: Python<'_>, job: rnet::Job<[u8]>) -> PyResult<Option<Job>> {
        let what = format!("a job of {}", self.core.name);
        let message = match decoded(py, &self.codec, &job, &what) {
            Ok(message) => message,
            Err(error) => {
                let failed = failure(py, &error);
                py.detach(|| job.fail(failed));
                return Ok(None);
            }
        };
        let context = job.context().clone();
        let held = Mutex::new(Own::new(Some(job)));
        let (name, fork_guard) = (self.core.name.clone(), ForkGuard::here());
        Ok(Some(Job { message, context, held, name, fork_guard, _node: self.node.clone() }))
    }

    fn wait(&self, py: Python<'_>, limit: WaitLimit) -> PyResult<Job> {
        loop {
            let got = limit.run(py, |slice| self.core.recv(slice));
            if let Some(job) = self.job(py, got.map_err(|stop| stop.into_err(py))?)? {
                return Ok(job);
            }
        }
    }
}

#[pymethods]
impl Puller {
    /// Waits for the next Job, for `timeout` seconds, None for as long as it takes. It comes once the one before was
    /// acknowledged or has failed. A job that is no message of its type fails, and is passed over. Raises Timeout;
    /// Closed.
    #[pyo3(signature = (timeout = None))]
    fn recv(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Job> {
        self.wait(py, WaitLimit::new(py, timeout)?.in_slices(SLICE))
    }

    /// The name of the queue, with its leading slash.
    #[getter]
    fn name(&self) -> &str {
        &self.core.name
    }

    /// What came so far, as ServiceStats: `calls` are jobs, `refused` those that came while it
    /// closed.
    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let s = py.detach(|| Ok(self.core.inner()?.stats())).or_raise(py)?;
        stats(py, &s)
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.core.fork_guard.is_parents() || lock(&self.core.held).is_none()
    }

    /// Closes it: a job that it has goes to another worker.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.core.close());
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Job>> {
        match self.wait(py, WaitLimit::endless().in_slices(SLICE)) {
            Err(_) if self.closed() => Ok(None),
            next => next.map(Some),
        }
    }

    fn __anext__(slf: Py<Self>) -> Next {
        Next::new(Jobs { puller: slf })
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Puller of {}, by node {}>", self.core.name, self.node.name)
    }
}

/// What tasks await.
struct Jobs {
    puller: Py<Puller>,
}

impl Source for Jobs {
    fn look(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let puller = self.puller.get();
        loop {
            match py.detach(|| puller.core.recv(Duration::ZERO)) {
                Ok(job) => match puller.job(py, job)? {
                    Some(job) => return Ok(Some(Py::new(py, job)?.into_any())),
                    None => continue,
                },
                Err(Error::Timeout { .. }) => return Ok(None),
                Err(Error::Closed { .. }) => {
                    return Err(PyStopAsyncIteration::new_err("the worker was closed"));
                }
                Err(error) => return Err(raise(py, &error)),
            }
        }
    }

    fn waiters(&self) -> &Waiters {
        &self.puller.get().core.waiters
    }

    fn pass_on(&self) {
        waiters::pass_on(&self.puller.get().core);
    }

    fn is_parents(&self) -> bool {
        self.puller.get().core.is_parents()
    }
}

/// A job, which its worker has until it says how it ended: `ack` that it is done, `fail` that it could not be done.
///
/// `with job as message:` acknowledges at the end of the block; an exception fails it. A job that is let go of without
/// a word has failed, which its pusher is told.
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Job {
    message: Py<PyAny>,
    context: rnet::JobContext,
    held: Mutex<Own<Option<rnet::Job<[u8]>>>>,
    name: String,
    fork_guard: ForkGuard,
    _node: Arc<NodeShared>,
}

impl Job {
    fn take(&self, py: Python<'_>) -> PyResult<rnet::Job<[u8]>> {
        let held = if self.fork_guard.is_parents() { None } else { lock(&self.held).take() };
        let what = || self.fork_guard.name(format!("the job of {}", self.name));
        held.ok_or_else(|| closed(py, what()))
    }

    fn fail_with(&self, py: Python<'_>, why: HandlerError) -> PyResult<()> {
        let job = self.take(py)?;
        py.detach(|| job.fail(why));
        Ok(())
    }
}

#[pymethods]
impl Job {
    /// What was pushed: an object of the type of the queue, bytes where it has none.
    #[getter]
    fn message(&self, py: Python<'_>) -> Py<PyAny> {
        self.message.clone_ref(py)
    }

    /// Whether another worker had it and was lost, or did not acknowledge it in time: it may be done already.
    #[getter]
    fn redelivered(&self) -> bool {
        self.context.redelivered()
    }

    /// Name of the node that pushed it.
    #[getter]
    fn pusher(&self) -> &str {
        self.context.pusher()
    }

    /// Whether nobody waits for its acknowledgement any more: its pusher is gone or waits no longer, or the worker
    /// closes.
    #[getter]
    fn cancelled(&self, py: Python<'_>) -> bool {
        self.fork_guard.is_parents() || py.detach(|| self.context.is_cancelled())
    }

    /// Whether it was acknowledged, or has failed.
    #[getter]
    fn done(&self) -> bool {
        self.fork_guard.is_parents() || lock(&self.held).is_none()
    }

    /// It is done. Raises Closed if it was said before how it ended.
    fn ack(&self, py: Python<'_>) -> PyResult<()> {
        let job = self.take(py)?;
        py.detach(|| job.ack());
        Ok(())
    }

    /// It could not be done: the pusher is told why, by an exception or a text, and it goes to no other worker. Raises
    /// Closed if it was said before how it ended.
    fn fail(&self, py: Python<'_>, why: &Bound<'_, PyAny>) -> PyResult<()> {
        let why = match why.cast::<PyString>() {
            Ok(text) => HandlerError::new("failed", text.to_str()?),
            Err(_) => failure(py, &PyErr::from_value(why.clone())),
        };
        self.fail_with(py, why)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> Py<PyAny> {
        slf.message.clone_ref(slf.py())
    }

    #[pyo3(signature = (_type = None, error = None, _traceback = None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _type: Option<&Bound<'_, PyAny>>,
        error: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        // In the block it may have been said how it ended.
        match error {
            _ if self.done() => Ok(()),
            None => self.ack(py),
            Some(error) => self.fail_with(py, failure(py, &PyErr::from_value(error.clone()))),
        }
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Job of {}, from {}>", self.name, self.context.pusher())
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.fork_guard.is_parents() {
            release(lock(&self.held).take());
        }
    }
}
