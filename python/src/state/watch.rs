//! `rnet.state.Watch`: notification of changes.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use rnet::state::{self, WatchHandle};
use rnet::{Error, Interrupter, ReceiveStream};

use super::core::StateCore;
use super::entry;
use crate::callback::{Callback, call, report};
use crate::errors::{OrRaise, bad_value, raise};
use crate::interpreter;
use crate::members::{Member, MemberKind};
use crate::node_core::NodeCore;
use crate::reader::{Labels, Reader, Receiver};
use crate::tasks::{Delivery, Next};
use crate::wait::WaitLimit;
use crate::wait_queue;

pub(crate) type WatchCore = Reader<state::Watch>;

impl Receiver for state::Watch {
    type Subscription = WatchHandle;

    const ITEMS: &str = "changes";

    fn interrupter(&mut self) -> Interrupter {
        state::Watch::interrupter(self)
    }
    fn make_interruptible(&mut self) {
        self.set_interruptible(true);
    }
    fn into_stream(self) -> ReceiveStream<state::Watch> {
        self.into_stream()
    }
}

/// The next change, if one is available; `delivers`: for the async callback.
fn look(
    py: Python<'_>,
    core: &Arc<WatchCore>,
    delivers: bool,
) -> rnet::Result<Option<state::Change>> {
    py.detach(|| {
        let found = if delivers { core.try_next_for_delivery() } else { core.try_next() };
        if matches!(found, Ok(None)) {
            wait_queue::mark_drained(core);
        }
        found
    })
}

/// Returns the values of the keys under a prefix, then each change. Created by `State.watch`.
///
/// `for change in watch` and `async for change in watch` run until the watch or its node is closed; `on`
/// passes the changes to a function. The changes are Change objects, those of one key in the order in which
/// they were made; the first ones, with `initial`, are the values at the beginning. A slow reader gets the
/// newest value of each key, and `skipped` counts the values that it missed.
///
/// Any thread may use it; each change goes to one of the waiting threads.
///
/// >>> watch = node.state.watch("/wheel")
/// >>> node.state["/wheel/speed"] = 1.5
/// >>> change = watch.recv(timeout=10)
/// >>> change.key, change.value
/// ('/wheel/speed', 1.5)
#[pyclass(frozen, module = "rnet.state", weakref)]
pub(crate) struct Watch {
    core: Arc<WatchCore>,
    /// The prefix.
    #[pyo3(get)]
    prefix: String,
    state: Arc<StateCore>,
    /// Kept alive.
    node: Arc<NodeCore>,
}

impl Watch {
    pub(crate) fn open(
        py: Python<'_>,
        state: &Arc<StateCore>,
        node: &Arc<NodeCore>,
        prefix: &str,
    ) -> PyResult<Watch> {
        let inner = state.detached(py, |state| state.watch(prefix))?;
        let (description, awaited_item) =
            (format!("the watch of {prefix:?}"), format!("a change under {prefix}"));
        let core =
            Reader::new(inner, Labels { topic: String::new(), description, awaited_item }, false);
        py.detach(|| state.members.add(MemberKind::Watch, &core));
        let prefix = prefix.to_owned();
        Ok(Watch { core, prefix, state: state.clone(), node: node.clone() })
    }

    pub(crate) fn core(&self) -> &Arc<WatchCore> {
        &self.core
    }

    pub(crate) fn node(&self) -> &Arc<NodeCore> {
        &self.node
    }

    fn take(&self, py: Python<'_>, limit: &WaitLimit) -> PyResult<Py<PyAny>> {
        let change = self.core.in_slices(limit).run(py, |slice| {
            self.core.wait_with(slice, |inner, _, left| inner.recv_timeout(left))
        })?;
        entry::change(py, change, &self.state.types)
    }

    /// The coroutine that a task awaits. With `iterates`, closing ends the iteration without an error.
    fn coroutine(slf: Py<Self>, iterates: bool) -> Next {
        Next::new(slf.get().core.clone(), move |py| {
            let watch = slf.get();
            match look(py, &watch.core, false) {
                Ok(change) => {
                    change.map(|change| entry::change(py, change, &watch.state.types)).transpose()
                }
                Err(Error::Closed { .. }) if iterates && watch.core.is_closed() => {
                    Err(PyStopAsyncIteration::new_err("the watch is closed"))
                }
                Err(error) => Err(raise(py, &error)),
            }
        })
    }
}

#[pymethods]
impl Watch {
    /// Waits for the next change, up to `timeout` seconds, without a limit by default. Raises WaitTimeoutError.
    #[pyo3(signature = (*, timeout = None))]
    fn recv(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Py<PyAny>> {
        self.take(py, &WaitLimit::new(py, timeout)?)
    }

    /// The next change if one is available, else None.
    fn try_recv(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let change = look(py, &self.core, false).or_raise(py)?;
        change.map(|change| entry::change(py, change, &self.state.types)).transpose()
    }

    /// The next change, as a coroutine for asyncio. If it is cancelled, such as by a timeout, it has not
    /// taken a change. Threads may receive at the same time.
    fn recv_async(slf: Py<Self>) -> Next {
        Watch::coroutine(slf, false)
    }

    /// Sends its changes to an async callback from now on.
    fn _begin_delivery(&self, py: Python<'_>) -> PyResult<Delivery> {
        let (core, types) = (self.core.clone(), self.state.types.clone());
        let next = move || {
            let (core, types) = (core.clone(), types.clone());
            Next::new(core.clone(), move |py| {
                let change = look(py, &core, true).or_raise(py)?;
                change.map(|change| entry::change(py, change, &types)).transpose()
            })
        };
        let begin = || {
            self.core.begin_delivery()?;
            Ok(Delivery::new(&self.core, &self.state.members, next))
        };
        py.detach(begin).or_raise(py)
    }

    /// A file descriptor that is readable when there may be a change, as `Subscriber.fileno`: until
    /// `try_recv` has returned None.
    fn fileno(&self, py: Python<'_>) -> PyResult<RawFd> {
        py.detach(|| self.core.fileno()).or_raise(py)
    }

    /// Calls `callback(change)` for each change from now on, on the dispatch thread of the bulk lane or, with
    /// `urgent`, of the urgent one, until the watch or its node is closed. Exceptions go to
    /// `sys.unraisablehook`. A slow callback delays the others of its lane, and then gets only the newest
    /// values.
    #[pyo3(signature = (callback, /, *, urgent = false))]
    fn on(slf: &Bound<'_, Self>, callback: Callback, urgent: bool) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        if callback.is_async(py)? {
            if urgent {
                let why =
                    "an async callback runs on the event loop, which has no lanes; omit urgent";
                return Err(bad_value(py, "urgent", why));
            }
            return callback.deliver(slf.as_any(), None, &this.node);
        }
        let callback = callback.into_inner();
        let (types, closed) = (this.state.types.clone(), this.core.closed.clone());
        let run = move |result: rnet::Result<state::Change>| {
            interpreter::attach(|py| {
                if closed.load(Ordering::Acquire) {
                    return;
                }
                let called = match result {
                    Ok(change) => entry::change(py, change, &types)
                        .and_then(|change| call(callback.bind(py), (change,)).map(drop)),
                    Err(error) => Err(raise(py, &error)),
                };
                if let Err(error) = called {
                    report(py, error, &callback);
                }
            });
        };
        let start = || {
            let begin = |inner: state::Watch| {
                let inner = if urgent { inner.urgent() } else { inner };
                inner.on_result(run)
            };
            this.core.begin_callback(begin)?;
            this.state.members.retain(&this.core);
            Ok(())
        };
        py.detach(start).or_raise(py)
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.core.is_closed()
    }

    /// Closes the watch: loops over it end, and its callback is no longer called.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let (state, core) = (self.state.clone(), self.core.clone());
        interpreter::close(py, move || {
            core.close();
            state.members.forget(&core);
        })
    }

    fn __anext__(slf: Py<Self>) -> Next {
        Watch::coroutine(slf, true)
    }

    fn __repr__(&self) -> String {
        format!("<rnet.state.Watch of {:?}, by node {}>", self.prefix, self.node.name)
    }
}
