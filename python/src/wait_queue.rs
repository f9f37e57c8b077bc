//! The line of those who wait for messages of one subscriber, or changes of one watch: tasks of
//! asyncio, and the threads that wait at the same time as a task.
//!
//! **To wake is not to give.** A waiter that is woken has nothing yet: it looks by itself when it
//! runs, and what it finds is taken at that moment. A task that is cancelled, or a loop that ends,
//! between the two has therefore taken nothing, whatever the moment.
//!
//! **Nobody is forgotten.** While somebody is in the line, either the stream of rnet is armed (it
//! wakes the line once there is something), or one who was woken has not looked yet. So whoever
//! leaves after it was woken, with a message or without, calls [`wake_or_arm`], which wakes the next
//! ones or arms the stream. A call too many does no harm.
//!
//! Woken are the oldest task of each event loop and the oldest thread. A loop that is stopped, or
//! busy with something else, thus keeps nothing from the others; the loser of two goes back to the
//! front. Who comes while others are on their way looks at once, and may be ahead of them, as with
//! `asyncio.Queue`.
//!
//! A thread that waits alone is not in the line: it waits with the lock of the subscriber (`fair_mutex`).
//!
//! A loop that waits for descriptors has an [`Event`] beside the line. It is raised when the line is woken,
//! and stays so until a look finds nothing; while it is lowered the stream is armed, as for a waiter.

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

/// A task may take this many messages without letting its event loop run in between.
const MAX_WITHOUT_YIELD: u32 = 64;

/// What tasks and threads may wait for in a line.
pub(crate) trait Pollable: Send + Sync + 'static {
    fn wait_queue(&self) -> &WaitQueue;

    /// Whether there may be something to take, or nothing will come any more. If not, `waker` is
    /// woken once there is. Called without the GIL.
    fn poll_ready(&self, waker: &Waker) -> bool;

    /// Whether it belongs to the process that this one was forked from, whose threads may hold its
    /// locks.
    fn is_from_parent(&self) -> bool;
}

/// The future of an event loop that a task sleeps on; called by the loop, it wakes the task.
#[pyclass(frozen, module = "rnet")]
struct TaskWaker {
    event_loop: Py<PyAny>,
    future: Py<PyAny>,
}

#[pymethods]
impl TaskWaker {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        // A task that was cancelled has been woken by that.
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

/// The line.
#[derive(Default)]
pub(crate) struct WaitQueue {
    /// Never held while another lock or the GIL is taken.
    queue: Mutex<VecDeque<Waiter>>,
    next_id: AtomicU64,
    /// What the stream wakes.
    waker: OnceLock<Waker>,
    /// Messages that tasks took since one of them let its loop run.
    since_yield: AtomicU32,
    /// What a loop waits for, once it has asked for its descriptor.
    event: OnceLock<Event>,
}

impl WaitQueue {
    /// Whether somebody waits in the line.
    pub(crate) fn has_waiters(&self) -> bool {
        !lock(&self.queue).is_empty()
    }

    /// Whether the stream is to be armed, for somebody in the line or for a loop.
    fn must_arm(&self) -> bool {
        self.event.get().is_some_and(|event| !event.is_raised()) || self.has_waiters()
    }

    /// How long a wait with the lock may be whose limit is `limit`: who is in the line is not served
    /// meanwhile.
    pub(crate) fn max_locked_wait(&self, limit: Duration) -> Duration {
        if self.has_waiters() { Duration::ZERO } else { limit }
    }

    /// Whether the task that asks has to let its event loop run before it takes the next message.
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

    /// Takes a waiter out of the line; `false` if it is not there, because it was woken.
    pub(crate) fn remove(&self, id: u64) -> bool {
        let mut line = lock(&self.queue);
        let at = line.iter().position(|waiter| waiter.id == id);
        let left = at.and_then(|at| line.remove(at));
        drop(line);
        left.is_some()
    }

    /// Whether a waiter is in the line still, and was not woken.
    pub(crate) fn is_waiting(&self, id: u64) -> bool {
        lock(&self.queue).iter().any(|waiter| waiter.id == id)
    }

    /// Puts the running task into the line and gives what it yields to its event loop; the caller
    /// calls [`wake_or_arm`] next. `in_front`: it was woken, and found nothing.
    pub(crate) fn enqueue_task<'py>(
        &self,
        py: Python<'py>,
        in_front: bool,
    ) -> PyResult<(u64, Bound<'py, PyAny>)> {
        let event_loop = py.import("asyncio")?.call_method0("get_running_loop")?;
        let future = event_loop.call_method0("create_future")?;
        // The first step of awaiting it: it comes back, marked as what a task sleeps on.
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

    /// Wakes everybody: there is nothing to wait for any more. Call it without the GIL.
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

    /// Whether a look that finds nothing has to call [`mark_drained`].
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
                let told = crate::interpreter::attach(|py| {
                    let event_loop = task_waker.get().event_loop.clone_ref(py);
                    event_loop.call_method1(py, "call_soon_threadsafe", (task_waker,)).is_ok()
                });
                if told == Some(false) {
                    // The loop is closed: none of its tasks will run again.
                    self.remove_loop(waiter.event_loop);
                }
            }
        }
    }
}

/// Wakes the line of `A`.
struct QueueWaker<A: ?Sized>(Weak<A>);

impl<A: Pollable + ?Sized> Wake for QueueWaker<A> {
    fn wake(self: Arc<Self>) {
        if let Some(of) = self.0.upgrade() {
            of.wait_queue().wake();
        }
    }
}

/// Sees to it that the line is woken once there is something. Call it without the GIL, after whatever
/// may have taken a message, or the arming, from those in the line.
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

/// A look has found nothing: who waits for the descriptor is to be told of what comes from here on. Call it
/// without the GIL.
pub(crate) fn mark_drained<A: Pollable + ?Sized>(of: &Arc<A>) {
    if !of.is_from_parent() && of.wait_queue().event.get().is_some_and(Event::lower) {
        wake_or_arm(of);
    }
}

/// A descriptor that is readable while there may be something. Call it without the GIL.
pub(crate) fn fileno<A: Pollable>(of: &Arc<A>) -> rnet::Result<RawFd> {
    let event = &of.wait_queue().event;
    if event.get().is_none() {
        // Of two threads that make one, the first wins.
        let _ = event.set(Event::new()?);
    }
    wake_or_arm(of);
    let closed = || Error::Closed { what: "the descriptor".to_owned() };
    event.get().map(|event| event.as_fd().as_raw_fd()).ok_or_else(closed)
}

/// The place of a thread in the line.
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

/// Waits for `limit` until `attempt` has another result than a time-out. It is told how long it may
/// wait by itself, and asks [`WaitQueue::max_locked_wait`] once it has the lock: beside others it only
/// looks, and the wait is here, in the line. Call it without the GIL.
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
            // Those beside us have left meanwhile, or the time is over.
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
