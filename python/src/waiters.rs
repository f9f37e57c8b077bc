//! The line of those who wait for messages of one subscriber, or changes of one watch: tasks of
//! asyncio, and the threads that wait at the same time as a task.
//!
//! **To wake is not to give.** A waiter that is woken has nothing yet: it looks by itself when it
//! runs, and what it finds is taken at that moment. A task that is cancelled, or a loop that ends,
//! between the two has therefore taken nothing, whatever the moment.
//!
//! **Nobody is forgotten.** While somebody is in the line, either the stream of rnet is armed (it
//! wakes the line once there is something), or one who was woken has not looked yet. So whoever
//! leaves after it was woken, with a message or without, calls [`pass_on`], which wakes the next
//! ones or arms the stream. A call too many does no harm.
//!
//! Woken are the oldest task of each event loop and the oldest thread. A loop that is stopped, or
//! busy with something else, thus keeps nothing from the others; the loser of two goes back to the
//! front. Who comes while others are on their way looks at once, and may be ahead of them, as with
//! `asyncio.Queue`.
//!
//! A thread that waits alone is not in the line: it waits with the lock of the subscriber (`fair`).
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

use crate::futex::{Parker, Slept};
use crate::lock::lock;

/// A task may take this many messages without letting its event loop run in between.
const MAX_UNBROKEN: u32 = 64;

/// What tasks and threads may wait for in a line.
pub(crate) trait Awaited: Send + Sync + 'static {
    fn waiters(&self) -> &Waiters;

    /// Whether there may be something to take, or nothing will come any more. If not, `waker` is
    /// woken once there is. Called without the GIL.
    fn poll_ready(&self, waker: &Waker) -> bool;

    /// Whether it belongs to the process that this one was forked from, whose threads may hold its
    /// locks.
    fn is_from_parent(&self) -> bool;
}

/// The future of an event loop that a task sleeps on; called by the loop, it wakes the task.
#[pyclass(frozen, module = "rnet")]
struct Sleeper {
    event_loop: Py<PyAny>,
    future: Py<PyAny>,
}

#[pymethods]
impl Sleeper {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        // A task that was cancelled has been woken by that.
        if !self.future.call_method0(py, "done")?.is_truthy(py)? {
            self.future.call_method1(py, "set_result", (py.None(),))?;
        }
        Ok(())
    }
}

enum Who {
    Task(Py<Sleeper>),
    Thread(Parker),
}

struct Waiter {
    id: u64,
    /// The address of its event loop; 0 for threads.
    event_loop: usize,
    who: Who,
}

/// The line.
#[derive(Default)]
pub(crate) struct Waiters {
    /// Never held while another lock or the GIL is taken.
    line: Mutex<VecDeque<Waiter>>,
    next_id: AtomicU64,
    /// What the stream wakes.
    waker: OnceLock<Waker>,
    /// Messages that tasks took since one of them let its loop run.
    unbroken: AtomicU32,
    /// What a loop waits for, once it has asked for its descriptor.
    event: OnceLock<Event>,
}

impl Waiters {
    /// Whether somebody waits in the line.
    pub(crate) fn any(&self) -> bool {
        !lock(&self.line).is_empty()
    }

    /// Whether the stream is to be armed, for somebody in the line or for a loop.
    fn is_awaited(&self) -> bool {
        self.event.get().is_some_and(|event| !event.is_raised()) || self.any()
    }

    /// How long a wait with the lock may be whose limit is `limit`: who is in the line is not served
    /// meanwhile.
    pub(crate) fn alone_for(&self, limit: Duration) -> Duration {
        if self.any() { Duration::ZERO } else { limit }
    }

    /// Whether the task that asks has to let its event loop run before it takes the next message.
    pub(crate) fn must_break(&self) -> bool {
        let must = self.unbroken.fetch_add(1, Ordering::Relaxed) >= MAX_UNBROKEN;
        if must {
            self.unbroken.store(0, Ordering::Relaxed);
        }
        must
    }

    fn enter(&self, event_loop: usize, who: Who, in_front: bool) -> u64 {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let waiter = Waiter { id, event_loop, who };
        let mut line = lock(&self.line);
        if in_front {
            line.push_front(waiter)
        } else {
            line.push_back(waiter)
        }
        id
    }

    /// Takes a waiter out of the line; `false` if it is not there, because it was woken.
    pub(crate) fn leave(&self, id: u64) -> bool {
        let mut line = lock(&self.line);
        let at = line.iter().position(|waiter| waiter.id == id);
        let left = at.and_then(|at| line.remove(at));
        drop(line);
        left.is_some()
    }

    /// Whether a waiter is in the line still, and was not woken.
    pub(crate) fn is_waiting(&self, id: u64) -> bool {
        lock(&self.line).iter().any(|waiter| waiter.id == id)
    }

    /// Puts the running task into the line and gives what it yields to its event loop; the caller
    /// calls [`pass_on`] next. `in_front`: it was woken, and found nothing.
    pub(crate) fn enter_task<'py>(
        &self,
        py: Python<'py>,
        in_front: bool,
    ) -> PyResult<(u64, Bound<'py, PyAny>)> {
        let event_loop = py.import("asyncio")?.call_method0("get_running_loop")?;
        let future = event_loop.call_method0("create_future")?;
        // The first step of awaiting it: it comes back, marked as what a task sleeps on.
        let yielded = future.call_method0("__await__")?.call_method0("__next__")?;
        let address = event_loop.as_ptr() as usize;
        let sleeper =
            Py::new(py, Sleeper { event_loop: event_loop.unbind(), future: future.unbind() })?;
        self.unbroken.store(0, Ordering::Relaxed);
        Ok((self.enter(address, Who::Task(sleeper), in_front), yielded))
    }

    /// Wakes the oldest of each event loop and the oldest thread. Call it without the GIL.
    fn wake(&self) {
        self.raise();
        let mut woken = Vec::new();
        let mut line = lock(&self.line);
        let mut at = 0;
        while let Some(waiter) = line.get(at) {
            if woken.iter().any(|other: &Waiter| other.event_loop == waiter.event_loop) {
                at += 1;
            } else {
                woken.extend(line.remove(at));
            }
        }
        drop(line);
        woken.into_iter().for_each(|waiter| self.rouse(waiter));
    }

    /// Wakes everybody: there is nothing to wait for any more. Call it without the GIL.
    pub(crate) fn wake_all(&self) {
        self.raise();
        let all = std::mem::take(&mut *lock(&self.line));
        all.into_iter().for_each(|waiter| self.rouse(waiter));
    }

    fn raise(&self) {
        if let Some(event) = self.event.get() {
            event.raise();
        }
    }

    /// Whether a look that finds nothing has to call [`drained`].
    pub(crate) fn is_raised(&self) -> bool {
        self.event.get().is_some_and(Event::is_raised)
    }

    fn forget_loop(&self, event_loop: usize) {
        let mut line = lock(&self.line);
        let (gone, stay): (VecDeque<Waiter>, VecDeque<Waiter>) =
            line.drain(..).partition(|waiter| waiter.event_loop == event_loop);
        *line = stay;
        drop(line);
        drop(gone);
    }

    fn rouse(&self, waiter: Waiter) {
        match waiter.who {
            Who::Thread(thread) => thread.wake(),
            Who::Task(sleeper) => {
                let told = crate::gate::enter(|py| {
                    let event_loop = sleeper.get().event_loop.clone_ref(py);
                    event_loop.call_method1(py, "call_soon_threadsafe", (sleeper,)).is_ok()
                });
                if told == Some(false) {
                    // The loop is closed: none of its tasks will run again.
                    self.forget_loop(waiter.event_loop);
                }
            }
        }
    }
}

/// Wakes the line of `A`.
struct LineWaker<A: ?Sized>(Weak<A>);

impl<A: Awaited + ?Sized> Wake for LineWaker<A> {
    fn wake(self: Arc<Self>) {
        if let Some(of) = self.0.upgrade() {
            of.waiters().wake();
        }
    }
}

/// Sees to it that the line is woken once there is something. Call it without the GIL, after whatever
/// may have taken a message, or the arming, from those in the line.
pub(crate) fn pass_on<A: Awaited + ?Sized>(of: &Arc<A>) {
    if of.is_from_parent() || !of.waiters().is_awaited() {
        return;
    }
    let waker = of.waiters().waker.get_or_init(|| Arc::new(LineWaker(Arc::downgrade(of))).into());
    if of.poll_ready(waker) {
        of.waiters().wake();
    }
}

/// A look has found nothing: who waits for the descriptor is to be told of what comes from here on. Call it
/// without the GIL.
pub(crate) fn drained<A: Awaited + ?Sized>(of: &Arc<A>) {
    if !of.is_from_parent() && of.waiters().event.get().is_some_and(Event::lower) {
        pass_on(of);
    }
}

/// A descriptor that is readable while there may be something. Call it without the GIL.
pub(crate) fn fileno<A: Awaited>(of: &Arc<A>) -> rnet::Result<RawFd> {
    let event = &of.waiters().event;
    if event.get().is_none() {
        // Of two threads that make one, the first wins.
        let _ = event.set(Event::new()?);
    }
    pass_on(of);
    let closed = || Error::Closed { what: "the descriptor".to_owned() };
    event.get().map(|event| event.as_fd().as_raw_fd()).ok_or_else(closed)
}

/// The place of a thread in the line.
struct Turn<'a> {
    waiters: &'a Waiters,
    id: u64,
    thread: Parker,
}

impl<'a> Turn<'a> {
    fn new(waiters: &'a Waiters) -> Turn<'a> {
        let thread = Parker::default();
        Turn { waiters, id: waiters.enter(0, Who::Thread(thread.clone()), false), thread }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.waiters.leave(self.id);
    }
}

/// Waits for `limit` until `attempt` has another result than a time-out. It is told how long it may
/// wait by itself, and asks [`Waiters::alone_for`] once it has the lock: beside others it only
/// looks, and the wait is here, in the line. Call it without the GIL.
pub(crate) fn wait_in_line<A: Awaited, R>(
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
        if !of.waiters().any() {
            // Those beside us have left meanwhile, or the time is over.
            turn = None;
            continue;
        }
        let next = turn.insert(Turn::new(of.waiters()));
        pass_on(of);
        match next.thread.sleep(Some(left)) {
            Slept::Woken => {}
            Slept::TimedOut => break Err(error),
            Slept::Signal => break Err(Error::Interrupted),
        }
    };
    drop(turn);
    if matches!(result, Err(Error::Timeout { .. })) {
        drained(of);
    }
    pass_on(of);
    result
}
