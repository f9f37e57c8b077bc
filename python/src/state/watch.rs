//! `rnet.Watch`: notification of changes.
//!
//! As with a subscriber (`receive.rs`), a thread that waits holds the watch's lock; who wants a
//! look, or to close it, ends that wait. Reading and awaiting may alternate, at any moment; a callback
//! stays.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rnet::state::{self, ChangeStream, WatchHandle};
use rnet::{Error, Interrupter};

use super::core::StateCore;
use super::entry::Change;
use super::types::Types;
use crate::callback::{Callback, call_by, report};
use crate::errors::{OrRaise, bad_value, raise};
use crate::fair::{Fair, Guard};
use crate::fork::{ForkGuard, Own};
use crate::gate;
use crate::members::{Kind, Member};
use crate::release::release;
use crate::shared::NodeShared;
use crate::tasks::{Delivery, Next, Source};
use crate::wait::{Stop, WaitLimit};
use crate::waiters::{self, Awaited, Waiters};

/// Who is told.
#[allow(clippy::large_enum_variant, reason = "one a watch, and the largest is the usual one")]
pub(crate) enum Mode {
    Direct(state::Watch),
    Stream(ChangeStream),
    /// The changes go to a callback until the handle is dropped.
    Callback {
        _handle: WatchHandle,
    },
    Closed,
}

/// What the Python object, its callback and its state share.
pub(crate) struct WatchCore {
    prefix: String,
    mode: Fair<Own<Mode>>,
    fork_guard: ForkGuard,
    closed: Arc<AtomicBool>,
    /// Whether its changes go to an async callback; set with the lock.
    is_delivered: AtomicBool,
    /// Has a thread that waits let go of the lock. Gone when it is closed: it holds the node.
    interrupter: Mutex<Option<Own<Interrupter>>>,
    pub(crate) types: Arc<Types>,
    /// Tasks of asyncio, and threads beside them.
    pub(crate) waiters: Waiters,
}

impl WatchCore {
    pub(crate) fn is_closed(&self) -> bool {
        self.fork_guard.is_parents() || self.closed.load(Ordering::Acquire)
    }

    fn closed_error(&self) -> Error {
        Error::Closed { what: self.fork_guard.name(format!("the watch of {:?}", self.prefix)) }
    }

    fn has_callback(&self) -> Error {
        let what = format!("use of the watch of {:?}", self.prefix);
        Error::BadValue { what, why: "its changes go to the callback given with on".into() }
    }

    fn interrupt(&self) {
        let interrupter = self.interrupter.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(interrupter) = &*interrupter {
            interrupter.interrupt();
        }
    }

    /// Takes the lock for something short; a thread that waits lets go of it. Call it without
    /// the GIL.
    fn lock(&self) -> rnet::Result<Guard<'_, Own<Mode>>> {
        if self.fork_guard.is_parents() {
            // The lock may be held by a thread that only the parent has.
            return Err(self.closed_error());
        }
        Ok(self.mode.lock_for_a_look(|| self.interrupt()))
    }

    /// As [`Fair::lock_with_others`]. Call it without the GIL.
    pub(crate) fn lock_with_others(&self, turn: Duration) -> rnet::Result<Guard<'_, Own<Mode>>> {
        if self.fork_guard.is_parents() {
            return Err(self.closed_error());
        }
        self.mode.lock_with_others(turn, || self.interrupt())
    }

    /// The watch itself. Tasks that await a change are not woken any more until
    /// [`waiters::pass_on`], which the caller runs without the lock.
    fn direct<'a>(&self, mode: &'a mut Mode) -> rnet::Result<&'a mut state::Watch> {
        if self.is_delivered.load(Ordering::Acquire) {
            return Err(self.has_callback());
        }
        if self.is_closed() {
            return Err(self.closed_error());
        }
        self.inner(mode)
    }

    /// As [`WatchCore::direct`], also of one that somebody is about to close, who ends its waits.
    pub(crate) fn inner<'a>(&self, mode: &'a mut Mode) -> rnet::Result<&'a mut state::Watch> {
        if matches!(mode, Mode::Stream(_))
            && let Mode::Stream(stream) = std::mem::replace(mode, Mode::Closed)
        {
            let mut inner = stream.into_watch()?;
            inner.set_interruptible(true);
            *mode = Mode::Direct(inner);
        }
        match mode {
            Mode::Direct(inner) => Ok(inner),
            Mode::Callback { .. } => Err(self.has_callback()),
            Mode::Stream(_) | Mode::Closed => Err(self.closed_error()),
        }
    }

    /// Waits for a change for a slice of time. Call it without the GIL.
    fn next(self: &Arc<Self>, slice: Duration) -> rnet::Result<state::Change> {
        waiters::wait_in_line(self, slice, |left| self.wait(left))
    }

    /// As [`WatchCore::next`], with the lock.
    fn wait(&self, limit: Duration) -> rnet::Result<state::Change> {
        if self.is_closed() {
            return Err(self.closed_error());
        }
        let (mut guard, left) = self.mode.lock_to_wait(limit, || {
            let what = format!("a change under {}", self.prefix);
            Error::Timeout { topic: String::new(), what, after_ms: 0 }
        })?;
        let result = self.direct(&mut guard)?.recv(Some(self.waiters.alone_for(left)));
        match result {
            Err(_) if self.is_closed() => Err(self.closed_error()),
            result => result,
        }
    }

    fn take(
        self: &Arc<Self>,
        py: Python<'_>,
        wait_limit: &WaitLimit,
    ) -> Result<state::Change, Stop> {
        wait_limit.run(py, |slice| self.next(slice))
    }

    /// Has its changes go to an async callback. Call it without the GIL.
    fn begin_delivery(&self) -> rnet::Result<()> {
        let mut guard = self.lock()?;
        self.direct(&mut guard)?;
        self.is_delivered.store(true, Ordering::Release);
        drop(guard);
        // Whoever waits is told that there is a callback now.
        self.waiters.wake_all();
        Ok(())
    }

    /// The next change, if it is there; `delivers`: for the async callback. Call it without the GIL.
    fn look(self: &Arc<Self>, delivers: bool) -> rnet::Result<Option<state::Change>> {
        let mut guard = self.lock()?;
        if self.is_delivered.load(Ordering::Acquire) != delivers {
            return Err(self.has_callback());
        }
        if self.is_closed() {
            return Err(self.closed_error());
        }
        let found = match &mut **guard {
            Mode::Direct(inner) => inner.try_recv(),
            Mode::Stream(stream) => stream.try_recv(),
            Mode::Callback { .. } => Err(self.has_callback()),
            Mode::Closed => Err(self.closed_error()),
        };
        drop(guard);
        if matches!(found, Ok(None)) {
            waiters::drained(self);
        }
        found
    }

    /// A descriptor that is readable while there may be a change. Call it without the GIL.
    fn fileno(self: &Arc<Self>) -> rnet::Result<RawFd> {
        // It must not be closed, nor have a callback.
        self.direct(&mut *self.lock()?)?;
        waiters::fileno(self)
    }

    /// Hands all changes to `callback` from now on. Call it without the GIL.
    fn call(
        &self,
        urgent: bool,
        callback: impl Fn(rnet::Result<state::Change>) + Send + 'static,
    ) -> rnet::Result<()> {
        let mut guard = self.lock()?;
        self.direct(&mut guard)?;
        let mode = &mut **guard;
        if let Mode::Direct(inner) = std::mem::replace(mode, Mode::Closed) {
            let inner = if urgent { inner.urgent() } else { inner };
            *mode = Mode::Callback { _handle: inner.on_result(callback) };
        }
        drop(guard);
        // Whoever waits is told that there is a callback now.
        self.waiters.wake_all();
        Ok(())
    }
}

impl Member for WatchCore {
    /// Ends it; whoever waits is told.
    fn close(&self) {
        if self.fork_guard.is_parents() || self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        // A callback that closes its own watch is waited for by nobody but itself: so the lock is
        // let go of before anything is dropped.
        let before = {
            let mut guard = self.mode.lock_for_a_look(|| self.interrupt());
            std::mem::replace(&mut **guard, Mode::Closed)
        };
        drop(before);
        drop(self.interrupter.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.waiters.wake_all();
    }
}

impl Awaited for WatchCore {
    fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    fn poll_ready(&self, waker: &Waker) -> bool {
        let Ok(mut guard) = self.lock() else { return true };
        if self.is_closed() {
            return true;
        }
        let mode = &mut **guard;
        if matches!(mode, Mode::Direct(_))
            && let Mode::Direct(inner) = std::mem::replace(mode, Mode::Closed)
        {
            *mode = Mode::Stream(inner.into_stream());
        }
        match mode {
            Mode::Stream(stream) => stream.poll_ready(&mut Context::from_waker(waker)).is_ready(),
            // What there is is an error.
            _ => true,
        }
    }

    fn is_parents(&self) -> bool {
        self.fork_guard.is_parents()
    }
}

/// What tasks await.
struct Changes {
    watch: Py<Watch>,
    /// Closing is the end, and no error.
    iterates: bool,
}

/// What the task of an async callback awaits.
struct Delivered(Arc<WatchCore>);

impl Source for Delivered {
    fn look(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let told = py.detach(|| self.0.look(true)).or_raise(py)?;
        let change = |told| Ok(Py::new(py, Change::new(py, told, &self.0.types)?)?.into_any());
        told.map(change).transpose()
    }

    fn waiters(&self) -> &Waiters {
        &self.0.waiters
    }

    fn pass_on(&self) {
        waiters::pass_on(&self.0);
    }

    fn is_parents(&self) -> bool {
        self.0.is_parents()
    }
}

impl Source for Changes {
    fn look(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let core = &self.watch.get().core;
        match py.detach(|| core.look(false)) {
            Ok(None) => Ok(None),
            Ok(Some(told)) => {
                let change = Change::new(py, told, &core.types)?;
                Ok(Some(Py::new(py, change)?.into_any()))
            }
            Err(Error::Closed { .. }) if self.iterates && core.is_closed() => {
                Err(PyStopAsyncIteration::new_err("the watch is closed"))
            }
            Err(error) => Err(raise(py, &error)),
        }
    }

    fn waiters(&self) -> &Waiters {
        &self.watch.get().core.waiters
    }

    fn pass_on(&self) {
        waiters::pass_on(&self.watch.get().core);
    }

    fn is_parents(&self) -> bool {
        self.watch.get().core.is_parents()
    }
}

impl Drop for WatchCore {
    fn drop(&mut self) {
        if self.fork_guard.is_parents() {
            return;
        }
        if let Some(mut guard) = self.mode.try_lock() {
            let before = std::mem::replace(&mut **guard, Mode::Closed);
            drop(guard);
            let interrupter = self.interrupter.get_mut().unwrap_or_else(PoisonError::into_inner);
            match &before {
                Mode::Callback { .. } => gate::drop_in_time((before, interrupter.take())),
                _ => release((before, interrupter.take())),
            }
        }
    }
}

/// Gives the values of the keys under a prefix, then each change. Made by `State.watch`.
///
/// `for change in watch` and `async for change in watch` go on until the watch or its node is closed;
/// `on` hands the changes to a function. The changes come as Change objects, those of one key in the
/// order in which they were made; the first ones, with `initial`, are what stood there at the
/// beginning. A slow reader gets the newest value of each key, and `skipped` counts the values that
/// it missed.
///
/// Any thread may use it; each change goes to one of those that wait.
///
/// >>> watch = node.state.watch("/wheel")
/// >>> node.state["/wheel/speed"] = 1.5
/// >>> change = watch.recv(timeout=10)
/// >>> change.key, change.value
/// ('/wheel/speed', 1.5)
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Watch {
    core: Arc<WatchCore>,
    state: Arc<StateCore>,
    /// Kept alive.
    node: Arc<NodeShared>,
}

impl Watch {
    pub(crate) fn open(
        py: Python<'_>,
        state: &Arc<StateCore>,
        node: &Arc<NodeShared>,
        prefix: &str,
    ) -> PyResult<Watch> {
        let mut inner = state.detached(py, |state| state.watch(prefix))?;
        inner.set_interruptible(true);
        let core = Arc::new(WatchCore {
            prefix: prefix.to_owned(),
            interrupter: Mutex::new(Some(Own::new(inner.interrupter()))),
            mode: Fair::new(Own::new(Mode::Direct(inner))),
            fork_guard: ForkGuard::here(),
            closed: Arc::default(),
            is_delivered: AtomicBool::new(false),
            types: state.types.clone(),
            waiters: Waiters::default(),
        });
        py.detach(|| state.members.add(Kind::Watch, &core));
        Ok(Watch { core, state: state.clone(), node: node.clone() })
    }
}

impl Watch {
    pub(crate) fn core(&self) -> &Arc<WatchCore> {
        &self.core
    }

    fn closing(&self) -> impl FnOnce() + Send + 'static {
        let (state, core) = (self.state.clone(), self.core.clone());
        move || {
            core.close();
            state.members.forget(&core);
        }
    }

    pub(crate) fn node(&self) -> &Arc<NodeShared> {
        &self.node
    }
}

#[pymethods]
impl Watch {
    /// The next change; waits for it, `timeout` seconds or for as long as it takes. Raises Timeout.
    #[pyo3(signature = (timeout = None))]
    fn recv(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Change> {
        let wait_limit = WaitLimit::new(py, timeout)?;
        let told = self.core.take(py, &wait_limit).map_err(|stop| stop.into_err(py))?;
        Change::new(py, told, &self.core.types)
    }

    /// The next change if it is there, else None.
    fn try_recv(&self, py: Python<'_>) -> PyResult<Option<Change>> {
        let told = py.detach(|| self.core.look(false)).or_raise(py)?;
        told.map(|told| Change::new(py, told, &self.core.types)).transpose()
    }

    /// The next change, to be awaited in asyncio. A coroutine, as that of a subscriber: if it is
    /// cancelled, by a time-out for one, it has taken no change. Threads may receive at the same time.
    fn recv_async(slf: Py<Self>) -> Next {
        Next::new(Changes { watch: slf, iterates: false })
    }

    /// Has its changes go to an async callback from now on.
    fn _begin_delivery(&self, py: Python<'_>) -> PyResult<Delivery> {
        let core = self.core.clone();
        let begin = || {
            self.core.begin_delivery()?;
            let next = move || Next::new(Delivered(core.clone()));
            Ok(Delivery::new(&self.core, &self.state.members, next))
        };
        py.detach(begin).or_raise(py)
    }

    /// A descriptor that is readable when there may be a change, as `Subscriber.fileno`: until `try_recv`
    /// has returned None.
    fn fileno(&self, py: Python<'_>) -> PyResult<RawFd> {
        py.detach(|| self.core.fileno()).or_raise(py)
    }

    /// Has `callback(change)` called for each change from now on, on the dispatch thread of the bulk
    /// lane or, with `urgent`, of the urgent one, until watch or node is closed. What it raises goes to
    /// `sys.unraisablehook`. A callback that takes long delays the others of its lane, and is then told
    /// only the newest values.
    #[pyo3(signature = (callback, /, *, urgent = false))]
    fn on(slf: &Bound<'_, Self>, callback: Callback, urgent: bool) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        if callback.is_async(py)? {
            if urgent {
                let why =
                    "an async callback runs on the event loop, which has no lanes; leave it out";
                return Err(bad_value(py, "urgent", why));
            }
            return callback.deliver(slf.as_any(), None, &this.node);
        }
        let callback = callback.into_inner();
        let (types, closed) = (this.core.types.clone(), this.core.closed.clone());
        let run = move |result: rnet::Result<state::Change>| {
            gate::enter(|py| {
                if closed.load(Ordering::Acquire) {
                    return;
                }
                let called = match result {
                    Ok(told) => Change::new(py, told, &types)
                        .and_then(|change| call_by(py, &callback, (change,)).map(drop)),
                    Err(error) => Err(raise(py, &error)),
                };
                if let Err(error) = called {
                    report(py, error, &callback);
                }
            });
        };
        let start = || {
            this.core.call(urgent, run)?;
            this.state.members.keep(&this.core);
            Ok(())
        };
        py.detach(start).or_raise(py)
    }

    /// The prefix.
    #[getter]
    fn prefix(&self) -> &str {
        &self.core.prefix
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.core.is_closed()
    }

    /// Ends it: loops over it end, and its callback is called no more.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        gate::close(py, self.closing())
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Change>> {
        match self.core.take(py, &WaitLimit::endless()) {
            Ok(told) => Change::new(py, told, &self.core.types).map(Some),
            Err(Stop::Error(Error::Closed { .. })) if self.core.is_closed() => Ok(None),
            Err(stop) => Err(stop.into_err(py)),
        }
    }

    fn __anext__(slf: Py<Self>) -> Next {
        Next::new(Changes { watch: slf, iterates: true })
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        gate::exit(exception, self.closing())
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Watch of {:?}, by node {}>", self.core.prefix, self.node.name)
    }
}
