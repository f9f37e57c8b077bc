//! `rnet.Call`: a call in progress.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rnet::{CancelReason, Error, Pending, Received};

use super::client::ClientCore;
use super::decoded;
use super::shared_client::OpenCall;
use crate::drop_without_gil::drop_without_gil;
use crate::errors::{OrRaise, raise};
use crate::fork::ProcessOwned;
use crate::node_core::NodeCore;
use crate::resource::{Resource, WaitCondition};
use crate::tasks::Next;
use crate::wait::poll_until;

type Reply = Received<[u8]>;

/// State shared by the Python object, its client and the queue of its waiters.
pub(crate) struct CallCore {
    /// Kept until no more replies can come: it holds the node.
    resource: Arc<Resource<Arc<Pending<[u8]>>>>,
    ready: Arc<WaitCondition<Pending<[u8]>>>,
    /// The error that this process ended it with.
    close_error: OnceLock<Error>,
    client: Arc<ClientCore>,
    /// Whether it expects any number of replies.
    stream: bool,
}

impl CallCore {
    pub(super) fn new(pending: Pending<[u8]>, client: Arc<ClientCore>, stream: bool) -> Arc<Self> {
        let resource = Resource::new(format!("the call of {}", client.name), Arc::new(pending));
        let resource = Arc::new(resource);
        let ready = WaitCondition::new(&resource, Pending::poll_ready);
        Arc::new(CallCore { resource, ready, close_error: OnceLock::new(), client, stream })
    }

    /// The reason why no more replies can come; `None` if it ended normally.
    fn end_error(&self) -> Option<Error> {
        match self.resource.is_from_parent() {
            true => Some(self.resource.closed_error()),
            false => self.close_error.get().cloned(),
        }
    }

    fn cancel(&self) {
        if !self.resource.is_from_parent() {
            let (topic, reason) = (self.client.name.clone(), CancelReason::Caller);
            self.close(Error::Cancelled { topic, reason });
        }
    }

    fn finish(&self) -> Option<ProcessOwned<Arc<Pending<[u8]>>>> {
        self.client.unregister(self);
        self.resource.take()
    }

    /// Waits for a reply for a part of the time; `None` at the end of the replies. Call it without the GIL.
    ///
    /// # Errors
    /// `Interrupted`: try again.
    fn next(&self, slice: Duration) -> rnet::Result<Option<Reply>> {
        let Ok(pending) = self.resource.get() else {
            return self.end_error().map_or(Ok(None), Err);
        };
        let next = pending.next_within(slice);
        if self.stream && matches!(next, Ok(Some(_))) || matches!(next, Err(Error::Interrupted)) {
            return next;
        }
        drop(self.finish());
        drop(pending);
        match next {
            Err(error) if self.stream => Err(self.end_error().unwrap_or(error)),
            // Further callers get the same error.
            Err(error) => Err(self.close_error.get_or_init(|| error).clone()),
            next => next,
        }
    }
}

impl OpenCall for CallCore {
    fn close(&self, error: Error) {
        let _ = self.close_error.set(error);
        if let Some(pending) = self.finish() {
            pending.cancel();
        }
        self.ready.wait_queue.wake_all();
    }
}

impl Drop for CallCore {
    fn drop(&mut self) {
        drop_without_gil(self.finish());
    }
}

/// A call in progress: created by `Client.start`, which expects one reply, or by `Client.stream`, which
/// expects any number.
///
/// `await call` and `call.result()` return the single reply; `for reply in call` and `async for reply in
/// call` iterate over a stream. Each reply of a stream is returned once. The call is cancelled by `cancel`,
/// by the end of a `with` block, when the object is deleted, or when a task that awaits its reply is
/// cancelled.
///
/// >>> service = node.service("/count", None, None, lambda n: (b"%d" % i for i in range(int(n))))
/// >>> with node.client("/count").stream(b"3") as replies:
/// ...     list(replies)
/// [b'0', b'1', b'2']
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Call {
    pub(super) core: Arc<CallCore>,
    /// The only reply of a call, or the error for a malformed reply; kept for later callers.
    pub(super) reply: OnceLock<PyResult<Py<PyAny>>>,
    pub(super) _node: Arc<NodeCore>,
}

impl Call {
    fn value(&self, py: Python<'_>, reply: &Reply) -> PyResult<Py<PyAny>> {
        let client = &self.core.client;
        decoded(py, &client.codecs, reply, &format!("a reply of {}", client.name))
    }

    fn next(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let next = poll_until(py, None, |slice| self.core.next(slice))?.or_raise(py)?;
        next.map(|reply| self.store_reply(py, self.value(py, &reply))).transpose()
    }

    /// Stores the only reply: every further call of `result` and every further `await` returns the same one.
    fn store_reply(&self, py: Python<'_>, reply: PyResult<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        if self.core.stream {
            return reply;
        }
        let _ = self.reply.set(reply);
        self.stored_reply(py).expect("it was set above")
    }

    fn stored_reply(&self, py: Python<'_>) -> Option<PyResult<Py<PyAny>>> {
        self.reply.get().map(|reply| match reply {
            Ok(reply) => Ok(reply.clone_ref(py)),
            Err(error) => Err(error.clone_ref(py)),
        })
    }

    /// The coroutine that a task awaits.
    fn coroutine(slf: Py<Self>, iterates: bool) -> Next {
        let core = slf.get().core.clone();
        let next = Next::new(core.ready.clone(), move |py| slf.get().try_take(py, iterates));
        next.on_cancel(move || {
            if !core.stream {
                core.cancel();
            }
        })
    }

    fn try_take(&self, py: Python<'_>, iterates: bool) -> PyResult<Option<Py<PyAny>>> {
        if let Some(kept) = self.stored_reply(py).filter(|_| !iterates) {
            return kept.map(Some);
        }
        match py.detach(|| self.core.next(Duration::ZERO)) {
            Ok(Some(reply)) => self.store_reply(py, self.value(py, &reply)).map(Some),
            Ok(None) if iterates => Err(PyStopAsyncIteration::new_err("the call has ended")),
            Ok(None) => Err(raise(py, &self.core.resource.closed_error())),
            Err(Error::Interrupted) => Ok(None),
            Err(error) => Err(raise(py, &error)),
        }
    }

    pub(super) fn take_single_reply(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let next = self.next(py)?;
        next.ok_or_else(|| raise(py, &self.core.resource.closed_error()))
    }
}

#[pymethods]
impl Call {
    /// Waits for the reply, or for the next one of a stream, up to the time limit of the call. Raises the
    /// errors of `Client.call`; CallCancelledError if the call was cancelled; ClosedError at the end of a stream.
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if let Some(kept) = self.stored_reply(py) {
            return kept;
        }
        self.take_single_reply(py)
    }

    /// Cancels the call: notifies its server, and raises CallCancelledError in threads and tasks that wait for it.
    fn cancel(&self, py: Python<'_>) {
        py.detach(|| self.core.cancel());
    }

    /// Whether the call is finished: it has ended, was cancelled, or all replies were read.
    #[getter]
    fn done(&self) -> bool {
        self.core.resource.is_closed()
    }

    fn __await__(slf: Py<Self>) -> Next {
        Call::coroutine(slf, false)
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.next(py)
    }

    fn __anext__(slf: Py<Self>) -> Next {
        Call::coroutine(slf, true)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.cancel(py);
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Call of {}>", self.core.client.name)
    }
}
