//! `rnet.Pusher`: the sending end of a work queue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use rnet::{Error, PushBuilder, Undelivered};

use super::{count, decoded, with_encoded};
use crate::callback::{call, report};
use crate::codec::Codec;
use crate::errors::{OrRaise, raise};
use crate::interpreter;
use crate::members::{Member, MemberKind};
use crate::meta::make;
use crate::node_core::NodeCore;
use crate::qos::OptionalSetters;
use crate::resource::{Resource, WaitCondition};
use crate::tasks::Next;
use crate::wait::{UNINTERRUPTED_CHECK_INTERVAL, WaitLimit, answer_limit, seconds};

type Inner = rnet::Pusher<[u8]>;

/// State shared by the Python object, its node and its waiters.
pub(crate) struct PusherCore {
    name: String,
    resource: Arc<Resource<Arc<Inner>>>,
    capacity: Arc<WaitCondition<Inner>>,
    done: Arc<WaitCondition<Inner>>,
}

impl Member for PusherCore {
    fn close(&self) {
        if !self.resource.is_from_parent() {
            self.resource.close();
            self.capacity.wait_queue.wake_all();
            self.done.wait_queue.wake_all();
        }
    }
}

/// Passes an unacknowledged job to the user's function.
fn return_undelivered(function: &Py<PyAny>, codec: &Codec, back: &Undelivered<[u8]>) {
    // `None` if the program is exiting.
    let _ = interpreter::attach(|py| {
        let give = || {
            let job = decoded(py, codec, &back.job, "a returned job")?;
            let error = raise(py, &back.error).into_value(py);
            call(function.bind(py), (make(py, "Undelivered", (job, error))?,))
        };
        if let Err(error) = give() {
            report(py, error, function);
        }
    });
}

/// The options of a pusher.
pub(crate) struct PushSettings {
    pub(crate) backlog: i64,
    pub(crate) timeout: f64,
    pub(crate) ack_within: Option<f64>,
    pub(crate) on_undelivered: Option<Py<PyAny>>,
}

/// The sending end of a work queue: each job goes to one free worker. Created by `Node.push`.
///
/// `close`, the end of a `with` block, or closing the node returns unfinished jobs as undelivered.
///
/// >>> jobs, worker = node.push("/jobs"), node.pull("/jobs")
/// >>> jobs.push(b"sweep the hall")
/// >>> with worker.recv(timeout=10) as job:
/// ...     job
/// b'sweep the hall'
/// >>> jobs.wait_until_done(timeout=10)
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Pusher {
    core: Arc<PusherCore>,
    codec: Codec,
    /// Default time limit of its pushes.
    timeout: Duration,
    node: Arc<NodeCore>,
}

impl Pusher {
    pub(crate) fn open(
        py: Python<'_>,
        node: &Arc<NodeCore>,
        (name, ty): (&str, Option<&Bound<'_, PyAny>>),
        settings: PushSettings,
    ) -> PyResult<Pusher> {
        let PushSettings { backlog, timeout, ack_within, on_undelivered } = settings;
        let backlog = count(py, "backlog", backlog)?;
        let (codec, back) = (Codec::new(py, ty)?, Codec::new(py, ty)?);
        let timeout = answer_limit(py, Some(timeout), Duration::ZERO)?;
        let ack = ack_within.map(|given| seconds(py, "ack_within", given)).transpose()?;
        let message_type = codec.message_type.clone();
        let open = || {
            let builder = node.node()?.push::<[u8]>(name).backlog(backlog);
            let builder = builder.message_type(message_type).set_opt(ack, PushBuilder::ack_within);
            let builder = builder.set_opt(on_undelivered, |builder, function| {
                builder.on_undelivered(move |job| return_undelivered(&function, &back, &job))
            });
            let pusher = builder.open()?;
            let name = pusher.name().to_owned();
            let resource = Resource::new(format!("the pusher of {name}"), Arc::new(pusher));
            let resource = Arc::new(resource);
            let capacity = WaitCondition::new(&resource, Inner::poll_capacity);
            let done = WaitCondition::new(&resource, Inner::poll_done);
            let core = Arc::new(PusherCore { name, resource, capacity, done });
            node.members.add(MemberKind::Client, &core);
            Ok(core)
        };
        let core = py.detach(open).or_raise(py)?;
        Ok(Pusher { core, codec, timeout, node: node.clone() })
    }
}

impl Pusher {
    /// The coroutine that a task awaits.
    fn coroutine(slf: Py<Self>, condition: fn(&PusherCore) -> &Arc<WaitCondition<Inner>>) -> Next {
        Next::new(condition(&slf.get().core).clone(), move |py| {
            let ready = py.detach(|| condition(&slf.get().core).is_ready()).or_raise(py)?;
            Ok(ready.then(|| py.None()))
        })
    }
}

#[pymethods]
impl Pusher {
    /// Adds a job to the queue. It goes to the next free worker; if that worker is lost before it
    /// acknowledges, the job goes once more to another one.
    ///
    /// Raises LimitReachedError if the backlog is still full after `timeout` seconds, by default those of the
    /// pusher; the job was not accepted. BadValueError if the job does not have the type of the queue; ClosedError.
    #[pyo3(signature = (job, *, timeout = None))]
    fn push(&self, py: Python<'_>, job: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<()> {
        let place = format!("the jobs of {}", self.core.name);
        let limit = answer_limit(py, timeout, self.timeout)?;
        let until = Instant::now().checked_add(limit);
        with_encoded(&self.codec, job, &place, |bytes| {
            loop {
                let left = until.map_or(UNINTERRUPTED_CHECK_INTERVAL, |until| {
                    until.saturating_duration_since(Instant::now())
                });
                let slice = left.min(UNINTERRUPTED_CHECK_INTERVAL);
                match py.detach(|| self.core.resource.get()?.push_timeout(bytes, slice)) {
                    Err(Error::LimitReached { .. }) if !left.is_zero() => py.check_signals()?,
                    pushed => return pushed.or_raise(py),
                }
            }
        })?
    }

    /// Awaitable: returns when the backlog has room for a push. Another task may take the room first.
    fn wait_for_capacity(slf: Py<Self>) -> Next {
        Pusher::coroutine(slf, |core| &core.capacity)
    }

    /// Awaitable: returns when every job has been acknowledged or returned as undelivered.
    fn join(slf: Py<Self>) -> Next {
        Pusher::coroutine(slf, |core| &core.done)
    }

    /// Waits until every job has been acknowledged or returned as undelivered. `timeout` is in seconds, without it there is
    /// no limit. Raises WaitTimeoutError; ClosedError.
    #[pyo3(signature = (*, timeout = None))]
    fn wait_until_done(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let limit = WaitLimit::new(py, timeout)?.in_slices(UNINTERRUPTED_CHECK_INTERVAL);
        let wait = |slice| self.core.resource.get()?.wait_until_done_timeout(slice);
        limit.run(py, wait)
    }

    /// Name of the queue, with its leading slash.
    #[getter]
    fn name(&self) -> &str {
        &self.core.name
    }

    /// Number of workers now, free or busy.
    #[getter]
    fn worker_count(&self, py: Python<'_>) -> PyResult<usize> {
        py.detach(|| Ok(self.core.resource.get()?.worker_count())).or_raise(py)
    }

    /// Counters of jobs, as PushStats.
    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let s = py.detach(|| Ok(self.core.resource.get()?.stats())).or_raise(py)?;
        make(py, "PushStats", (s.pushed, s.done, s.redelivered, s.undelivered, s.open))
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.core.resource.is_closed()
    }

    /// Closes the pusher; unfinished jobs are returned as undelivered, with ClosedError.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let core = self.core.clone();
        interpreter::close(py, move || core.close())
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Pusher of {}, by node {}>", self.core.name, self.node.name)
    }
}
