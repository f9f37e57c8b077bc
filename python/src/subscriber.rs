//! `rnet.Subscriber`.

use std::os::fd::RawFd;
use std::sync::Arc;

use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rnet::{Backlog, LossCounts};

use crate::callback::Callback;
use crate::codec::{Codec, CopiedMessage};
use crate::errors::{OrRaise, is_of_class};
use crate::events::{self, MessageCallback};
use crate::handle::CallbackHandle;
use crate::interpreter;
use crate::meta::make;
use crate::node_core::NodeCore;
use crate::receive::{FastRecv, RawSample, SubscriberCore, WhichMessage, in_any_mode};
use crate::tasks::{Delivery, Next};
use crate::wait::WaitLimit;
use crate::wait_queue;
use crate::{batch, sample};

/// Receives the messages of one topic. Created by `Node.subscriber`.
///
/// `for message in subscriber` receives until the subscriber is closed, and so does `async for`; events of
/// single publishers, and malformed messages, are counted in `stats` and skipped. While all publishers are
/// incompatible, a loop warns once (IncompatiblePublishersWarning). Messages are Sample objects, or objects of the topic's type if
/// the subscriber was created with a type; methods with `sample` in their names return samples, with their
/// timestamps, in both cases.
///
/// Any thread may use it; each message goes to one of the waiting threads.
///
/// >>> speech, hearing = node.publisher("/speech"), node.subscriber("/speech", bytes)
/// >>> speech.wait_for_subscribers()
/// >>> speech.send(b"hello")
/// >>> hearing.recv(timeout=10)   # the next message, or WaitTimeoutError
/// b'hello'
/// >>> hearing.try_recv()         # None where there is none
/// >>> hearing.lost["overrun"]
/// 0
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Subscriber {
    core: Arc<SubscriberCore>,
    decoder: Arc<Codec>,
    pub(crate) node: Arc<NodeCore>,
}

fn loss_dict<'py>(py: Python<'py>, lost: &LossCounts) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (cause, count) in lost.parts() {
        dict.set_item(cause, count)?;
    }
    Ok(dict)
}

fn behind_tuple(py: Python<'_>, behind: &Backlog) -> PyResult<Py<PyAny>> {
    make(py, "Backlog", (behind.messages, behind.age_ns as f64 * 1e-9))
}

impl Subscriber {
    pub(crate) fn new(core: Arc<SubscriberCore>, decoder: Arc<Codec>, node: Arc<NodeCore>) -> Self {
        Subscriber { core, decoder, node }
    }

    /// Passes the messages to a callback, from now on and until the node or this is closed.
    pub(crate) fn start_callback(
        slf: &Bound<'_, Self>,
        callback: Callback,
        on_error: Option<Callback>,
    ) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        if callback.is_async(py)? {
            return callback.deliver(slf.as_any(), on_error, &this.node);
        }
        let on_error = Callback::optional(py, on_error, None)?;
        let run = Arc::new(MessageCallback {
            callback: callback.into_inner(),
            on_error,
            decoder: this.decoder.clone(),
            closed: this.core.closed.clone(),
        });
        let start = || {
            this.core.start_callback(move |result| run.run(result))?;
            this.node.members.retain(&this.core);
            Ok(())
        };
        py.detach(start).or_raise(py)
    }

    /// The object that the user gets for a message: its sample, or an object of the topic's type.
    fn to_object<'py>(
        &self,
        py: Python<'py>,
        received: RawSample,
        as_sample: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        if as_sample {
            sample::new(py, received, self.decoder.clone())
        } else {
            self.decoder.value(py, received)
        }
    }

    /// The object that the user gets for the next message, if it can be had at once.
    fn recv_fast<'py>(
        &self,
        py: Python<'py>,
        as_sample: bool,
    ) -> rnet::Result<FastRecv<PyResult<Bound<'py, PyAny>>>> {
        // Python code does not run with the lock held.
        if self.decoder.copies() && !as_sample {
            let copied = self.core.recv_fast(
                |sample| CopiedMessage::new(py, &sample, sample.publisher(), sample.seq()),
                |sample| CopiedMessage::new(py, &sample, sample.publisher(), sample.seq()),
            )?;
            return Ok(copied.map(|copied| self.decoder.value_of_copy(copied)));
        }
        let owned = self.core.recv_fast(|sample| sample.into_owned(), |owned| owned)?;
        Ok(owned.map(|received| self.to_object(py, received, as_sample)))
    }

    fn next<'py>(
        &self,
        py: Python<'py>,
        wait_limit: &WaitLimit,
        as_sample: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let FastRecv::Found(given) = self.recv_fast(py, as_sample).or_raise(py)? {
            return given;
        }
        let received = self.core.take(py, WhichMessage::Next, wait_limit)?;
        self.to_object(py, received, as_sample)
    }

    /// Waits for a message.
    fn take<'py>(
        &self,
        py: Python<'py>,
        which: WhichMessage,
        timeout: Option<f64>,
        as_sample: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let wait_limit = WaitLimit::new(py, timeout)?;
        match which {
            WhichMessage::Next => self.next(py, &wait_limit, as_sample),
            WhichMessage::Newest => {
                self.to_object(py, self.core.take(py, which, &wait_limit)?, as_sample)
            }
        }
    }

    pub(crate) fn core(&self) -> &Arc<SubscriberCore> {
        &self.core
    }

    pub(crate) fn node(&self) -> &Arc<NodeCore> {
        &self.node
    }

    /// The next message, if one is available.
    fn try_next<'py>(
        &self,
        py: Python<'py>,
        as_sample: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let given = match self.recv_fast(py, as_sample).or_raise(py)? {
            FastRecv::Found(given) => given.map(Some),
            FastRecv::Empty => Ok(None),
            FastRecv::NeedsSlowPath => {
                let received = py.detach(|| self.core.try_next()).or_raise(py)?;
                received.map(|received| self.to_object(py, received, as_sample)).transpose()
            }
        };
        if matches!(given, Ok(None)) && self.core.wait_queue.is_raised() {
            py.detach(|| wait_queue::mark_drained(&self.core));
        }
        given
    }

    /// The coroutine that a task awaits. With `iterates`, it skips errors of single publishers, and closing
    /// ends the iteration.
    fn coroutine(slf: Py<Self>, as_sample: bool, iterates: bool) -> Next {
        Next::new(slf.get().core.clone(), move |py| {
            let subscriber = slf.get();
            loop {
                match subscriber.try_next(py, as_sample) {
                    Ok(found) => return Ok(found.map(Bound::unbind)),
                    Err(error) if !iterates => return Err(error),
                    Err(error) => {
                        if !Subscriber::skips_error(slf.bind(py), error)? {
                            return Err(PyStopAsyncIteration::new_err("the subscriber is closed"));
                        }
                    }
                }
            }
        })
    }

    /// Whether an iteration continues after an error; it does not if the subscriber is closed.
    fn skips_error(slf: &Bound<'_, Self>, error: PyErr) -> PyResult<bool> {
        let py = slf.py();
        if slf.get().core.is_closed() && is_of_class(py, &error, "ClosedError") {
            return Ok(false);
        }
        py.import("rnet.merge")?.getattr("skip_error")?.call1(((slf,), error))?;
        Ok(true)
    }

    /// The next message. Errors of single publishers are only counted. `None` once the subscriber is closed.
    fn iterate<'py>(
        slf: &Bound<'py, Self>,
        as_sample: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            match slf.get().next(slf.py(), &WaitLimit::unlimited(), as_sample) {
                Ok(given) => return Ok(Some(given)),
                Err(error) => {
                    if !Subscriber::skips_error(slf, error)? {
                        return Ok(None);
                    }
                }
            }
        }
    }
}

#[pymethods]
impl Subscriber {
    /// Waits for the next message, up to `timeout` seconds, without a limit by default.
    ///
    /// Raises WaitTimeoutError; once each, errors of a single publisher while the others continue: PeerLostError, DetachedError,
    /// IncompatibleTypeError, IncompatibleQosError, CorruptError, TooManyPinsError; and MalformedError for a message that cannot be
    /// decoded, which is skipped.
    #[pyo3(signature = (*, timeout = None))]
    fn recv<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        self.take(py, WhichMessage::Next, timeout, false)
    }

    /// As `recv`, but returns a Sample.
    #[pyo3(signature = (*, timeout = None))]
    fn recv_sample<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.take(py, WhichMessage::Next, timeout, true)
    }

    /// The next message if one is available, else None.
    fn try_recv<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.try_next(py, false)
    }

    /// As `try_recv`, but returns a Sample.
    fn try_recv_sample<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.try_next(py, true)
    }

    /// The newest unread message; older ones are skipped and counted as skipped. Waits for one if there are
    /// none.
    #[pyo3(signature = (*, timeout = None))]
    fn latest<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        self.take(py, WhichMessage::Newest, timeout, false)
    }

    /// As `latest`, but returns a Sample.
    #[pyo3(signature = (*, timeout = None))]
    fn latest_sample<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.take(py, WhichMessage::Newest, timeout, true)
    }

    /// Up to `max` messages as one numpy array: waits for the first, and takes further ones that are
    /// available. The array belongs to the caller.
    ///
    /// On a topic with a type the array has the type's dtype (also for a ctypes structure). On a raw topic
    /// `dtype` sets how to read the messages, each of which must have its length; a message of another length
    /// ends the array before it, and raises BadValueError until `recv` takes it. The default of `max` is the
    /// number of messages that fit into 64 KiB, at least one.
    ///
    /// `out`, an array of that dtype, is filled from its beginning without allocation; the result is the part
    /// that was filled. No other thread may resize it meanwhile: numpy's `out.resize(n, refcheck=False)` can
    /// free memory that is being written to. With `stamps=True` two arrays are returned: the messages, and
    /// their send times (int64, ns of CLOCK_MONOTONIC, the clock of time.monotonic_ns()).
    ///
    /// Raises the errors of `recv`, but never after taking messages: an error after messages is raised by the
    /// next call. MissingNumpy if numpy is not installed; TypeError for types without a dtype. An exception
    /// of a signal handler (KeyboardInterrupt) while the call returns replaces its result, as with every
    /// call: the messages of this call, at most `max`, are then lost to the program, and not counted in
    /// `lost`.
    #[pyo3(signature = (max = None, *, timeout = None, out = None, dtype = None, stamps = false))]
    fn recv_many<'py>(
        &self,
        py: Python<'py>,
        max: Option<i64>,
        timeout: Option<f64>,
        out: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
        stamps: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let wait_limit = WaitLimit::new(py, timeout)?;
        let rows = self.decoder.rows(py, self.core.topic())?;
        batch::receive(&self.core, rows, &wait_limit, (max, out, dtype, stamps))
    }

    /// Iterates over the messages as Sample objects; for `for` and `async for`.
    fn samples(slf: Py<Self>) -> Samples {
        Samples { subscriber: slf }
    }

    /// The next message, as a coroutine for asyncio.
    ///
    /// It takes the message at the moment at which it returns it. If it is cancelled, such as by a timeout,
    /// it has not taken a message. Threads may receive at the same time.
    fn recv_async(slf: Py<Self>) -> Next {
        Subscriber::coroutine(slf, false, false)
    }

    /// As `recv_async`, but returns a Sample.
    fn recv_sample_async(slf: Py<Self>) -> Next {
        Subscriber::coroutine(slf, true, false)
    }

    /// Sends its messages to an async callback from now on.
    fn _begin_delivery(&self, py: Python<'_>) -> PyResult<Delivery> {
        let (core, decoder) = (self.core.clone(), self.decoder.clone());
        let next = move || {
            let (core, decoder) = (core.clone(), decoder.clone());
            Next::new(core.clone(), move |py| {
                let received = py.detach(|| core.try_next_for_delivery()).or_raise(py)?;
                if received.is_none() && core.wait_queue.is_raised() {
                    py.detach(|| wait_queue::mark_drained(&core));
                }
                let value = |received| decoder.value(py, received).map(Bound::unbind);
                received.map(value).transpose()
            })
        };
        let begin = || {
            self.core.begin_delivery()?;
            Ok(Delivery::new(&self.core, &self.node.members, next))
        };
        py.detach(begin).or_raise(py)
    }

    /// A file descriptor that is readable when there may be a message or an error: for event loops that wait
    /// for descriptors, such as selectors, `loop.add_reader(subscriber, ...)` of asyncio, or Qt.
    ///
    /// It stays readable until `try_recv` has returned None: receive until then; later messages make it
    /// readable again. It may be readable although nothing is available. When the subscriber or its node is
    /// closed it becomes readable and stays so, and `try_recv` raises ClosedError. It is an eventfd: do not read
    /// or write it. It is closed with the Subscriber object, which must exist as long as a loop waits for it.
    fn fileno(&self, py: Python<'_>) -> PyResult<RawFd> {
        py.detach(|| self.core.fileno()).or_raise(py)
    }

    /// Calls `callback` with each message from now on, on the node's thread for the lane of the topic, until
    /// the subscriber or the node is closed.
    ///
    /// The callbacks of one lane share a thread. Exceptions of a callback go to sys.unraisablehook, and the
    /// next message is delivered. `on_error` is called with errors; without it, PeerLostError and DetachedError are
    /// only counted, and others go to sys.unraisablehook. If the thread for callbacks cannot be started, that
    /// is such an error too; it is retried once a second.
    ///
    /// An `async def` callback runs on the event loop of the caller, one message after the other, as in
    /// `async for`.
    #[pyo3(signature = (callback, /, *, on_error = None))]
    fn on(slf: &Bound<'_, Self>, callback: Callback, on_error: Option<Callback>) -> PyResult<()> {
        Subscriber::start_callback(slf, callback, on_error)
    }

    /// Waits until at least `n` publishers are connected: messages that they send from then on are received
    /// or counted.
    #[pyo3(signature = (n = 1, *, timeout = None))]
    fn wait_for_publishers(&self, py: Python<'_>, n: usize, timeout: Option<f64>) -> PyResult<()> {
        let wait = |slice| self.core.wait_for_publishers(n, slice);
        WaitLimit::new(py, timeout)?.run(py, wait)
    }

    /// Calls `callback` with a MatchEvent when a publisher joins, leaves, dies or is incompatible.
    #[pyo3(signature = (callback, /))]
    fn on_match(&self, py: Python<'_>, callback: Callback) -> PyResult<CallbackHandle> {
        let add = |hook| {
            py.detach(|| in_any_mode!(self.core, inner => inner.on_match(hook))).or_raise(py)
        };
        CallbackHandle::for_events(py, callback, events::matched, add)
    }

    /// Calls `callback` with a DeadlineMissed when a publisher has sent nothing for a deadline period.
    #[pyo3(signature = (callback, /))]
    fn on_deadline(&self, py: Python<'_>, callback: Callback) -> PyResult<CallbackHandle> {
        let add = |hook| {
            py.detach(|| in_any_mode!(self.core, inner => inner.on_deadline(hook))).or_raise(py)
        };
        CallbackHandle::for_events(py, callback, events::deadline_missed, add)
    }

    /// Calls `callback` with a LivelinessChange when a publisher becomes alive, or is no longer alive.
    #[pyo3(signature = (callback, /))]
    fn on_liveliness(&self, py: Python<'_>, callback: Callback) -> PyResult<CallbackHandle> {
        let add = |hook| {
            py.detach(|| in_any_mode!(self.core, inner => inner.on_liveliness(hook))).or_raise(py)
        };
        CallbackHandle::for_events(py, callback, events::liveliness_change, add)
    }

    /// Number of matched publishers that are alive now: a Liveliness.
    #[getter]
    fn liveliness(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let counts = py.detach(|| in_any_mode!(self.core, inner => inner.liveliness()));
        events::liveliness(py, counts.or_raise(py)?)
    }

    /// Number of connected publishers now.
    #[getter]
    fn publisher_count(&self, py: Python<'_>) -> PyResult<usize> {
        py.detach(|| in_any_mode!(self.core, inner => inner.publisher_count())).or_raise(py)
    }

    /// Messages lost so far, by cause: overrun, link, restart, detached.
    #[getter]
    fn lost<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        loss_dict(py, &py.detach(|| self.core.lost()).or_raise(py)?)
    }

    /// Unread messages of all publishers, and the age of the oldest: a Backlog.
    #[getter]
    fn behind(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        behind_tuple(py, &py.detach(|| self.core.behind()).or_raise(py)?)
    }

    /// Received, skipped, lost and unread messages by publisher, including closed ones: a list of
    /// PublisherStats.
    fn stats(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let found = py.detach(|| self.core.stats()).or_raise(py)?;
        let convert = |s: rnet::PublisherStats| {
            let (lost, behind) = (loss_dict(py, &s.lost)?, behind_tuple(py, &s.behind)?);
            let rnet::PublisherStats { publisher, node, received, connected, malformed, .. } = s;
            let (skipped, expired, missed) = (s.skipped, s.expired, s.deadline_missed);
            let fields = (
                publisher, node, received, lost, connected, malformed, skipped, behind, expired,
                missed,
            );
            make(py, "PublisherStats", fields)
        };
        found.into_iter().map(convert).collect()
    }

    /// Topic of the subscriber.
    #[getter]
    fn topic(&self) -> &str {
        self.core.topic()
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.core.is_closed()
    }

    /// Leaves the topic. Waiting threads get ClosedError, and loops end. Samples stay valid.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        interpreter::close(py, self.node.closing(&self.core))
    }

    fn __next__<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Subscriber::iterate(slf, false)
    }

    fn __anext__(slf: Py<Self>) -> Next {
        Subscriber::coroutine(slf, false, true)
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Subscriber of {}>", self.core.topic())
    }
}

/// Iterates over the messages of a subscriber as Sample objects. Created by `Subscriber.samples`.
#[pyclass(frozen, module = "rnet")]
pub(crate) struct Samples {
    subscriber: Py<Subscriber>,
}

#[pymethods]
impl Samples {
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Subscriber::iterate(self.subscriber.bind(py), true)
    }

    fn __anext__(&self, py: Python<'_>) -> Next {
        Subscriber::coroutine(self.subscriber.clone_ref(py), true, true)
    }
}
