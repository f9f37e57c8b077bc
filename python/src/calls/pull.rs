//! `rnet.Puller`: a worker of a work queue, and `rnet.Job`, its current job.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use pyo3::types::PyString;
use rnet::{Error, HandlerError};

use super::decoded;
use super::service::{Handler, Service, failure, stats};
use crate::codec::Codec;
use crate::errors::{OrRaise, raise};
use crate::members::{Member, MemberKind};
use crate::node_core::NodeCore;
use crate::resource::{Resource, WaitCondition};
use crate::tasks::Next;
use crate::wait::{UNINTERRUPTED_CHECK_INTERVAL, WaitLimit};

type Inner = rnet::Puller<[u8]>;

/// Opens a worker with a handler.
pub(crate) fn open_handler(
    py: Python<'_>,
    node: &Arc<NodeCore>,
    (name, ty): (&str, Option<&Bound<'_, PyAny>>),
    function: Py<PyAny>,
) -> PyResult<Service> {
    let codec = Codec::new(py, ty)?;
    let message_type = codec.message_type.clone();
    let handler = Handler::new(py, function, ("job", format!("a job of {name}")), codec)?;
    Service::open_resource(py, node, || {
        let builder = node.node()?.pull::<[u8]>(name).message_type(message_type);
        builder.on(move |job: &[u8], context: &rnet::JobContext| {
            let theirs = JobContext { inner: context.clone() };
            handler.run(job, || context.is_cancelled(), theirs, |_, _| Ok(()))
        })
    })
}

/// The context of a job, passed to a handler with two parameters.
#[pyclass(frozen, module = "rnet")]
pub(crate) struct JobContext {
    inner: rnet::JobContext,
}

#[pymethods]
impl JobContext {
    /// Whether another worker had the job and was lost: the job may be done already.
    #[getter]
    fn redelivered(&self) -> bool {
        self.inner.redelivered()
    }

    /// Name of the node that pushed the job.
    #[getter]
    fn pusher(&self) -> &str {
        self.inner.pusher()
    }

    /// Whether the pusher no longer waits for the acknowledgement.
    #[getter]
    fn cancelled(&self, py: Python<'_>) -> bool {
        py.detach(|| self.inner.is_cancelled())
    }

    /// The reason, read by the code that runs the handler; the handler does not learn of it by this call.
    fn _peek_reason(&self, py: Python<'_>) -> Option<&'static str> {
        super::reason_name(py.detach(|| self.inner.peek_cancel_reason()))
    }
}

/// State shared by the Python object, its node and its waiters.
pub(crate) struct PullerCore {
    name: String,
    resource: Arc<Resource<Arc<Inner>>>,
    ready: Arc<WaitCondition<Inner>>,
}

impl PullerCore {
    fn recv(&self, slice: Duration) -> rnet::Result<rnet::Job<[u8]>> {
        let what = || "a job".to_owned();
        let job = self.resource.get()?.recv_timeout(slice)?;
        job.ok_or_else(|| Error::timeout(self.name.as_str(), what(), Duration::ZERO))
    }
}

impl Member for PullerCore {
    fn close(&self) {
        if let Some(puller) = self.resource.take() {
            // Another thread may also hold it while it waits.
            puller.close();
        }
        if !self.resource.is_from_parent() {
            self.ready.wait_queue.wake_all();
        }
    }
}

/// A worker of a work queue; it has one job at a time. Created by `Node.pull`.
///
/// `recv`, `for job in worker` and `async for job in worker` return the next Job after the previous one was
/// acknowledged. `close`, the end of a `with` block, or closing the node closes it: its current job goes to
/// another worker.
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Puller {
    core: Arc<PullerCore>,
    codec: Arc<Codec>,
    node: Arc<NodeCore>,
}

impl Puller {
    pub(crate) fn open(
        py: Python<'_>,
        node: &Arc<NodeCore>,
        (name, ty): (&str, Option<&Bound<'_, PyAny>>),
    ) -> PyResult<Puller> {
        let codec = Arc::new(Codec::new(py, ty)?);
        let message_type = codec.message_type.clone();
        let open = || {
            let puller = node.node()?.pull::<[u8]>(name).message_type(message_type).open()?;
            let name = puller.name().to_owned();
            let resource = Resource::new(format!("the worker of {name}"), Arc::new(puller));
            let resource = Arc::new(resource);
            let ready = WaitCondition::new(&resource, Inner::poll_ready);
            let core = Arc::new(PullerCore { name, resource, ready });
            node.members.add(MemberKind::Service, &core);
            Ok(core)
        };
        let core = py.detach(open).or_raise(py)?;
        Ok(Puller { core, codec, node: node.clone() })
    }

    /// The Python object for a job. A malformed job fails.
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
        let (name, context) = (self.core.name.clone(), job.context().clone());
        let resource = Resource::new(format!("the job of {name}"), Some(job));
        Ok(Some(Job { message, context, resource, name, _node: self.node.clone() }))
    }

    /// The next job for a task, if one is available.
    fn try_take(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        loop {
            match py.detach(|| self.core.recv(Duration::ZERO)) {
                Ok(job) => match self.job(py, job)? {
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

    fn wait(&self, py: Python<'_>, limit: WaitLimit) -> PyResult<Job> {
        loop {
            let got = limit.run(py, |slice| self.core.recv(slice));
            if let Some(job) = self.job(py, got?)? {
                return Ok(job);
            }
        }
    }
}

#[pymethods]
impl Puller {
    /// Waits for the next Job, up to `timeout` seconds, without a limit by default. It comes after the previous one was
    /// acknowledged or has failed. A job that cannot be decoded fails and is skipped. Raises WaitTimeoutError; ClosedError.
    #[pyo3(signature = (*, timeout = None))]
    fn recv(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Job> {
        self.wait(py, WaitLimit::new(py, timeout)?.in_slices(UNINTERRUPTED_CHECK_INTERVAL))
    }

    /// Name of the queue, with its leading slash.
    #[getter]
    fn name(&self) -> &str {
        &self.core.name
    }

    /// Counters, as ServiceStats: `calls` are jobs, `refused` are jobs that arrived while it was closing.
    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        stats(py, &self.core.resource.query(py, |puller| puller.stats())?)
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.core.resource.is_closed()
    }

    /// Closes the worker: its current job goes to another worker.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.core.close());
    }

    fn __anext__(slf: Py<Self>) -> Next {
        Next::new(slf.get().core.ready.clone(), move |py| slf.get().try_take(py))
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Puller of {}, by node {}>", self.core.name, self.node.name)
    }
}

/// A job. Its worker keeps it until it calls `ack` (done) or `fail` (failed).
///
/// `with job as message:` acknowledges the job at the end of the block; an exception fails it. A job that is
/// deleted without either has failed, and its pusher is notified.
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Job {
    /// The pushed message: an object of the type of the queue, or bytes if the queue has no type.
    #[pyo3(get)]
    message: Py<PyAny>,
    context: rnet::JobContext,
    resource: Resource<Option<rnet::Job<[u8]>>>,
    name: String,
    _node: Arc<NodeCore>,
}

impl Job {
    fn end_with(&self, py: Python<'_>, end: impl FnOnce(rnet::Job<[u8]>) + Send) -> PyResult<()> {
        py.detach(|| self.resource.close_and_take().map(end)).or_raise(py)
    }
}

#[pymethods]
impl Job {
    /// Whether another worker had the job and was lost, or did not acknowledge it in time: the job may be
    /// done already.
    #[getter]
    fn redelivered(&self) -> bool {
        self.context.redelivered()
    }

    /// Name of the node that pushed the job.
    #[getter]
    fn pusher(&self) -> &str {
        self.context.pusher()
    }

    /// Whether the pusher no longer waits for the acknowledgement: it is gone, its waiting time is over, or
    /// the worker is closing.
    #[getter]
    fn cancelled(&self, py: Python<'_>) -> bool {
        self.resource.is_from_parent() || py.detach(|| self.context.is_cancelled())
    }

    /// Whether the job was acknowledged or has failed.
    #[getter]
    fn done(&self) -> bool {
        self.resource.is_closed()
    }

    /// Acknowledges the job as done. Raises ClosedError if it was already acknowledged or failed.
    fn ack(&self, py: Python<'_>) -> PyResult<()> {
        self.end_with(py, rnet::Job::ack)
    }

    /// Fails the job: reports the reason, an exception or a str, to the pusher; the job does not go to
    /// another worker. Raises ClosedError if it was already acknowledged or failed.
    fn fail(&self, py: Python<'_>, why: &Bound<'_, PyAny>) -> PyResult<()> {
        let why = match why.cast::<PyString>() {
            Ok(text) => HandlerError::new("failed", text.to_str()?),
            Err(_) => failure(py, &PyErr::from_value(why.clone())),
        };
        self.end_with(py, |job| job.fail(why))
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
        // The block may already have acknowledged or failed the job.
        match error {
            _ if self.done() => Ok(()),
            None => self.ack(py),
            Some(error) => self.fail(py, error),
        }
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Job of {}, from {}>", self.name, self.context.pusher())
    }
}
