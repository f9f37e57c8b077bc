//! `rnet.Service`: a Python handler, called on threads of the service.

use std::sync::Arc;

use pyo3::PyClass;
use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rnet::{Error, HandlerError, Responder};

use super::{count, decoded, with_encoded_reply};
use crate::callback::call;
use crate::callback_errors;
use crate::codec::Codec;
use crate::errors::{OrRaise, is_of_class};
use crate::interpreter;
use crate::members::MemberKind;
use crate::meta::make;
use crate::node_core::NodeCore;
use crate::resource::Resource;

/// The counters of a server, as a Python object.
pub fn stats(py: Python<'_>, s: &rnet::ServiceStats) -> PyResult<Py<PyAny>> {
    let (running, waiting) = (s.running as u64, s.waiting as u64);
    let asked = [s.calls, running, waiting, s.refused, s.failed, s.cancelled];
    let unheard = [s.malformed, s.unsent, s.unanswerable];
    make(
        py,
        "ServiceStats",
        PyTuple::new(py, asked.into_iter().chain(unheard).collect::<Vec<_>>())?,
    )
}

/// A Python function that answers requests, goals or jobs.
pub(super) struct Handler {
    function: Py<PyAny>,
    /// Whether it takes a context in addition to the request.
    with_context: bool,
    request: Codec,
    /// The name of the request in errors.
    what: String,
}

impl Handler {
    /// `kind` is "service", "action" or "job".
    pub(super) fn new(
        py: Python<'_>,
        function: Py<PyAny>,
        (kind, what): (&str, String),
        request: Codec,
    ) -> PyResult<Handler> {
        let event_loop = py.import("rnet.event_loop")?;
        let (function, with_context) =
            event_loop.call_method1("for_handler", (function, kind))?.extract()?;
        Ok(Handler { function, with_context, request, what })
    }

    /// Calls it with the object of a request and its context, and passes its result to `then`. Does not call
    /// it if the request is no longer wanted when the GIL is held: the wait for the GIL may be long.
    pub(super) fn run<C>(
        &self,
        request: &[u8],
        is_cancelled: impl FnOnce() -> bool,
        context: C,
        then: impl for<'py> FnOnce(Bound<'py, PyAny>, &Bound<'py, C>) -> PyResult<()>,
    ) -> Result<(), HandlerError>
    where
        C: PyClass + Into<PyClassInitializer<C>>,
    {
        let ran = interpreter::attach(|py| {
            if is_cancelled() {
                let why = "the call was cancelled before it started";
                return Err(HandlerError::new("CallCancelledError", why).reported());
            }
            let request = decoded(py, &self.request, request, &self.what);
            let request = request.map_err(|error| failure(py, &error))?;
            let function = self.function.bind(py);
            let called = Bound::new(py, context).and_then(|context| {
                let returned = match self.with_context {
                    true => call(function, (request, &context))?,
                    false => call(function, (request,))?,
                };
                then(returned, &context)
            });
            called.map_err(|error| failed(&error, function))
        });
        ran.unwrap_or_else(|| {
            Err(HandlerError::new("ClosedError", "the server process is exiting").reported())
        })
    }
}

/// Whether a handler has returned a generator.
pub(super) fn is_generator(returned: &Bound<'_, PyAny>) -> PyResult<bool> {
    returned.is_instance(&returned.py().import("types")?.getattr("GeneratorType")?)
}

/// Sends the result of a handler: one reply, or the replies of a generator.
fn send_all(
    returned: &Bound<'_, PyAny>,
    mut send: impl FnMut(&Bound<'_, PyAny>) -> PyResult<bool>,
) -> PyResult<()> {
    if !is_generator(returned)? {
        return send(returned).map(drop);
    }
    let next = returned.getattr("__next__")?;
    loop {
        let reply = match call(&next, ()) {
            Err(error) if error.is_instance_of::<PyStopIteration>(returned.py()) => return Ok(()),
            reply => reply?,
        };
        if !send(&reply)? {
            // The caller wants no more replies: the `finally` blocks of the generator run.
            return call(&returned.getattr("close")?, ()).map(drop);
        }
    }
}

/// An exception of a handler, as the caller gets it. It is counted and logged, unless it says that the call is
/// no longer wanted.
pub(super) fn failed(error: &PyErr, handler: &Bound<'_, PyAny>) -> HandlerError {
    if !is_of_class(handler.py(), error, "CallCancelledError") {
        callback_errors::count(error, handler, false);
    }
    failure(handler.py(), error).reported()
}

/// An exception as the caller gets it.
pub(super) fn failure(py: Python<'_>, error: &PyErr) -> HandlerError {
    let named = || {
        let kind = error.get_type(py);
        let name: String = kind.getattr("__qualname__")?.extract()?;
        let module: String = kind.getattr("__module__")?.extract()?;
        let own = matches!(&*module, "builtins" | "__main__");
        Ok::<_, PyErr>(if own { name } else { format!("{module}.{name}") })
    };
    let kind = named().unwrap_or_else(|_| "exception".to_owned());
    HandlerError::new(kind, error.value(py).to_string())
}

/// Serves the calls of a service or the goals of an action. Created by `Node.service` and `Node.action`.
///
/// `close`, the end of a `with` block, or closing the node closes it: its callers get ServerLostError.
///
/// >>> service = node.service("/upper", None, None, lambda text: text.upper())
/// >>> node.call("/upper", b"robot")
/// b'ROBOT'
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Service {
    /// Name, with its leading slash.
    #[pyo3(get)]
    name: String,
    resource: Arc<Resource<rnet::Service>>,
    node: Arc<NodeCore>,
}

impl Service {
    pub(crate) fn open(
        py: Python<'_>,
        node: &Arc<NodeCore>,
        name: &str,
        types: (Option<&Bound<'_, PyAny>>, Option<&Bound<'_, PyAny>>),
        function: Py<PyAny>,
        (backlog, at_once): (i64, i64),
    ) -> PyResult<Service> {
        let (backlog, at_once) = (count(py, "backlog", backlog)?, count(py, "at_once", at_once)?);
        let (request, reply) = (Codec::new(py, types.0)?, Codec::new(py, types.1)?);
        let (in_type, out_type) = (request.message_type.clone(), reply.message_type.clone());
        let what = format!("a request of {name}");
        let handler = Handler::new(py, function, ("service", what), request)?;
        let place = format!("the replies of {name}");
        Service::open_resource(py, node, || {
            let builder = node.node()?.service::<[u8], [u8]>(name).message_types(in_type, out_type);
            let run = move |request: &[u8], replies: &mut Responder<'_, [u8]>| {
                let context = replies.context();
                let is_cancelled = || context.is_cancelled();
                let theirs = CallContext { inner: context.clone() };
                handler.run(request, is_cancelled, theirs, |returned, _| {
                    let py = returned.py();
                    send_all(&returned, |object| {
                        let send = |bytes: &[u8]| py.detach(|| replies.send(bytes));
                        match with_encoded_reply(&reply, object, &place, send)? {
                            Err(Error::Cancelled { .. }) => Ok(false),
                            sent => sent.or_raise(py).map(|()| true),
                        }
                    })
                })
            };
            builder.backlog(backlog).at_once(at_once).serve_stream(run)
        })
    }

    /// An object for the result of `open`, which runs without the GIL. The node closes the object.
    pub(super) fn open_resource(
        py: Python<'_>,
        node: &Arc<NodeCore>,
        open: impl FnOnce() -> rnet::Result<rnet::Service> + Send,
    ) -> PyResult<Service> {
        let open = || {
            let service = open()?;
            let name = service.name().to_owned();
            let resource =
                Resource::with_callbacks(format!("service {name}"), service, Arc::default());
            let resource = Arc::new(resource);
            node.members.add_retained(MemberKind::Service, &resource);
            Ok((name, resource))
        };
        let (name, resource) = py.detach(open).or_raise(py)?;
        Ok(Service { name, resource, node: node.clone() })
    }
}

#[pymethods]
impl Service {
    /// Counters, as ServiceStats.
    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        stats(py, &self.resource.query(py, |service| service.stats())?)
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.resource.is_closed()
    }

    /// Cancels its calls, waits for running handlers, and closes the service. The reply of a handler that
    /// does not check `cancelled` is delivered.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        interpreter::close(py, self.node.closing(&self.resource))
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Service {} of node {}>", self.name, self.node.name)
    }
}

/// The context of a call, passed to a handler with two parameters.
#[pyclass(frozen, module = "rnet")]
pub(crate) struct CallContext {
    inner: rnet::CallContext,
}

#[pymethods]
impl CallContext {
    /// Whether the reply is no longer needed: the caller cancelled or is gone, the service is closing, or the
    /// call has ended.
    #[getter]
    fn cancelled(&self, py: Python<'_>) -> bool {
        py.detach(|| self.inner.is_cancelled())
    }

    /// The reason, as in CallCancelledError.reason; None if the call was not cancelled, or has ended.
    #[getter]
    fn reason(&self, py: Python<'_>) -> Option<&'static str> {
        super::reason_name(py.detach(|| self.inner.cancel_reason()))
    }

    /// The reason, read by the code that runs the handler; the handler does not learn of it by this call.
    fn _peek_reason(&self, py: Python<'_>) -> Option<&'static str> {
        super::reason_name(py.detach(|| self.inner.peek_cancel_reason()))
    }

    /// Name of the calling node.
    #[getter]
    fn caller(&self) -> &str {
        self.inner.caller()
    }
}
