//! `rnet.Subscriber`.

use std::os::fd::RawFd;
use std::sync::Arc;

use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rnet::{Behind, LossCounts};

use crate::callback::Callback;
use crate::codec::{Codec, Copied};
use crate::errors::{OrRaise, is_of_class};
use crate::events::{self, MessageCallback};
use crate::gate;
use crate::meta::make;
use crate::receive::{Glance, RawSample, SubscriberCore, Which, in_any_mode};
use crate::shared::NodeShared;
use crate::tasks::{Delivery, Next};
use crate::wait::WaitLimit;
use crate::waiters;
use crate::waitset::WaitSet;
use crate::{batch, sample};

/// Receives the messages of one topic. Made by `Node.subscribe`.
///
/// `for message in subscriber` receives for ever, and so does `async for`; what happens to single
/// publishers, and malformed messages, are counted in `stats` and skipped. While the only
/// publishers are incompatible, a loop warns once (NotHeard). Messages are Sample
/// objects, or objects of the topic's type if the subscriber was made with one; the methods whose
/// names have `sample` in them give samples, with their time stamps, in both cases.
///
/// Any thread may use it; each message goes to one of those that wait.
///
/// >>> speech, hearing = node.publisher("/speech"), node.subscribe("/speech", bytes)
/// >>> speech.wait_for_subscribers()
/// >>> speech.send(b"hello")
/// >>> hearing.recv(timeout=10)   # the next message, or Timeout
/// b'hello'
/// >>> hearing.try_recv()         # None where there is none
/// >>> hearing.lost["overrun"]
/// 0
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Subscriber {
    core: Arc<SubscriberCore>,
    decoder: Arc<Codec>,
    node: Arc<NodeShared>,
}

fn loss_dict<'py>(py: Python<'py>, lost: &LossCounts) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (cause, count) in lost.parts() {
        dict.set_item(cause, count)?;
    }
    Ok(dict)
}

fn behind_tuple(py: Python<'_>, behind: &Behind) -> PyResult<Py<PyAny>> {
    make(py, "Behind", (behind.messages, behind.age_ns as f64 * 1e-9))
}

impl Subscriber {
    pub(crate) fn new(
        core: Arc<SubscriberCore>,
        decoder: Arc<Codec>,
        node: Arc<NodeShared>,
    ) -> Self {
        Subscriber { core, decoder, node }
    }

    /// Hands the messages to a callback, from now on and until the node or this is closed.
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
            this.core.call(move |result| run.run(result))?;
            this.node.members.keep(&this.core);
            Ok(())
        };
        py.detach(start).or_raise(py)
    }

    /// What the user gets for a message: its sample, or an object of the topic's type.
    fn give<'py>(
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

    /// What the user gets for a message that is there, if that can be said at once.
    fn glance<'py>(
        &self,
        py: Python<'py>,
        as_sample: bool,
    ) -> rnet::Result<Glance<PyResult<Bound<'py, PyAny>>>> {
        // Python code does not run with the lock held.
        if self.decoder.copies() && !as_sample {
            let copied = self.core.glance(
                |sample| Copied::new(py, &sample, sample.publisher(), sample.seq()),
                |sample| Copied::new(py, &sample, sample.publisher(), sample.seq()),
            )?;
            return Ok(copied.map(|copied| self.decoder.value_of_copy(copied)));
        }
        let owned = self.core.glance(|sample| sample.to_owned_sample(), |owned| owned)?;
        Ok(owned.map(|received| self.give(py, received, as_sample)))
    }

    fn next<'py>(
        &self,
        py: Python<'py>,
        wait_limit: &WaitLimit,
        as_sample: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Glance::Found(given) = self.glance(py, as_sample).or_raise(py)? {
            return given;
        }
        let received = self.core.take(py, Which::Next, wait_limit)?;
        self.give(py, received, as_sample)
    }

    /// Waits for a message.
    fn take<'py>(
        &self,
        py: Python<'py>,
        which: Which,
        timeout: Option<f64>,
        as_sample: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let wait_limit = WaitLimit::new(py, timeout)?;
        match which {
            Which::Next => self.next(py, &wait_limit, as_sample),
            Which::Newest => self.give(py, self.core.take(py, which, &wait_limit)?, as_sample),
        }
    }

    pub(crate) fn core(&self) -> &Arc<SubscriberCore> {
        &self.core
    }

    pub(crate) fn node(&self) -> &Arc<NodeShared> {
        &self.node
    }

    /// The next message if it is there.
    fn look<'py>(&self, py: Python<'py>, as_sample: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
        let given = match self.glance(py, as_sample).or_raise(py)? {
            Glance::Found(given) => given.map(Some),
            Glance::Nothing => Ok(None),
            Glance::Unclear => {
                let received = py.detach(|| self.core.look()).or_raise(py)?;
                received.map(|received| self.give(py, received, as_sample)).transpose()
            }
        };
        if matches!(given, Ok(None)) && self.core.waiters.is_raised() {
            py.detach(|| waiters::drained(&self.core));
        }
        given
    }

    /// What a task awaits. With `iterates`, what happens to single publishers is not for it, and closing is the end.
    fn awaited(slf: Py<Self>, as_sample: bool, iterates: bool) -> Next {
        Next::new(slf.get().core.clone(), move |py| {
            let subscriber = slf.get();
            loop {
                match subscriber.look(py, as_sample) {
                    Ok(found) => return Ok(found.map(Bound::unbind)),
                    Err(error) if !iterates => return Err(error),
                    Err(error) => {
                        if !Subscriber::goes_on(slf.bind(py), error)? {
                            return Err(PyStopAsyncIteration::new_err("the subscriber is closed"));
                        }
                    }
                }
            }
        })
    }

    /// Whether an iteration goes on after an error; not if the subscriber is closed.
    fn goes_on(slf: &Bound<'_, Self>, error: PyErr) -> PyResult<bool> {
        let py = slf.py();
        if slf.get().core.is_closed() && is_of_class(py, &error, "Closed") {
            return Ok(false);
        }
        py.import("rnet.merge")?.getattr("pass_over")?.call1(((slf,), error))?;
        Ok(true)
    }

    /// The next message, whatever happens to single publishers: that is counted. `None` once
    /// the subscriber is closed.
    fn iterate<'py>(
        slf: &Bound<'py, Self>,
        as_sample: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            match slf.get().next(slf.py(), &WaitLimit::endless(), as_sample) {
                Ok(given) => return Ok(Some(given)),
                Err(error) => {
                    if !Subscriber::goes_on(slf, error)? {
                        return Ok(None);
                    }
                }
            }
        }
    }
}

#[pymethods]
impl Subscriber {
    /// The next message; waits for it, `timeout` seconds or for as long as it takes.
    ///
    /// Raises Timeout; and, once each, what happened to a single publisher while the others go on:
    /// PeerLost, Detached, IncompatibleType, IncompatibleQos, Corrupt, TooManyPins. And Malformed,
    /// for bytes that are no message of the topic's type: they are skipped.
    #[pyo3(signature = (timeout = None))]
    fn recv<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        self.take(py, Which::Next, timeout, false)
    }

    /// As `recv`, as a Sample.
    #[pyo3(signature = (timeout = None))]
    fn recv_sample<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.take(py, Which::Next, timeout, true)
    }

    /// The next message if it is there, else None.
    fn try_recv<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.look(py, false)
    }

    /// As `try_recv`, as a Sample.
    fn try_recv_sample<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.look(py, true)
    }

    /// The newest message that was not received yet; older ones are skipped and counted as
    /// such. Waits for one if there is none.
    #[pyo3(signature = (timeout = None))]
    fn latest<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        self.take(py, Which::Newest, timeout, false)
    }

    /// As `latest`, as a Sample.
    #[pyo3(signature = (timeout = None))]
    fn latest_sample<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.take(py, Which::Newest, timeout, true)
    }

    /// Up to `max` messages as one numpy array, one after the other: waits for the first, and
    /// takes of the others what is there. The array is the caller's own.
    ///
    /// On a topic with a type the array has the type's dtype (a ctypes structure has one, too). On
    /// one of raw bytes `dtype` says how to read the messages, each of which must be as long as
    /// it; one that is not ends the array before it, and is refused with BadValue until `recv`
    /// takes it. `max` is as many as 64 KiB hold, one at least, if it is not given.
    ///
    /// `out`, an array of that dtype, is filled from its beginning and nothing is allocated; the
    /// result is the part of it that was filled. No other thread may resize it meanwhile: numpy
    /// lets `out.resize(n, refcheck=False)` free memory that is being written to. With
    /// `stamps=True` there are two arrays: the messages, and when they were sent (int64, ns of
    /// CLOCK_MONOTONIC, the clock of time.monotonic_ns()).
    ///
    /// Raises what `recv` does, but never with messages in hand: an error behind messages is
    /// raised by the next call. MissingNumpy if numpy is not installed; TypeError for types
    /// without a dtype. What a signal handler raises (KeyboardInterrupt) while the call returns
    /// takes the place of its result, as with every call: the messages of this call, `max` at
    /// most, are then lost to the program, and not counted in `lost`.
    #[pyo3(signature = (max = None, timeout = None, *, out = None, dtype = None, stamps = false))]
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

    /// The next message, to be awaited in asyncio.
    ///
    /// A coroutine: it takes the message at the moment at which it returns it. If it is cancelled, by
    /// a time-out for one, it has taken none, and the message is the next one for whoever receives.
    /// Threads may receive at the same time.
    fn recv_async(slf: Py<Self>) -> Next {
        Subscriber::awaited(slf, false, false)
    }

    /// As `recv_async`, as a Sample.
    fn recv_sample_async(slf: Py<Self>) -> Next {
        Subscriber::awaited(slf, true, false)
    }

    /// Has its messages go to an async callback from now on.
    fn _begin_delivery(&self, py: Python<'_>) -> PyResult<Delivery> {
        let (core, decoder) = (self.core.clone(), self.decoder.clone());
        let next = move || {
            let (core, decoder) = (core.clone(), decoder.clone());
            Next::new(core.clone(), move |py| {
                let received = py.detach(|| core.look_to_deliver()).or_raise(py)?;
                if received.is_none() && core.waiters.is_raised() {
                    py.detach(|| waiters::drained(&core));
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

    /// A descriptor that is readable when there may be a message, or an error: for loops that wait for
    /// descriptors, as selectors, `loop.add_reader(subscriber, ...)` of asyncio, or Qt.
    ///
    /// It stays readable until `try_recv` has returned None: receive until then; what comes later makes it
    /// readable again. It may be readable with nothing there. When the subscriber or its node is closed it
    /// becomes readable and stays so, and `try_recv` raises Closed. An eventfd: read or write nothing of it.
    /// It is closed with the Subscriber object, which must live for as long as a loop waits for it.
    fn fileno(&self, py: Python<'_>) -> PyResult<RawFd> {
        py.detach(|| self.core.fileno()).or_raise(py)
    }

    /// Calls `callback` with each message from now on, on the node's thread for the topic's lane,
    /// until this or the node is closed.
    ///
    /// The callbacks of one lane share a thread. What a callback raises goes to
    /// sys.unraisablehook, and the next message to the callback. `on_error` is called with errors;
    /// without it, PeerLost and Detached are only counted and others go to sys.unraisablehook. That
    /// no thread can be started for the callbacks is such an error, too; it is tried again once a
    /// second.
    ///
    /// A callback that is an `async def` is run by the event loop of the caller, one message after the other, as in
    /// `async for`.
    #[pyo3(signature = (callback, /, *, on_error = None))]
    fn on(slf: &Bound<'_, Self>, callback: Callback, on_error: Option<Callback>) -> PyResult<()> {
        Subscriber::start_callback(slf, callback, on_error)
    }

    /// Waits until at least `n` publishers serve this subscriber: whatever they send from then on
    /// is received or counted.
    #[pyo3(signature = (n = 1, timeout = None))]
    fn wait_for_publishers(&self, py: Python<'_>, n: usize, timeout: Option<f64>) -> PyResult<()> {
        let wait = |slice| self.core.wait_for_publishers(n, slice);
        WaitLimit::new(py, timeout)?.run(py, wait)
    }

    /// Calls `callback` with a MatchEvent when a publisher joins, leaves, dies or does not fit.
    #[pyo3(signature = (callback, /))]
    fn on_match(&self, py: Python<'_>, callback: Callback) -> PyResult<()> {
        let hook = events::hook(callback.for_threads(py, None)?, events::matched);
        py.detach(|| in_any_mode!(self.core, inner => inner.on_match(hook))).or_raise(py)
    }

    /// Calls `callback` with a DeadlineMissed when a publisher has sent nothing for a period of the deadline.
    #[pyo3(signature = (callback, /))]
    fn on_deadline(&self, py: Python<'_>, callback: Callback) -> PyResult<()> {
        let hook = events::hook(callback.for_threads(py, None)?, events::deadline_missed);
        py.detach(|| in_any_mode!(self.core, inner => inner.on_deadline(hook))).or_raise(py)
    }

    /// Calls `callback` with a LivelinessChange when a publisher has become alive, or is so no more.
    #[pyo3(signature = (callback, /))]
    fn on_liveliness(&self, py: Python<'_>, callback: Callback) -> PyResult<()> {
        let hook = events::hook(callback.for_threads(py, None)?, events::liveliness_change);
        py.detach(|| in_any_mode!(self.core, inner => inner.on_liveliness(hook))).or_raise(py)
    }

    /// How many of the matched publishers are alive at this moment: a Liveliness.
    #[getter]
    fn liveliness(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let counts = py.detach(|| in_any_mode!(self.core, inner => inner.liveliness()));
        events::liveliness(py, counts.or_raise(py)?)
    }

    /// A wait set of its node.
    fn _wait_set(&self, py: Python<'_>) -> PyResult<WaitSet> {
        WaitSet::of(py, &self.node)
    }

    /// How many publishers serve this subscriber now.
    #[getter]
    fn publisher_count(&self, py: Python<'_>) -> PyResult<usize> {
        py.detach(|| in_any_mode!(self.core, inner => inner.publisher_count())).or_raise(py)
    }

    /// Messages lost so far, by cause: overrun, link, restart, detached.
    #[getter]
    fn lost<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        loss_dict(py, &py.detach(|| self.core.lost()).or_raise(py)?)
    }

    /// How far it is behind its publishers, all of them together: a Behind.
    #[getter]
    fn behind(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        behind_tuple(py, &py.detach(|| self.core.behind()).or_raise(py)?)
    }

    /// What was received, skipped and lost, and what was not taken yet, by publisher; those that are
    /// gone included. A list of PublisherStats.
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

    /// The topic.
    #[getter]
    fn topic(&self) -> &str {
        self.core.topic()
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.core.is_closed()
    }

    /// Leaves the topic. Whoever waits for a message gets Closed, and loops end. Samples stay.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        gate::close(py, self.node.closing(&self.core))
    }

    fn __next__<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Subscriber::iterate(slf, false)
    }

    fn __anext__(slf: Py<Self>) -> Next {
        Subscriber::awaited(slf, false, true)
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Subscriber of {}>", self.core.topic())
    }
}

/// Iterates over a subscriber's messages as Sample objects. Made by `Subscriber.samples`.
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
        Subscriber::awaited(self.subscriber.clone_ref(py), true, true)
    }
}
