//! What subscribers and watches are for async code, under any executor: a dispatch thread of the node waits for the
//! source and wakes the task.

use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use rnet_core::{Error, Lane, Result};

use crate::awaited::Awaited;
use crate::core::NodeCore;
use crate::dispatch::Task;
use crate::ready_fd::ReadyFd;
use crate::sync::lock;

/// What a [`WakeStream`] takes from.
pub trait Source: Send + 'static {
    /// Takes over the wake-ups of the source.
    fn set_bell(&mut self, bell: u64);
    /// Whether there is something to take; may be wrong in saying yes.
    fn has_next(&mut self) -> bool;
    /// Ahead of a sleep of the task; whether the dispatch thread has to look once more, now that there is somebody to
    /// wake.
    fn before_sleep(&self) -> bool {
        true
    }
    fn awaited(&self) -> &dyn Awaited;
    /// As [`Task::came`].
    fn came(&mut self) -> Option<(u64, u64)> {
        None
    }
}

struct Shared<S> {
    /// `None` once the stream has ended, or is its source again.
    source: Option<S>,
    waker: Option<Waker>,
}

/// Wakes the async task when its source has something.
struct WakeTask<S> {
    id: u64,
    shared: Arc<Mutex<Shared<S>>>,
}

impl<S: Source> Task for WakeTask<S> {
    fn id(&self) -> u64 {
        self.id
    }
    fn describe(&self) -> String {
        "the wake-up of a stream".to_owned()
    }
    fn set_bell(&mut self, bell: u64) {
        if let Some(source) = &mut lock(&self.shared).source {
            source.set_bell(bell);
        }
    }
    fn lane(&self) -> Option<Lane> {
        // A waker takes no time, so it may stay where it began.
        None
    }
    fn run(&mut self, _lane: Lane, _must_yield: &dyn Fn() -> bool) -> bool {
        let mut shared = lock(&self.shared);
        // Without a waker nobody waits.
        if shared.waker.is_none() || !shared.source.as_mut().is_some_and(S::has_next) {
            return false;
        }
        let waker = shared.waker.take();
        drop(shared);
        // A waker of the executor's that panics must not end the thread of all others.
        let wake = |waker: Waker| catch_unwind(AssertUnwindSafe(|| waker.wake()));
        waker.map(wake).is_some()
    }
    fn awaited(&self, look: &mut dyn FnMut(&dyn Awaited)) {
        // Without a waker nobody waits, and publishers need not ring.
        let shared = lock(&self.shared);
        let source = shared.source.iter().filter(|_| shared.waker.is_some());
        source.for_each(|source| look(source.awaited()));
    }
    fn came(&mut self) -> Option<(u64, u64)> {
        lock(&self.shared).source.as_mut()?.came()
    }
    fn is_over(&self) -> bool {
        lock(&self.shared).source.is_none()
    }
    fn move_to(self: Box<Self>, _lane: Lane) {}
}

/// A source, and the task that waits for it.
pub struct WakeStream<S: Source> {
    shared: Arc<Mutex<Shared<S>>>,
    lane: Lane,
    core: Arc<NodeCore>,
    ready: ReadyFd,
}

impl<S: Source> WakeStream<S> {
    pub fn new(core: Arc<NodeCore>, lane: Lane, source: S) -> WakeStream<S> {
        let shared = Arc::new(Mutex::new(Shared { source: Some(source), waker: None }));
        // A process that was forked since has no threads of the node; what its stream gives is `Closed`.
        if !core.state.fork_guard().is_parents() {
            let (id, shared) = (core.state.next_task(), shared.clone());
            core.state.dispatcher(lane).add(Box::new(WakeTask { id, shared }));
        }
        WakeStream { shared, lane, core, ready: ReadyFd::default() }
    }

    /// Asked before its lock is taken: a thread that is not here may hold it.
    pub fn is_parents(&self) -> bool {
        self.core.state.fork_guard().is_parents()
    }

    /// What `act` says of the source; nothing of one that is not here any more.
    pub fn look<R: Default>(&self, act: impl FnOnce(&mut S) -> R) -> R {
        if self.is_parents() {
            return R::default();
        }
        lock(&self.shared).source.as_mut().map(act).unwrap_or_default()
    }

    /// The source again; a task that waits in it is not woken any more.
    ///
    /// # Errors
    /// `Closed` in a forked child.
    pub fn into_source(self) -> Result<(S, Arc<NodeCore>)> {
        self.core.state.check_fork()?;
        let source = lock(&self.shared).source.take();
        Ok((source.ok_or_else(closed)?, self.core.clone()))
    }

    /// What `take` finds in the source. A task that is to be woken stays so.
    ///
    /// # Errors
    /// Those of `take`; `Closed` in a forked child.
    pub fn try_next<R>(
        &mut self,
        take: impl FnOnce(&mut S) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        self.core.state.check_fork()?;
        let next = take(lock(&self.shared).source.as_mut().ok_or_else(closed)?)?;
        if next.is_none() {
            let ready = std::mem::take(&mut self.ready);
            ready.drained(|context| self.poll_ready(context));
            self.ready = ready;
        }
        Ok(next)
    }

    /// A descriptor that is readable when there may be something to take.
    ///
    /// # Errors
    /// `LimitReached` where the process has no descriptor left; `Closed` in a forked child.
    pub fn fd(&mut self) -> Result<BorrowedFd<'_>> {
        self.core.state.check_fork()?;
        let mut ready = std::mem::take(&mut self.ready);
        let opened = ready.open(|context| self.poll_ready(context));
        self.ready = ready;
        opened?;
        self.ready.get().ok_or_else(closed)
    }

    /// Whether there is something to take: a result, or an error. If not, the task is woken once there is.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_parents() {
            return Poll::Ready(());
        }
        let mut shared = lock(&self.shared);
        let Shared { source: Some(source), waker } = &mut *shared else { return Poll::Ready(()) };
        if source.has_next() {
            return Poll::Ready(());
        }
        *waker = Some(context.waker().clone());
        let look = source.before_sleep();
        drop(shared);
        if look {
            self.core.state.dispatcher(self.lane).wake();
        }
        Poll::Pending
    }

    /// What `take` finds; the task is woken once there may be something.
    pub fn poll_next<R>(
        &mut self,
        context: &mut Context<'_>,
        take: impl FnOnce(&mut S) -> Result<Option<R>>,
    ) -> Poll<Result<R>> {
        if let Some(result) = self.try_next(take).transpose() {
            return Poll::Ready(result);
        }
        if self.poll_ready(context).is_ready() {
            // It came just now. The executor decides who is next.
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

fn closed() -> Error {
    Error::closed("the stream")
}

impl<S: Source> Drop for WakeStream<S> {
    fn drop(&mut self) {
        if self.is_parents() {
            return;
        }
        // Dropped with the lock free: to take the endpoint back takes other locks.
        let mut shared = lock(&self.shared);
        let ended = (shared.source.take(), shared.waker.take());
        drop(shared);
        drop(ended);
        // The task is over now. The thread is not waited for: a callback of it may be waiting for this drop.
        self.core.state.dispatcher(self.lane).wake();
    }
}
