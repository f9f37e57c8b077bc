//! `rnet.Publisher`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rnet::{Error, InterruptedWait, Interrupter, MessageType, OwnedLoan};

use crate::batch;
use crate::buffer::Bytes;
use crate::callback::Callback;
use crate::codec::Codec;
use crate::drop_without_gil::drop_without_gil;
use crate::errors::{self, OrRaise};
use crate::events;
use crate::fair_mutex::{FairMutex, FairMutexGuard};
use crate::fork::{ForkGuard, ProcessOwned};
use crate::handle::CallbackHandle;
use crate::loan::Loan;
use crate::lock::lock;
use crate::members::Member;
use crate::meta::{self, GapTuple, OriginTuple};
use crate::node_core::NodeCore;
use crate::wait::{SIGNAL_CHECK_INTERVAL, WaitLimit, poll_until};

/// Up to this length a message is copied with the GIL held: releasing and retaking the GIL costs more than
/// the copy. Longer messages go to the pool.
const MAX_COPIED_LEN_BYTES: usize = rnet::limits::MAX_INLINE_LEN_BYTES;

pub(crate) type Inner = rnet::Publisher<[u8]>;

/// The wait for capacity that all attempts to send one message share; attempts of another thread may come in
/// between.
#[derive(Default)]
pub(crate) struct WaitProgress(Option<InterruptedWait>);

/// State shared by the Python object, its loans and its node.
pub(crate) struct PublisherCore {
    topic: String,
    inner: FairMutex<Option<ProcessOwned<Inner>>>,
    /// Ends a send that waits for capacity.
    interrupter: Interrupter,
    fork_guard: ForkGuard,
    /// Loans that ended while another thread had the lock.
    returned: Mutex<Vec<OwnedLoan>>,
    closed: AtomicBool,
    /// Open loans; their memory belongs to the publisher.
    open_loans: AtomicU64,
    /// Loans that were copied because a view of them still existed.
    pub(crate) copied_loan_count: AtomicU64,
}

impl PublisherCore {
    pub(crate) fn new(inner: Inner) -> Arc<PublisherCore> {
        Arc::new(PublisherCore {
            topic: inner.topic().to_owned(),
            interrupter: inner.interrupter(),
            inner: FairMutex::new(Some(ProcessOwned::new(inner))),
            fork_guard: ForkGuard::here(),
            returned: Mutex::default(),
            closed: AtomicBool::new(false),
            open_loans: AtomicU64::new(0),
            copied_loan_count: AtomicU64::new(0),
        })
    }

    pub(crate) fn topic(&self) -> &str {
        &self.topic
    }

    fn closed_error(&self) -> Error {
        Error::Closed { what: self.fork_guard.name(format!("the publisher of {}", self.topic)) }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.fork_guard.is_from_parent() || self.closed.load(Ordering::Acquire)
    }

    /// Runs `act` on the publisher, in turn with other threads. `Interrupted` means: check for signals, then
    /// try again with the same `waited`. Call it without the GIL.
    pub(crate) fn with<R>(
        &self,
        waited: &mut WaitProgress,
        act: impl FnOnce(&mut Inner) -> rnet::Result<R>,
    ) -> rnet::Result<R> {
        if self.fork_guard.is_from_parent() {
            // Its lock may be held by a thread that exists only in the parent.
            return Err(self.closed_error());
        }
        // After each interruption of this wait the caller handles signals, and then resumes it.
        let mut guard =
            self.inner.lock_in_turn(SIGNAL_CHECK_INTERVAL)?.ok_or(Error::Interrupted)?;
        self.act(&mut guard, |inner| {
            inner.resume_wait(waited.0);
            let result = act(inner);
            waited.0 = inner.interrupted_wait();
            result
        })
    }

    /// Like [`PublisherCore::with`], but ahead of senders, and not interrupted by signals.
    fn with_priority<R>(&self, act: impl FnOnce(&mut Inner) -> rnet::Result<R>) -> rnet::Result<R> {
        if self.fork_guard.is_from_parent() {
            return Err(self.closed_error());
        }
        self.act(&mut self.lock_with_priority(), act)
    }

    /// The result of `act` for the publisher, like [`PublisherCore::with_priority`], without the GIL.
    fn query<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Inner) -> R + Send,
    ) -> PyResult<R> {
        py.detach(|| self.with_priority(|inner| Ok(act(inner)))).or_raise(py)
    }

    /// A send that waits for capacity keeps the lock for a second, or for the duration of one attempt.
    fn lock_with_priority(&self) -> FairMutexGuard<'_, Option<ProcessOwned<Inner>>> {
        self.inner.lock_briefly(|| ())
    }

    fn act<R>(
        &self,
        inner: &mut Option<ProcessOwned<Inner>>,
        act: impl FnOnce(&mut Inner) -> rnet::Result<R>,
    ) -> rnet::Result<R> {
        match inner {
            Some(inner) if !self.is_closed() => act(inner),
            _ => Err(self.closed_error()),
        }
    }

    /// Like [`PublisherCore::with`], without waiting and with the GIL held; `None` if another thread has the
    /// lock.
    fn try_with<R>(
        &self,
        act: impl FnOnce(&mut Inner) -> rnet::Result<R>,
    ) -> Option<rnet::Result<R>> {
        self.inner.try_lock().map(|mut guard| self.act(&mut guard, act))
    }

    /// Runs `act` without the GIL. After signals have been handled, it runs again.
    pub(crate) fn with_detached<R: Send>(
        &self,
        py: Python<'_>,
        act: impl Fn(&mut Inner) -> rnet::Result<R> + Sync,
    ) -> PyResult<R> {
        let mut waited = WaitProgress::default();
        poll_until(py, None, |_| self.with(&mut waited, &act))?.or_raise(py)
    }

    /// Lends memory, after taking back the loans that were returned meanwhile. Also returns its address.
    pub(crate) fn lend(&self, py: Python<'_>, len: usize) -> PyResult<(OwnedLoan, usize)> {
        self.with_detached(py, |inner| {
            self.drop_returned_loans(inner);
            let mut loan = inner.loan_owned(len)?;
            let at = inner.loaned(&mut loan).as_mut_ptr() as usize;
            self.open_loans.fetch_add(1, Ordering::Relaxed);
            Ok((loan, at))
        })
    }

    /// Called when the loan was sent or dropped.
    pub(crate) fn loan_ended(&self) {
        self.open_loans.fetch_sub(1, Ordering::Relaxed);
    }

    /// Ends a loan without sending it. Never waits.
    pub(crate) fn return_loan(&self, loan: OwnedLoan) {
        lock(&self.returned).push(loan);
        self.loan_ended();
        let Some(mut guard) = self.inner.try_lock() else { return };
        if let Some(inner) = guard.as_mut() {
            self.drop_returned_loans(inner);
        }
        if self.is_closed() && self.open_loans.load(Ordering::Relaxed) == 0 {
            let inner = guard.take();
            drop(guard);
            drop_without_gil(inner);
        }
    }

    fn drop_returned_loans(&self, inner: &mut Inner) {
        let returned = std::mem::take(&mut *lock(&self.returned));
        for loan in returned {
            inner.drop_loan(loan);
        }
    }
}

impl Member for PublisherCore {
    /// Closes the publisher. Memory with views stays valid while the views exist; the last one drops the
    /// publisher.
    fn close(&self) {
        if self.fork_guard.is_from_parent() {
            return;
        }
        self.closed.store(true, Ordering::Release);
        // A send that waits for capacity has the lock. It is retried, and then finds the publisher closed.
        self.interrupter.interrupt();
        let mut guard = self.lock_with_priority();
        if self.open_loans.load(Ordering::Relaxed) == 0 {
            let inner = guard.take();
            drop(guard);
            drop(inner);
        }
    }
}

impl Drop for PublisherCore {
    fn drop(&mut self) {
        let inner = self.inner.try_lock().and_then(|mut guard| guard.take());
        if let Some(inner) = inner {
            drop_without_gil(inner);
        }
    }
}

/// Sends messages on one topic. Created by `Node.publisher`.
///
/// Any thread may use it; concurrent sends wait for each other.
///
/// >>> jobs = node.publisher("/jobs", reliable=True, on_full=rnet.Wait(5))
/// >>> worker = node.subscriber("/jobs", reliable=True)
/// >>> jobs.wait_for_subscribers()
/// >>> jobs.send(b"weld")
/// >>> bytes(worker.recv(timeout=10))
/// b'weld'
#[pyclass(frozen, module = "rnet", weakref)]
pub(crate) struct Publisher {
    core: Arc<PublisherCore>,
    codec: Codec,
    /// Id of the publisher, which each of its messages carries.
    #[pyo3(get)]
    id: u64,
    /// Keeps the node's callbacks running.
    _node: Arc<NodeCore>,
}

impl Publisher {
    pub(crate) fn new(
        core: Arc<PublisherCore>,
        id: u64,
        codec: Codec,
        node: Arc<NodeCore>,
    ) -> Publisher {
        Publisher { core, codec, id, _node: node }
    }

    fn send_bytes(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        if bytes.len() <= MAX_COPIED_LEN_BYTES
            && let Some(sent) = self.core.try_with(|inner| inner.try_send(bytes))
            && sent.or_raise(py)?
        {
            return Ok(());
        }
        self.core.with_detached(py, |inner| inner.send(bytes))
    }
}

#[pymethods]
impl Publisher {
    /// Sends one message: an object with the buffer protocol (bytes, bytearray, memoryview, numpy array,
    /// ctypes structure), or an object of the topic's type.
    ///
    /// Optional metadata: `origin` of a forwarded message, an Origin; `source_ns`, a time in ns since 1970
    /// UTC; `correlation`, a number that links it to another message; `gap`, a KnownGap: messages missing
    /// directly before it, which each subscriber counts as lost. A Sample has attributes of these names.
    ///
    /// If it raises, nothing was sent: FullError, OutOfMemoryError, MessageTooLargeError, ClosedError, BadValueError.
    #[pyo3(signature = (message, /, *, origin = None, source_ns = None, correlation = None, gap = None))]
    fn send(
        slf: &Bound<'_, Self>,
        message: &Bound<'_, PyAny>,
        origin: Option<OriginTuple>,
        source_ns: Option<i64>,
        correlation: Option<u64>,
        gap: Option<GapTuple>,
    ) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let plain = origin.is_none() && source_ns.is_none() && correlation.is_none();
        if !plain || gap.is_some() {
            let meta = meta::meta(py, origin, source_ns, correlation, gap)?;
            let memory = this.codec.bytes(message, this.core.topic())?;
            let bytes = memory.as_slice();
            return this.core.with_detached(py, |inner| inner.send_with(bytes, meta));
        }
        if this.codec.is_raw()
            && let Ok(bytes) = message.cast_exact::<PyBytes>()
        {
            return this.send_bytes(py, bytes.as_bytes());
        }
        let object = this.codec.encode(message, this.core.topic())?;
        if let Some(send) = &this.codec.send {
            return send.bind(py).call1((slf, object)).map(drop);
        }
        this.send_bytes(py, Bytes::of(&object)?.as_slice())
    }

    /// Replaces the last will that was set with `last_will` when the publisher was opened; None removes it.
    ///
    /// Raises BadValueError if the publisher was opened without a last will, or if the message has more than 4096
    /// bytes; the previous will then stays.
    #[pyo3(signature = (message, /))]
    fn set_last_will(&self, py: Python<'_>, message: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let Some(message) = message else {
            return self.core.with_detached(py, |inner| inner.clear_last_will());
        };
        let memory = self.codec.bytes(message, self.core.topic())?;
        let bytes = memory.as_slice();
        self.core.with_detached(py, |inner| inner.set_last_will(bytes))
    }

    /// Makes each subscriber count `size` messages as lost with this cause ("overrun", "link", "restart",
    /// "detached"): messages known to be missing before the next one. Sends nothing.
    #[pyo3(signature = (cause, size))]
    fn publish_gap(&self, py: Python<'_>, cause: &str, size: u64) -> PyResult<()> {
        let cause = meta::cause_of(py, cause)?;
        self.core.with_detached(py, |inner| inner.publish_gap(cause, size))
    }

    /// Sends many messages with one call, each row of an array as one message; returns the number sent.
    ///
    /// On a topic with a type, `messages` is a numpy array of the type's dtype, or an array of the ctypes
    /// structure (`(Point * n)(...)`). On a raw topic it is any C-contiguous array of one or more dimensions;
    /// message i is `messages[i]`.
    ///
    /// It is equivalent to calling `send` for each in order. If one cannot be sent, the error of `send` is
    /// raised with an attribute `sent`, the number sent before it; `messages[error.sent:]` were not sent. The
    /// same applies to exceptions of signal handlers, and to ClosedError if another thread closes the publisher
    /// meanwhile. Messages of other threads may be interleaved.
    #[pyo3(signature = (messages, /))]
    fn send_many(&self, py: Python<'_>, messages: &Bound<'_, PyAny>) -> PyResult<usize> {
        let rows = self.codec.rows(py, self.core.topic())?;
        batch::send(&self.core, rows, messages)
    }

    /// Lends memory to be filled in place and then sent: `with pub.loan(n) as buf: buf[:] = ...`.
    ///
    /// `len` is in bytes; it may be omitted if the topic has a type of fixed length.
    #[pyo3(signature = (len = None))]
    fn loan(&self, py: Python<'_>, len: Option<usize>) -> PyResult<Loan> {
        let fixed = match &self.codec.message_type {
            MessageType::Plain(plain) if !plain.tail => Some(plain.size),
            MessageType::Plain(_) | MessageType::Raw | MessageType::Protobuf(_) => None,
        };
        let Some(len) = len.or(fixed) else {
            return Err(errors::bad_value(py, "loan", "pass the number of bytes: loan(len)"));
        };
        Loan::open(py, self.core.clone(), len)
    }

    /// Waits until at least `n` subscribers are connected: messages sent from then on reach them.
    #[pyo3(signature = (n = 1, *, timeout = None))]
    fn wait_for_subscribers(&self, py: Python<'_>, n: usize, timeout: Option<f64>) -> PyResult<()> {
        let changes = self.core.query(py, |inner| inner.match_changes())?;
        // Waits outside of the lock: other threads may send meanwhile.
        let wait = |slice| {
            let seen = changes.count();
            let now = |inner: &mut Inner| inner.wait_for_subscribers_timeout(n, Duration::ZERO);
            match self.core.with_priority(now) {
                Err(Error::Timeout { .. }) => changes.wait(seen, slice)?,
                result => return result,
            }
            self.core.with_priority(now)
        };
        WaitLimit::new(py, timeout)?.run(py, wait)
    }

    /// Calls `callback` with a MatchEvent when a subscriber joins, leaves, dies or is incompatible.
    #[pyo3(signature = (callback, /))]
    fn on_match(&self, py: Python<'_>, callback: Callback) -> PyResult<CallbackHandle> {
        let add = |hook| self.core.query(py, |inner| inner.on_match(hook));
        CallbackHandle::for_events(py, callback, events::matched, add)
    }

    /// Calls `callback` with a DeadlineMissed when a deadline period has ended without a message.
    #[pyo3(signature = (callback, /))]
    fn on_deadline(&self, py: Python<'_>, callback: Callback) -> PyResult<CallbackHandle> {
        let add = |hook| self.core.query(py, |inner| inner.on_deadline(hook));
        CallbackHandle::for_events(py, callback, events::deadline_missed, add)
    }

    /// Asserts liveliness without sending, for publishers with liveliness_lease.
    fn assert_alive(&self, py: Python<'_>) -> PyResult<()> {
        self.core.with_detached(py, |inner| inner.assert_alive())
    }

    /// Number of deadline periods without a message so far.
    #[getter]
    fn deadline_missed(&self, py: Python<'_>) -> PyResult<u64> {
        self.core.with_detached(py, |inner| Ok(inner.deadline_missed()))
    }

    /// Number of connected subscribers now.
    #[getter]
    fn subscriber_count(&self, py: Python<'_>) -> PyResult<usize> {
        self.core.with_detached(py, |inner| Ok(inner.subscriber_count()))
    }

    /// Messages sent so far.
    #[getter]
    fn sent(&self, py: Python<'_>) -> PyResult<u64> {
        self.core.with_detached(py, |inner| Ok(inner.sent()))
    }

    /// Bytes of shared memory that the publisher uses now.
    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.core.with_detached(py, |inner| Ok(inner.memory_bytes()))
    }

    /// Errors of incompatible subscribers, oldest first.
    #[getter]
    fn incompatible(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let found = self.core.with_detached(py, |inner| Ok(inner.incompatible()))?;
        Ok(found.iter().map(|e| errors::raise(py, e).into_value(py).into_any()).collect())
    }

    /// Number of loans that were copied because a view of them outlived the loan.
    #[getter]
    fn copied_loan_count(&self) -> u64 {
        self.core.copied_loan_count.load(Ordering::Relaxed)
    }

    /// Topic of the publisher.
    #[getter]
    fn topic(&self) -> &str {
        self.core.topic()
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.core.is_closed()
    }

    /// Leaves the topic. Readers can still receive what was sent. A send in another thread that waits for
    /// slow subscribers raises ClosedError.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.core.close());
    }

    fn __repr__(&self) -> String {
        format!("<rnet.Publisher of {}>", self.core.topic())
    }
}
