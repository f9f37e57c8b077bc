//! Callbacks for peer events and for messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use rnet::Tick;
use rnet::{
    DeadlineMissed, EndpointEvent, EndpointQos, Error, LivelinessChange, LivelinessCounts,
    MatchEvent, NodeEvent,
};

use crate::callback;
use crate::codec::Codec;
use crate::errors::{is_malformed, raise};
use crate::meta::make;
use crate::receive::Incoming;

/// Calls `callback` with the result of `event`; exceptions go to `sys.unraisablehook`.
pub(crate) fn call_with_event(
    callback: &Py<PyAny>,
    event: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>,
) {
    call_with_optional_event(callback, |py| event(py).map(Some));
}

/// The same for an event that may have expired by the time that the GIL is held.
pub(crate) fn call_with_optional_event(
    callback: &Py<PyAny>,
    event: impl FnOnce(Python<'_>) -> PyResult<Option<Py<PyAny>>>,
) {
    // Does nothing after the interpreter has ended.
    crate::interpreter::attach(|py| {
        let call = |event| callback::call(callback.bind(py), (event,)).map(drop);
        if let Err(error) = event(py).and_then(|event| event.map_or(Ok(()), call)) {
            callback::report(py, error, callback);
        }
    });
}

/// An `rnet.events.Tick`.
pub(crate) fn tick(py: Python<'_>, tick: Tick) -> PyResult<Py<PyAny>> {
    let late_s = tick.late_ns as f64 * 1e-9;
    make(py, "Tick", (tick.number, tick.due_ns, late_s, tick.missed))
}

/// An `rnet.events.MatchEvent`.
pub(crate) fn matched(py: Python<'_>, event: &MatchEvent) -> PyResult<Py<PyAny>> {
    let (kind, peer, error) = match event {
        MatchEvent::Matched(peer) => ("matched", Some(peer), None),
        MatchEvent::Unmatched(peer) => ("unmatched", Some(peer), None),
        MatchEvent::Lost(peer) => ("lost", Some(peer), None),
        MatchEvent::Changed(peer) => ("changed", Some(peer), None),
        MatchEvent::Incompatible(error) => ("incompatible", None, Some(error)),
        _ => ("other", None, None),
    };
    let (node, id) = (peer.map(|peer| peer.node.as_str()), peer.map(|peer| peer.id));
    let error = error.map(|error| raise(py, error).into_value(py));
    make(py, "MatchEvent", (kind, node, id, error))
}

/// An `rnet.events.DeadlineMissed`.
pub(crate) fn deadline_missed(py: Python<'_>, event: &DeadlineMissed) -> PyResult<Py<PyAny>> {
    let peer = &event.publisher;
    make(py, "DeadlineMissed", (peer.node.as_str(), peer.id, event.missed, event.total))
}

/// An `rnet.events.LivelinessChange`.
pub(crate) fn liveliness_change(py: Python<'_>, change: &LivelinessChange) -> PyResult<Py<PyAny>> {
    let (peer, counts) = (&change.publisher, liveliness(py, change.counts)?);
    make(py, "LivelinessChange", (peer.node.as_str(), peer.id, change.alive, counts))
}

/// An `rnet.events.Liveliness`.
pub(crate) fn liveliness(py: Python<'_>, counts: LivelinessCounts) -> PyResult<Py<PyAny>> {
    make(py, "Liveliness", (counts.alive, counts.not_alive))
}

/// An `rnet.events.NodeEvent`.
pub(crate) fn node_event(py: Python<'_>, event: &NodeEvent) -> PyResult<Py<PyAny>> {
    let (kind, node) = match event {
        NodeEvent::Joined(node) => ("joined", node.as_str()),
        NodeEvent::Left(node) => ("left", node.as_str()),
        NodeEvent::Died(node) => ("died", node.as_str()),
        _ => ("other", ""),
    };
    make(py, "NodeEvent", (kind, node))
}

/// An `rnet.events.EndpointEvent`.
pub(crate) fn endpoint(py: Python<'_>, event: &EndpointEvent) -> PyResult<Py<PyAny>> {
    let kind = match event {
        EndpointEvent::Opened(_) => "opened",
        EndpointEvent::Changed(_) => "changed",
        EndpointEvent::Closed(_) => "closed",
        EndpointEvent::Lost(_) => "lost",
        _ => "other",
    };
    let end = event.endpoint();
    let (role, qos) = match &end.qos {
        EndpointQos::Publisher(qos) => ("publisher", serde_json::to_string(qos)),
        EndpointQos::Subscriber(qos) => ("subscriber", serde_json::to_string(qos)),
    };
    let loads = py.import("json")?.getattr("loads")?;
    let qos = loads.call1((qos.unwrap_or_else(|_| "{}".to_owned()),))?;
    let desc = loads.call1((end.type_desc.to_json(),))?;
    let parts = (end.id, role, &end.topic, &end.node, desc, qos, end.endpoint_count);
    make(py, "EndpointEvent", (kind, make(py, "Endpoint", parts)?))
}

/// The function that runs for each message of a subscriber with a callback.
pub(crate) struct MessageCallback {
    pub(crate) callback: Py<PyAny>,
    /// Called with errors. If it is absent, errors that are not counted go to `sys.unraisablehook`.
    pub(crate) on_error: Option<Py<PyAny>>,
    pub(crate) decoder: Arc<Codec>,
    /// Set when the subscriber is closed: no call may begin after that.
    pub(crate) closed: Arc<AtomicBool>,
}

impl MessageCallback {
    pub(crate) fn run(&self, result: rnet::Result<Incoming<'_>>) {
        crate::interpreter::attach(|py| {
            if self.closed.load(Ordering::Acquire) {
                return;
            }
            let Some(result) = result.map(Incoming::unless_expired).transpose() else { return };
            let outcome = match result {
                Ok(received) => match (self.decoder.value(py, received), &self.on_error) {
                    (Ok(value), _) => {
                        // Until now the thread waited for the GIL, and the message was decoded.
                        rnet::binding::callback_begins();
                        callback::call(self.callback.bind(py), (value,))
                    }
                    (Err(error), Some(on_error)) if is_malformed(py, &error) => {
                        callback::call(on_error.bind(py), (error.into_value(py),))
                    }
                    // The error comes from the message and not from the callback.
                    (Err(error), _) => {
                        return error.write_unraisable(py, Some(self.callback.bind(py)));
                    }
                },
                Err(error) => {
                    return report_error_attached(
                        py,
                        &self.callback,
                        self.on_error.as_ref(),
                        &error,
                    );
                }
            };
            if let Err(error) = outcome {
                callback::report(py, error, &self.callback);
            }
        });
    }
}

/// Calls `on_error`. If it is absent, an error that is not counted goes to `sys.unraisablehook`, for
/// `callback`.
fn report_error_attached(
    py: Python<'_>,
    callback: &Py<PyAny>,
    on_error: Option<&Py<PyAny>>,
    error: &Error,
) {
    match (on_error, error) {
        (Some(on_error), _) => {
            if let Err(raised) =
                callback::call(on_error.bind(py), (raise(py, error).into_value(py),))
            {
                callback::report(py, raised, callback);
            }
        }
        (None, Error::PeerLost { .. } | Error::Detached { .. }) => {}
        (None, _) => raise(py, error).write_unraisable(py, Some(callback.bind(py))),
    }
}

/// Like [`report_error_attached`], for a thread without the GIL.
pub(crate) fn report_error(callback: &Py<PyAny>, on_error: Option<&Py<PyAny>>, error: &Error) {
    crate::interpreter::attach(|py| report_error_attached(py, callback, on_error, error));
}
