//! Subscribers and watches for async code, under any executor: a dispatch thread of the node waits for the
//! source and wakes the task.
//!
//! **The descriptor of a stream** is readable while an item may be available: the dispatch thread raises an
//! [`Event`] instead of waking the task. It is level-triggered: the event stays raised until a take finds
//! nothing. It is then lowered, and the source is checked once more, so an item that arrives between the
//! check and the lowering raises it again, and is not missed.

use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use rnet_core::{Error, Lane, Result};
use rnet_shm::os::bell::Bells;
use rnet_shm::os::event::Event;

use crate::core::NodeCore;
use crate::dispatch::Task;
use crate::sync::lock;
use crate::wait_set_member::WaitSetMember;
use crate::wait_source::WaitSource;

struct StreamState<S> {
    /// `None` once the stream has ended, or was turned back into its source.
    source: Option<S>,
    waker: Option<Waker>,
}

/// Wakes the async task when its source has an item.
struct WakeTask<S> {
    id: u64,
    bells: Arc<Bells>,
    shared: Arc<Mutex<StreamState<S>>>,
}

impl<S: WaitSetMember + Send + 'static> Task for WakeTask<S> {
    fn id(&self) -> u64 {
        self.id
    }
    fn describe(&self) -> String {
        "the wake-up of a stream".to_owned()
    }
    fn set_bell(&mut self, bell: u64) {
        if let Some(source) = &mut lock(&self.shared).source {
            source.set_bell(&self.bells, bell);
        }
    }
    fn run(&mut self, _lane: Lane, _must_yield: &dyn Fn() -> bool) -> bool {
        let mut shared = lock(&self.shared);
        // Without a waker, no task waits.
        if shared.waker.is_none() || !shared.source.as_mut().is_some_and(has_next) {
            return false;
        }
        let waker = shared.waker.take();
        drop(shared);
        // A panic in the executor's waker must not end the shared thread.
        let wake = |waker: Waker| catch_unwind(AssertUnwindSafe(|| waker.wake()));
        waker.map(wake).is_some()
    }
    fn wait_sources(&self, visit: &mut dyn FnMut(&dyn WaitSource)) {
        // Without a waker, no task waits, and publishers need not ring.
        let shared = lock(&self.shared);
        let source = shared.source.iter().filter(|_| shared.waker.is_some());
        source.for_each(|source| visit(source.wait_source()));
    }
    fn take_arrival(&mut self) -> Option<(u64, u64)> {
        lock(&self.shared).source.as_mut()?.take_arrival()
    }
    fn is_finished(&self) -> bool {
        lock(&self.shared).source.is_none()
    }
}

/// A source, and the task that waits for it.
pub struct WakeStream<S: WaitSetMember + Send + 'static> {
    shared: Arc<Mutex<StreamState<S>>>,
    lane: Lane,
    core: Arc<NodeCore>,
    /// Set once the descriptor is requested.
    event: Option<Arc<Event>>,
}

impl<S: WaitSetMember + Send + 'static> WakeStream<S> {
    /// Gives the source to the dispatch thread of `lane`, which wakes the task that waits for it.
    pub fn new(core: Arc<NodeCore>, lane: Lane, source: S) -> WakeStream<S> {
        let shared = Arc::new(Mutex::new(StreamState { source: Some(source), waker: None }));
        // A forked child has no threads of the node; its stream returns `Closed`.
        if !core.state.fork_guard().is_from_parent() {
            let (id, bells) = (core.state.next_task(), core.state.own.bells().clone());
            core.state.dispatcher(lane).add(Box::new(WakeTask {
                id,
                bells,
                shared: shared.clone(),
            }));
        }
        WakeStream { shared, lane, core, event: None }
    }

    /// Checked before the lock is taken: a thread that does not exist in the child may hold it.
    pub fn is_from_parent(&self) -> bool {
        self.core.state.fork_guard().is_from_parent()
    }

    /// Calls `act` with the source; returns the default if the source is no longer here.
    pub fn with_source<R: Default>(&self, act: impl FnOnce(&mut S) -> R) -> R {
        if self.is_from_parent() {
            return R::default();
        }
        lock(&self.shared).source.as_mut().map(act).unwrap_or_default()
    }

    /// Returns the source; a task that waits in the stream is no longer woken.
    ///
    /// # Errors
    /// `Closed` in a forked child.
    pub fn into_source(self) -> Result<S> {
        self.core.state.check_fork()?;
        lock(&self.shared).source.take().ok_or_else(closed)
    }

    /// Calls `take` with the source. A registered task stays registered.
    ///
    /// # Errors
    /// The errors of `take`; `Closed` in a forked child.
    pub fn try_next<R>(
        &mut self,
        take: impl FnOnce(&mut S) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        self.core.state.check_fork()?;
        let next = take(lock(&self.shared).source.as_mut().ok_or_else(closed)?)?;
        if next.is_none()
            && let Some(event) = self.event.clone().filter(|event| event.lower())
        {
            self.arm(&event);
        }
        Ok(next)
    }

    /// A descriptor that is readable when an item may be available.
    ///
    /// # Errors
    /// `LimitReached` if the process has no free file descriptor; `Closed` in a forked child.
    pub fn fd(&mut self) -> Result<BorrowedFd<'_>> {
        self.core.state.check_fork()?;
        if self.event.is_none() {
            let event = Arc::new(Event::new()?);
            self.arm(&event);
            self.event = Some(event);
        }
        self.event.as_ref().map(|event| event.as_fd()).ok_or_else(closed)
    }

    /// Makes the dispatch thread raise the event once an item is available.
    fn arm(&mut self, event: &Arc<Event>) {
        let waker = Waker::from(event.clone());
        if self.poll_ready(&mut Context::from_waker(&waker)).is_ready() {
            event.raise();
        }
    }

    /// Ready if an item or an error may be available. If not, the task is woken once one is.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_from_parent() {
            return Poll::Ready(());
        }
        let mut shared = lock(&self.shared);
        let StreamState { source: Some(source), waker } = &mut *shared else {
            return Poll::Ready(());
        };
        if has_next(source) {
            return Poll::Ready(());
        }
        *waker = Some(context.waker().clone());
        let must_wake = source.before_sleep();
        drop(shared);
        if must_wake {
            self.core.state.dispatcher(self.lane).wake();
        }
        Poll::Pending
    }

    /// Returns the result of `take`; if there is none, the task is woken once an item may be available.
    pub fn poll_next<R>(
        &mut self,
        context: &mut Context<'_>,
        take: impl FnOnce(&mut S) -> Result<Option<R>>,
    ) -> Poll<Result<R>> {
        if let Some(result) = self.try_next(take).transpose() {
            return Poll::Ready(result);
        }
        if self.poll_ready(context).is_ready() {
            // The item has just arrived. The executor decides which task runs next.
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

/// Whether an item may be available; may return true without one.
fn has_next(source: &mut impl WaitSetMember) -> bool {
    source.refresh();
    source.wait_source().is_ready()
}

fn closed() -> Error {
    Error::closed("the stream")
}

impl<S: WaitSetMember + Send + 'static> Drop for WakeStream<S> {
    fn drop(&mut self) {
        if self.is_from_parent() {
            return;
        }
        // Dropped after the lock is released: withdrawing the endpoint takes other locks.
        let mut shared = lock(&self.shared);
        let ended = (shared.source.take(), shared.waker.take());
        drop(shared);
        drop(ended);
        // The task has ended. Does not wait for the thread, because one of its callbacks may be waiting for
        // this drop.
        self.core.state.dispatcher(self.lane).wake();
    }
}
