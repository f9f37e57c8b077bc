//! The queue of those that wait for messages of one subscriber, or changes of one watch: asyncio tasks, and
//! the threads that wait at the same time as a task.
//!
//! **A wake-up does not hand over a message.** A woken waiter checks the receiver when it runs, and takes a
//! message at that moment. So a task that is cancelled, or a loop that ends, between the two has not taken a
//! message.
//!
//! **No wake-up is lost.** While the queue is not empty, either the stream of rnet is armed (it wakes the
//! queue once an item is available), or a woken waiter has not checked yet. So each waiter that leaves after
//! a wake-up, with a message or without, calls [`wake_or_arm`], which wakes the next ones or arms the stream.
//! An extra call is harmless.
//!
//! A wake-up goes to the oldest task of each event loop and to the oldest thread. So a loop that is stopped
//! or busy does not block the others. A woken waiter that finds nothing goes back to the front. A new waiter
//! that arrives meanwhile checks at once, and may overtake the woken ones, as with `asyncio.Queue`.
//!
//! A thread that waits alone is not in the queue: it waits with the lock of the subscriber (`fair_mutex`).
//!
//! An event loop that polls descriptors uses an [`Event`] beside the queue. The event is raised when the
//! queue is woken, and stays raised until a check finds nothing. While it is lowered, the stream is armed, as
//! for a waiter.

use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use rnet::{Error, Event};

use crate::futex::{Parker, SleepEnd};
use crate::lock::lock;

/// Messages that a task may take before it must let its event loop run.
const MAX_WITHOUT_YIELD: u32 = 64;

/// A source that tasks and threads may wait for in a queue.
pub(crate) trait Pollable: Send + Sync + 'static {
    fn wait_queue(&self) -> &WaitQueue;

    /// Whether an item may be available, or the source has ended. If not, `waker` is woken once one of these
    /// is true. Called without the GIL.
    fn poll_ready(&self, waker: &Waker) -> bool;

    /// Whether it belongs to the parent of this forked process, whose threads may hold its locks.
    fn is_from_parent(&self) -> bool;
}

/// The future that a task sleeps on. When the event loop calls it, it wakes the task.
#[pyclass(frozen, module = "rnet")]
struct TaskWaker {
    event_loop: Py<PyAny>,
    future: Py<PyAny>,
}

#[pymethods]
impl TaskWaker {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        // A cancelled task is already awake.
        if !self.future.call_method0(py, "done")?.is_truthy(py)? {
            self.future.call_method1(py, "set_result", (py.None(),))?;
        }
        Ok(())
    }
}

enum WaiterKind {
    Task(Py<TaskWaker>),
    Thread(Parker),
}

struct Waiter {
    id: u64,
    /// The address of its event loop; 0 for threads.
    event_loop: usize,
    kind: WaiterKind,
}

/// The queue.
#[derive(Default)]
pub(crate) struct WaitQueue {
    /// Never held while another lock or the GIL is taken.
    queue: Mutex<VecDeque<Waiter>>,
    next_id: AtomicU64,
    /// The waker that the stream wakes.
    waker: OnceLock<Waker>,
    /// Messages that tasks took since one of them last let its loop run.
    since_yield: AtomicU32,
    /// The event that an event loop polls; set when its descriptor is requested.
    event: OnceLock<Event>,
}

impl WaitQueue {
    /// Whether the queue has waiters.
    pub(crate) fn has_waiters(&self) -> bool {
        !lock(&self.queue).is_empty()
    }

    /// Whether the stream must be armed, for a waiter in the queue or for an event loop.
    fn must_arm(&self) -> bool {
        self.event.get().is_some_and(|event| !event.is_raised()) || self.has_waiters()
    }

    /// Longest wait with the lock for a wait of `limit`: queued waiters are not served meanwhile.
    pub(crate) fn max_locked_wait(&self, limit: Duration) -> Duration {
        if self.has_waiters() { Duration::ZERO } else { limit }
    }

    /// Whether the calling task must let its event loop run before it takes the next message.
    pub(crate) fn must_yield(&self) -> bool {
        let must = self.since_yield.fetch_add(1, Ordering::Relaxed) >= MAX_WITHOUT_YIELD;
        if must {
            self.since_yield.store(0, Ordering::Relaxed);
        }
        must
    }

    fn enqueue(&self, event_loop: usize, kind: WaiterKind, in_front: bool) -> u64 {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let waiter = Waiter { id, event_loop, kind };
        let mut line = lock(&self.queue);
        if in_front {
            line.push_front(waiter)
        } else {
            line.push_back(waiter)
        }
        id
    }

    /// Removes a waiter from the queue; `false` if it was already woken.
    pub(crate) fn remove(&self, id: u64) -> bool {
        let mut line = lock(&self.queue);
        let at = line.iter().position(|waiter| waiter.id == id);
        let left = at.and_then(|at| line.remove(at));
        drop(line);
        left.is_some()
    }

    /// Whether a waiter is still in the queue and was not woken.
    pub(crate) fn is_waiting(&self, id: u64) -> bool {
        lock(&self.queue).iter().any(|waiter| waiter.id == id)
    }

    /// Adds the running task to the queue, and returns what the task must yield to its event loop. The caller
    /// calls [`wake_or_arm`] next. `in_front`: the task was woken and found nothing.
    pub(crate) fn enqueue_task<'py>(
        &self,
        py: Python<'py>,
        in_front: bool,
    ) -> PyResult<(u64, Bound<'py, PyAny>)> {
        let event_loop = py.import("asyncio")?.call_method0("get_running_loop")?;
        let future = event_loop.call_method0("create_future")?;
        // The first step of awaiting the future returns it, marked as the object that the task sleeps on.
        let yielded = future.call_method0("__await__")?.call_method0("__next__")?;
        let address = event_loop.as_ptr() as usize;
        let task_waker =
            Py::new(py, TaskWaker { event_loop: event_loop.unbind(), future: future.unbind() })?;
        self.since_yield.store(0, Ordering::Relaxed);
        Ok((self.enqueue(address, WaiterKind::Task(task_waker), in_front), yielded))
    }

    /// Wakes the oldest of each event loop and the oldest thread. Call it without the GIL.
    fn wake(&self) {
        self.raise_event();
        let mut woken = Vec::new();
        let mut line = lock(&self.queue);
        let mut at = 0;
        while let Some(waiter) = line.get(at) {
            if woken.iter().any(|other: &Waiter| other.event_loop == waiter.event_loop) {
                at += 1;
            } else {
                woken.extend(line.remove(at));
            }
        }
        drop(line);
        woken.into_iter().for_each(|waiter| self.wake_waiter(waiter));
    }

    /// Wakes all waiters: the source has ended. Call it without the GIL.
    pub(crate) fn wake_all(&self) {
        self.raise_event();
        let all = std::mem::take(&mut *lock(&self.queue));
        all.into_iter().for_each(|waiter| self.wake_waiter(waiter));
    }

    fn raise_event(&self) {
        if let Some(event) = self.event.get() {
            event.raise();
        }
    }

    /// Whether a check that finds nothing must call [`mark_drained`].
    pub(crate) fn is_raised(&self) -> bool {
        self.event.get().is_some_and(Event::is_raised)
    }

    fn remove_loop(&self, event_loop: usize) {
        let mut line = lock(&self.queue);
        let (gone, stay): (VecDeque<Waiter>, VecDeque<Waiter>) =
            line.drain(..).partition(|waiter| waiter.event_loop == event_loop);
        *line = stay;
        drop(line);
        drop(gone);
    }

    fn wake_waiter(&self, waiter: Waiter) {
        match waiter.kind {
            WaiterKind::Thread(thread) => thread.wake(),
            WaiterKind::Task(task_waker) => {
                let is_woken = crate::interpreter::attach(|py| {
                    let event_loop = task_waker.get().event_loop.clone_ref(py);
                    event_loop.call_method1(py, "call_soon_threadsafe", (task_waker,)).is_ok()
                });
                if is_woken == Some(false) {
                    // The loop is closed: none of its tasks will run again.
                    self.remove_loop(waiter.event_loop);
                }
            }
        }
    }
}

/// Wakes the queue of `A`.
struct QueueWaker<A: ?Sized>(Weak<A>);

impl<A: Pollable + ?Sized> Wake for QueueWaker<A> {
    fn wake(self: Arc<Self>) {
        if let Some(of) = self.0.upgrade() {
            of.wait_queue().wake();
        }
    }
}

/// Makes sure that the queue is woken once an item is available. Call it without the GIL, after each
/// operation that may have taken a message, or the arming, from the queued waiters.
pub(crate) fn wake_or_arm<A: Pollable + ?Sized>(of: &Arc<A>) {
    if of.is_from_parent() || !of.wait_queue().must_arm() {
        return;
    }
    let waker =
        of.wait_queue().waker.get_or_init(|| Arc::new(QueueWaker(Arc::downgrade(of))).into());
    if of.poll_ready(waker) {
        of.wait_queue().wake();
    }
}

/// Called after a check that found nothing: the descriptor then signals later items. Call it without the GIL.
pub(crate) fn mark_drained<A: Pollable + ?Sized>(of: &Arc<A>) {
    if !of.is_from_parent() && of.wait_queue().event.get().is_some_and(Event::lower) {
        wake_or_arm(of);
    }
}

/// A descriptor that is readable while an item may be available. Call it without the GIL.
pub(crate) fn fileno<A: Pollable>(of: &Arc<A>) -> rnet::Result<RawFd> {
    let event = &of.wait_queue().event;
    if event.get().is_none() {
        // If two threads create an event, the first one wins.
        let _ = event.set(Event::new()?);
    }
    wake_or_arm(of);
    let closed = || Error::Closed { what: "the descriptor".to_owned() };
    event.get().map(|event| event.as_fd().as_raw_fd()).ok_or_else(closed)
}

/// The position of a thread in the queue.
struct QueuedThread<'a> {
    wait_queue: &'a WaitQueue,
    id: u64,
    thread: Parker,
}

impl<'a> QueuedThread<'a> {
    fn new(wait_queue: &'a WaitQueue) -> QueuedThread<'a> {
        let thread = Parker::default();
        QueuedThread {
            wait_queue,
            id: wait_queue.enqueue(0, WaiterKind::Thread(thread.clone()), false),
            thread,
        }
    }
}

impl Drop for QueuedThread<'_> {
    fn drop(&mut self) {
        self.wait_queue.remove(self.id);
    }
}

/// Waits for `limit` until `attempt` returns anything but a time-out. `attempt` gets the time that it may
/// wait by itself, and asks [`WaitQueue::max_locked_wait`] once it has the lock: if others wait, it only
/// checks, and this function waits in the queue. Call it without the GIL.
pub(crate) fn wait_in_queue<A: Pollable, R>(
    of: &Arc<A>,
    limit: Duration,
    mut attempt: impl FnMut(Duration) -> rnet::Result<R>,
) -> rnet::Result<R> {
    let until = Instant::now().checked_add(limit);
    let mut turn = None;
    let result = loop {
        let left = until.map_or(limit, |until| until.saturating_duration_since(Instant::now()));
        let error = match attempt(left) {
            Err(error @ Error::Timeout { .. }) if !left.is_zero() => error,
            result => break result,
        };
        if !of.wait_queue().has_waiters() {
            // The other waiters have left meanwhile, or the time is over.
            turn = None;
            continue;
        }
        let next = turn.insert(QueuedThread::new(of.wait_queue()));
        wake_or_arm(of);
        match next.thread.sleep(Some(left)) {
            SleepEnd::Woken => {}
            SleepEnd::TimedOut => break Err(error),
            SleepEnd::Signal => break Err(Error::Interrupted),
        }
    };
    drop(turn);
    if matches!(result, Err(Error::Timeout { .. })) {
        mark_drained(of);
    }
    wake_or_arm(of);
    result
}
