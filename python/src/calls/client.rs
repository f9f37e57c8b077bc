//! `rnet.Client`: calls one service.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pyo3::prelude::*;
use rnet::CallOptions;

use super::call::{Call, CallCore};
use super::shared_client::SharedClient;
use super::with_encoded;
use crate::codec::Codec;
use crate::errors::OrRaise;
use crate::members::{Member, MemberKind};
use crate::meta::make;
use crate::node_core::NodeCore;
use crate::qos::OptionalSetters;
use crate::wait::{DEFAULT_TIMEOUT, answer_limit};

/// State shared by the Python object, its calls and its node.
pub(crate) type ClientCore = SharedClient<rnet::Client<[u8], [u8]>, Codec>;

/// Calls a service. Any thread or task may make any number of calls at a time. Created by `Node.client`.
///
/// >>> service = node.service("/upper", None, None, lambda text: text.upper())
/// >>> upper = node.client("/upper")
/// >>> upper.call(b"robot", timeout=10)
/// b'ROBOT'
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Client {
    core: Arc<ClientCore>,
    request: Codec,
    /// Default time limit of its calls.
    timeout: Duration,
    node: Arc<NodeCore>,
}

impl Client {
    pub(crate) fn open(
        py: Python<'_>,
        node: &Arc<NodeCore>,
        name: &str,
        types: (Option<&Bound<'_, PyAny>>, Option<&Bound<'_, PyAny>>),
        timeout: f64,
    ) -> PyResult<Client> {
        let timeout = answer_limit(py, Some(timeout), DEFAULT_TIMEOUT)?;
        let (request, reply) = (Codec::new(py, types.0)?, Codec::new(py, types.1)?);
        let (in_type, out_type) = (request.message_type.clone(), reply.message_type.clone());
        let open = || {
            let client =
                node.node()?.client::<[u8], [u8]>(name).message_types(in_type, out_type).open()?;
            let core = Arc::new(ClientCore::new(client.name().to_owned(), client, reply));
            node.members.add(MemberKind::Client, &core);
            Ok(core)
        };
        let core = py.detach(open).or_raise(py)?;
        Ok(Client { core, request, timeout, node: node.clone() })
    }

    fn begin(
        &self,
        py: Python<'_>,
        request: &Bound<'_, PyAny>,
        (timeout, key): (Option<f64>, Option<&str>),
        stream: bool,
    ) -> PyResult<Call> {
        let options = CallOptions::new()
            .timeout(answer_limit(py, timeout, self.timeout)?)
            .set_opt(key, CallOptions::key);
        let place = format!("the requests of {}", self.core.name);
        let begun = with_encoded(&self.request, request, &place, |bytes| {
            py.detach(|| {
                let client = self.core.resource.get()?;
                let pending = match stream {
                    true => client.stream(bytes, options)?,
                    false => client.start(bytes, options)?,
                };
                let core = CallCore::new(pending, self.core.clone(), stream);
                self.core.register(&core);
                Ok(core)
            })
        });
        let core = begun?.or_raise(py)?;
        Ok(Call { core, reply: OnceLock::new(), _node: self.node.clone() })
    }
}

#[pymethods]
impl Client {
    /// Calls the service and waits for the reply; also waits for a server if none exists yet.
    ///
    /// `timeout` is in seconds, by default that of the client. Calls with the same `key` go to the same server as long as it
    /// exists. Raises WaitTimeoutError; ServerLostError if the server closes or dies before it answers; CallFailedError with the
    /// error that the handler raised; RefusedError if the backlogs of all servers are full; FullError if the server
    /// does not read; IncompatibleTypeError; ClosedError.
    #[pyo3(signature = (request, /, *, timeout = None, key = None))]
    fn call(
        &self,
        py: Python<'_>,
        request: &Bound<'_, PyAny>,
        timeout: Option<f64>,
        key: Option<&str>,
    ) -> PyResult<Py<PyAny>> {
        self.begin(py, request, (timeout, key), false)?.take_single_reply(py)
    }

    /// Begins a call.
    fn _begin(
        &self,
        py: Python<'_>,
        request: &Bound<'_, PyAny>,
        timeout: Option<f64>,
        key: Option<&str>,
        stream: bool,
    ) -> PyResult<Call> {
        self.begin(py, request, (timeout, key), stream)
    }

    /// Name of the service, with its leading slash.
    #[getter]
    fn name(&self) -> &str {
        &self.core.name
    }

    /// Number of servers now.
    #[getter]
    fn server_count(&self, py: Python<'_>) -> PyResult<usize> {
        py.detach(|| Ok(self.core.resource.get()?.server_count())).or_raise(py)
    }

    /// Counters, as ClientStats.
    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let s = py.detach(|| Ok(self.core.resource.get()?.stats())).or_raise(py)?;
        let parts = (s.calls, s.open, s.late, s.rerouted, s.feedback_skipped, s.feedback_lost);
        make(py, "ClientStats", parts)
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.core.resource.is_closed()
    }

    /// Closes the client; open calls are cancelled and raise ClosedError.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.core.close());
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Client of {}, by node {}>", self.core.name, self.node.name)
    }
}
