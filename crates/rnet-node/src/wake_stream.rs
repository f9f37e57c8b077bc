//! What subscribers and watches are for async code, under any executor: a dispatch thread of the node waits for the
//! source and wakes the task.
//!
//! **The descriptor of a stream** is readable while the stream may have something: the dispatch thread wakes an
//! [`Event`] in the task's place. It is level-triggered: the event stays raised until a take finds nothing. It is then
//! lowered, and the stream asked once more; so what came between the look and the lowering raises it again, and
//! nothing is slept through.

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
    /// `None` once the stream has ended, or is its source again.
    source: Option<S>,
    waker: Option<Waker>,
}

/// Wakes the async task when its source has something.
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
        // Without a waker nobody waits.
        if shared.waker.is_none() || !shared.source.as_mut().is_some_and(has_next) {
            return false;
        }
        let waker = shared.waker.take();
        drop(shared);
        // A waker of the executor's that panics must not end the thread of all others.
        let wake = |waker: Waker| catch_unwind(AssertUnwindSafe(|| waker.wake()));
        waker.map(wake).is_some()
    }
    fn wait_sources(&self, look: &mut dyn FnMut(&dyn WaitSource)) {
        // Without a waker nobody waits, and publishers need not ring.
        let shared = lock(&self.shared);
        let source = shared.source.iter().filter(|_| shared.waker.is_some());
        source.for_each(|source| look(source.wait_source()));
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
    /// Once the descriptor was asked for.
    event: Option<Arc<Event>>,
}

impl<S: WaitSetMember + Send + 'static> WakeStream<S> {
    pub fn new(core: Arc<NodeCore>, lane: Lane, source: S) -> WakeStream<S> {
        let shared = Arc::new(Mutex::new(StreamState { source: Some(source), waker: None }));
        // A process that was forked since has no threads of the node; what its stream gives is `Closed`.
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

    /// Asked before its lock is taken: a thread that is not here may hold it.
    pub fn is_from_parent(&self) -> bool {
        self.core.state.fork_guard().is_from_parent()
    }

    /// What `act` says of the source; nothing of one that is not here any more.
    pub fn with_source<R: Default>(&self, act: impl FnOnce(&mut S) -> R) -> R {
        if self.is_from_parent() {
            return R::default();
        }
        lock(&self.shared).source.as_mut().map(act).unwrap_or_default()
    }

    /// The source again; a task that waits in it is not woken any more.
    ///
    /// # Errors
    /// `Closed` in a forked child.
    pub fn into_source(self) -> Result<S> {
        self.core.state.check_fork()?;
        lock(&self.shared).source.take().ok_or_else(closed)
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
        if next.is_none()
            && let Some(event) = self.event.clone().filter(|event| event.lower())
        {
            self.arm(&event);
        }
        Ok(next)
    }

    /// A descriptor that is readable when there may be something to take.
    ///
    /// # Errors
    /// `LimitReached` where the process has no descriptor left; `Closed` in a forked child.
    pub fn fd(&mut self) -> Result<BorrowedFd<'_>> {
        self.core.state.check_fork()?;
        if self.event.is_none() {
            let event = Arc::new(Event::new()?);
            self.arm(&event);
            self.event = Some(event);
        }
        self.event.as_ref().map(|event| event.as_fd()).ok_or_else(closed)
    }

    /// Has the event raised once there is something.
    fn arm(&mut self, event: &Arc<Event>) {
        let waker = Waker::from(event.clone());
        if self.poll_ready(&mut Context::from_waker(&waker)).is_ready() {
            event.raise();
        }
    }

    /// Whether there is something to take: a result, or an error. If not, the task is woken once there is.
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

/// Whether there is something to take; may be wrong in saying yes.
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
        // Dropped with the lock free: to take the endpoint back takes other locks.
        let mut shared = lock(&self.shared);
        let ended = (shared.source.take(), shared.waker.take());
        drop(shared);
        drop(ended);
        // The task is over now. The thread is not waited for: a callback of it may be waiting for this drop.
        self.core.state.dispatcher(self.lane).wake();
    }
}
