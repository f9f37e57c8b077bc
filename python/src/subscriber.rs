//! `rnet.Subscriber`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use rnet::LossCounts;

use crate::codec::Codec;
use crate::errors::OrRaise;
use crate::events::{self, MessageCallback};
use crate::node::NodeShared;
use crate::receive::{RawSample, SubscriberCore, Which};
use crate::wait::Patience;
use crate::{sample, tasks};

/// Receives the messages of one topic. Made by `Node.subscribe`.
///
/// `for message in subscriber` receives for ever, and so does `async for`. Messages are Sample
/// objects, or objects of the topic's type if the subscriber was made with one; the methods whose
/// names have `sample` in them give samples, with their time stamps, in both cases.
///
/// Any thread may use it; each message goes to one of those that wait.
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Subscriber {
    core: Arc<SubscriberCore>,
    codec: Codec,
    node: Arc<NodeShared>,
    /// Whether the callback, if there is one, may no longer be called.
    silent: Arc<AtomicBool>,
}

fn loss_dict<'py>(py: Python<'py>, lost: &LossCounts) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (cause, count) in lost.parts() {
        dict.set_item(cause, count)?;
    }
    Ok(dict)
}

impl Subscriber {
    pub(crate) fn new(core: Arc<SubscriberCore>, codec: Codec, node: Arc<NodeShared>) -> Self {
        Subscriber { core, codec, node, silent: Arc::default() }
    }

    /// Hands the messages to a callback, from now on and until the node or this is closed.
    pub(crate) fn start_callback(
        &self,
        py: Python<'_>,
        callback: Py<PyAny>,
        on_error: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let run = MessageCallback {
            callback,
            on_error,
            decode: self.codec.decode.as_ref().map(|decode| decode.clone_ref(py)),
            closed: self.silent.clone(),
        };
        py.detach(|| self.core.call(move |result| run.run(result))).or_raise(py)?;
        self.node.keep(self.core.clone());
        Ok(())
    }

    fn wrap<'py>(&self, py: Python<'py>, received: RawSample) -> PyResult<Bound<'py, PyAny>> {
        sample::new(py, received, self.codec.decode.as_ref())
    }

    fn value<'py>(&self, sample: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match &self.codec.decode {
            Some(decode) => decode.bind(sample.py()).call1((sample,)),
            None => Ok(sample),
        }
    }

    fn take<'py>(
        &self,
        py: Python<'py>,
        which: Which,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let patience = Patience::new(py, timeout)?;
        let received = self.core.take(py, which, &patience).map_err(|stop| stop.into_err(py))?;
        self.wrap(py, received)
    }

    pub(crate) fn core(&self) -> &Arc<SubscriberCore> {
        &self.core
    }

    pub(crate) fn node(&self) -> &Arc<NodeShared> {
        &self.node
    }

    /// What the user gets for a message.
    pub(crate) fn value_of<'py>(
        &self,
        py: Python<'py>,
        received: RawSample,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.value(self.wrap(py, received)?)
    }

    fn look<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let look =
            || self.core.with(|inner| Ok(inner.try_recv()?.map(|sample| sample.to_owned_sample())));
        py.detach(look).or_raise(py)?.map(|received| self.wrap(py, received)).transpose()
    }

    fn next_sample<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let received = self.core.take_any(py).map_err(|stop| stop.into_err(py))?;
        received.map(|received| self.wrap(py, received)).transpose()
    }

    fn task(&self, py: Python<'_>, value: bool, iterates: bool) -> PyResult<Py<PyAny>> {
        let decode = self.codec.decode.as_ref().map(|decode| decode.clone_ref(py));
        tasks::next_message(py, &self.core, decode, value, iterates)
    }
}

#[pymethods]
impl Subscriber {
    /// The next message; waits for it, `timeout` seconds or for as long as it takes.
    ///
    /// Raises Timeout; and, once each, what happened to a single publisher while the others go on:
    /// PeerLost, Detached, TypeMismatch, IncompatibleQos, Corrupt, TooManyPins.
    #[pyo3(signature = (timeout = None))]
    fn recv<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        self.value(self.take(py, Which::Next, timeout)?)
    }

    /// As `recv`, as a Sample.
    #[pyo3(signature = (timeout = None))]
    fn recv_sample<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.take(py, Which::Next, timeout)
    }

    /// The next message if it is there, else None.
    fn try_recv<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.look(py)?.map(|sample| self.value(sample)).transpose()
    }

    /// As `try_recv`, as a Sample.
    fn try_recv_sample<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.look(py)
    }

    /// The newest message that was not received yet; older ones are passed over and counted as
    /// skipped. Waits for one if there is none.
    #[pyo3(signature = (timeout = None))]
    fn latest<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        self.value(self.take(py, Which::Newest, timeout)?)
    }

    /// As `latest`, as a Sample.
    #[pyo3(signature = (timeout = None))]
    fn latest_sample<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.take(py, Which::Newest, timeout)
    }

    /// Iterates over the messages as Sample objects; for `for` and `async for`.
    fn samples(slf: Py<Self>) -> Samples {
        Samples { subscriber: slf }
    }

    /// The next message, to be awaited.
    fn recv_async(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.task(py, true, false)
    }

    /// As `recv_async`, as a Sample.
    fn recv_sample_async(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.task(py, false, false)
    }

    /// Calls `callback` with each message from now on, on the node's thread for the topic's lane,
    /// until this or the node is closed.
    ///
    /// The callbacks of one lane share a thread. What a callback raises goes to
    /// sys.unraisablehook, and the next message to the callback. `on_error` is called with errors;
    /// without it, PeerLost and Detached are only counted and others go to sys.unraisablehook.
    #[pyo3(signature = (callback, /, *, on_error = None))]
    fn on(&self, py: Python<'_>, callback: Py<PyAny>, on_error: Option<Py<PyAny>>) -> PyResult<()> {
        self.start_callback(py, callback, on_error)
    }

    /// Waits until at least `n` publishers serve this subscriber: whatever they send from then on
    /// is received or counted.
    #[pyo3(signature = (n = 1, timeout = None))]
    fn wait_for_publishers(&self, py: Python<'_>, n: usize, timeout: Option<f64>) -> PyResult<()> {
        let wait = |slice| self.core.with(|inner| inner.wait_for_publishers(n, Some(slice)));
        Patience::new(py, timeout)?.run(py, wait).map_err(|stop| stop.into_err(py))
    }

    /// Calls `callback` with a MatchEvent when a publisher joins, leaves, dies or does not fit.
    #[pyo3(signature = (callback, /))]
    fn on_match(&self, py: Python<'_>, callback: Py<PyAny>) -> PyResult<()> {
        let hook = events::on_match(callback);
        let add = || {
            self.core.with(move |inner| {
                inner.on_match(hook);
                Ok(())
            })
        };
        py.detach(add).or_raise(py)
    }

    /// How many publishers serve this subscriber now.
    #[getter]
    fn publisher_count(&self, py: Python<'_>) -> PyResult<usize> {
        py.detach(|| self.core.with(|inner| Ok(inner.publisher_count()))).or_raise(py)
    }

    /// Messages lost so far, by cause: overrun, link, restart, detached.
    #[getter]
    fn lost<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        loss_dict(py, &py.detach(|| self.core.lost()).or_raise(py)?)
    }

    /// What was received and lost, by publisher; those that are gone included. A list of
    /// PublisherStats.
    fn stats(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let class = py.import("rnet.events")?.getattr("PublisherStats")?;
        let found = py.detach(|| self.core.stats()).or_raise(py)?;
        let convert = |s: rnet::PublisherStats| {
            let lost = loss_dict(py, &s.lost)?;
            Ok(class.call1((s.publisher, s.node, s.received, lost, s.connected))?.unbind())
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
    fn close(&self, py: Python<'_>) {
        self.silent.store(true, Ordering::Release);
        py.detach(|| {
            self.core.close();
            self.node.forget(&self.core);
        });
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.next_sample(py)?.map(|sample| self.value(sample)).transpose()
    }

    fn __aiter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __anext__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.task(py, true, true)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Subscriber of {}>", self.core.topic())
    }

    /// `Subscriber[T]` is for type checkers.
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, _item: &Bound<'_, PyAny>) -> Py<PyType> {
        class.clone().unbind()
    }
}

/// Iterates over a subscriber's messages as Sample objects. Made by `Subscriber.samples`.
#[pyclass(frozen, module = "rnet")]
pub(crate) struct Samples {
    subscriber: Py<Subscriber>,
}

#[pymethods]
impl Samples {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.subscriber.get().next_sample(py)
    }

    fn __aiter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __anext__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.subscriber.get().task(py, false, true)
    }
}
