//! Changes for async code, under any executor. A dispatch thread of the node wakes the task.

use std::future::Future;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use rnet_core::{Error, Lane, Result};
use rnet_node::dispatch::Task;
use rnet_shm::bell::MAX_SLEEP;

use super::entry::Change;
use super::watch::{Watch, WatchCore};
use rnet_node::awaited::Awaited;
use rnet_node::core::NodeCore;
use rnet_node::ready_fd::ReadyFd;

struct Shared {
    /// `None` once the stream has ended.
    watch: Option<WatchCore>,
    /// What the thread has taken to know whether to wake.
    ready: Option<Result<Change>>,
    waker: Option<Waker>,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes the async task when its watch has something.
struct WakeTask {
    id: u64,
    shared: Arc<Mutex<Shared>>,
    told: u64,
}

impl Task for WakeTask {
    fn id(&self) -> u64 {
        self.id
    }
    fn describe(&self) -> String {
        "the wake-up of a stream of changes".to_owned()
    }
    fn set_bell(&mut self, bell: u64) {
        if let Some(watch) = &lock(&self.shared).watch {
            watch.set_bell(bell);
        }
    }
    fn lane(&self) -> Option<Lane> {
        None
    }
    fn run(&mut self, _lane: Lane, _must_yield: &dyn Fn() -> bool) -> bool {
        let mut guard = lock(&self.shared);
        let shared = &mut *guard;
        // Without a waker nobody waits.
        if let (Some(watch), Some(_), None) = (&mut shared.watch, &shared.waker, &shared.ready) {
            shared.ready = watch.next().transpose();
        }
        let waker = if shared.ready.is_some() { shared.waker.take() } else { None };
        drop(guard);
        // A waker of the executor's that panics must not end the thread of all others.
        let wake = |waker: Waker| catch_unwind(AssertUnwindSafe(|| waker.wake()));
        waker.map(wake).is_some()
    }
    fn awaited(&self, look: &mut dyn FnMut(&dyn Awaited)) {
        // Without a waker nobody waits.
        let shared = lock(&self.shared);
        shared.watch.iter().filter(|_| shared.waker.is_some()).for_each(|watch| look(watch));
    }
    fn came(&mut self) -> Option<(u64, u64)> {
        lock(&self.shared).watch.as_ref()?.came_since(&mut self.told)
    }
    fn is_over(&self) -> bool {
        lock(&self.shared).watch.is_none()
    }
    fn move_to(self: Box<Self>, _lane: Lane) {}
}

/// A watch for async code: a [`Stream`] of changes, or one at a time with [`ChangeStream::recv`].
pub struct ChangeStream {
    shared: Arc<Mutex<Shared>>,
    lane: Lane,
    core: Arc<NodeCore>,
    ready: ReadyFd,
}

impl Watch {
    /// Turns the watch into a stream, for any executor.
    pub fn into_stream(self) -> ChangeStream {
        let Watch { watch, core, .. } = self;
        let (id, lane, told) = (core.state.next_task(), watch.lane, 0);
        let shared = Shared { watch: Some(watch), ready: None, waker: None };
        let shared = Arc::new(Mutex::new(shared));
        if !core.state.fork_guard().is_parents() {
            let task = WakeTask { id, shared: shared.clone(), told };
            core.state.dispatcher(lane).add(Box::new(task));
        }
        ChangeStream { shared, lane, core, ready: ReadyFd::default() }
    }
}

impl ChangeStream {
    /// The next change.
    pub fn recv(&mut self) -> ChangeFuture<'_> {
        ChangeFuture { stream: self }
    }

    /// The watch again; what it told before it does not tell again.
    ///
    /// # Errors
    /// `Closed` in a forked child.
    pub fn into_watch(self) -> Result<Watch> {
        self.core.state.check_fork()?;
        let mut shared = lock(&self.shared);
        let (watch, ready) = (shared.watch.take(), shared.ready.take());
        drop(shared);
        let closed = || Error::Closed { what: "the stream of changes".to_owned() };
        let mut watch = watch.ok_or_else(closed)?;
        if let Some(Ok(change)) = ready {
            watch.put_back(change);
        }
        Ok(Watch::of(watch, self.core.clone()))
    }

    /// The next change if it is there. A task that is to be woken stays so.
    ///
    /// # Errors
    /// As [`Watch::try_recv`].
    pub fn try_recv(&mut self) -> Result<Option<Change>> {
        // Before the lock, which a thread that is not here may hold.
        self.core.state.check_fork()?;
        let mut shared = lock(&self.shared);
        let next = match (shared.ready.take(), &mut shared.watch) {
            (Some(ready), _) => ready.map(Some),
            (None, Some(watch)) => watch.next(),
            (None, None) => Err(Error::Closed { what: "the stream of changes".to_owned() }),
        }?;
        drop(shared);
        if next.is_none() {
            let ready = std::mem::take(&mut self.ready);
            ready.drained(|context| self.poll_ready(context));
            self.ready = ready;
        }
        Ok(next)
    }

    /// A descriptor that is readable when there may be something to receive, for a loop that waits for
    /// descriptors: epoll, Qt, libuv. An `eventfd`, made by the first call and closed with the stream.
    ///
    /// Level-triggered: it stays readable until [`ChangeStream::try_recv`] has returned `None`. So receive
    /// until then; what comes later makes it readable again. It may be readable with nothing there. Read or
    /// write nothing of it. It takes the place of the task that async code is: use one of both.
    ///
    /// # Errors
    /// `LimitReached` where the process has no descriptor left; `Closed` in a forked child.
    pub fn fd(&mut self) -> Result<BorrowedFd<'_>> {
        self.core.state.check_fork()?;
        let mut ready = std::mem::take(&mut self.ready);
        let opened = ready.open(|context| self.poll_ready(context));
        self.ready = ready;
        opened?;
        self.ready.get().ok_or_else(|| Error::Closed { what: "the stream".to_owned() })
    }

    /// Whether there is a change, or an error, to take. Takes nothing. If there is none, the task is
    /// woken once there is.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.core.state.fork_guard().is_parents() {
            return Poll::Ready(());
        }
        let mut shared = lock(&self.shared);
        let Shared { watch: Some(watch), ready, waker } = &mut *shared else {
            return Poll::Ready(());
        };
        if ready.is_none() {
            *ready = watch.next().transpose();
        }
        if ready.is_some() {
            return Poll::Ready(());
        }
        *waker = Some(context.waker().clone());
        // Whoever changes something from here on rings the thread, also one that sleeps already. It may sleep
        // for longer than until the next key's time is over.
        watch.before_sleep();
        let look = watch.is_ready() || watch.sleep_limit() < MAX_SLEEP;
        drop(shared);
        if look {
            self.core.state.dispatcher(self.lane).wake();
        }
        Poll::Pending
    }

    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<Change>> {
        loop {
            if let Some(result) = self.try_recv().transpose() {
                return Poll::Ready(result);
            }
            if self.poll_ready(context).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl Stream for ChangeStream {
    type Item = Result<Change>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Change>>> {
        self.get_mut().poll_recv(context).map(|result| match result {
            Err(Error::Closed { .. }) => None,
            other => Some(other),
        })
    }
}

impl Drop for ChangeStream {
    fn drop(&mut self) {
        if !self.core.state.fork_guard().is_parents() {
            let mut shared = lock(&self.shared);
            let ended = (shared.watch.take(), shared.waker.take());
            drop(shared);
            drop(ended);
            // The task is over now. The thread is not waited for: a callback of it may be waiting for this drop.
            self.core.state.dispatcher(self.lane).wake();
        }
    }
}

impl std::fmt::Debug for ChangeStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangeStream").finish_non_exhaustive()
    }
}

/// The future of [`ChangeStream::recv`].
#[derive(Debug)]
pub struct ChangeFuture<'a> {
    stream: &'a mut ChangeStream,
}

impl Future for ChangeFuture<'_> {
    type Output = Result<Change>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Change>> {
        self.get_mut().stream.poll_recv(context)
    }
}
