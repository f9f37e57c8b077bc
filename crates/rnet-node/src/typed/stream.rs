//! Receiving in async code, under any executor: a dispatch thread of the node waits for a subscriber or a
//! watch, and wakes the task.
//!
//! **The descriptor of a stream** is readable while an item may be available: the dispatch thread raises an
//! [`Event`] instead of waking the task. It is level-triggered: the event stays raised until a take finds
//! nothing. It is then lowered, and the source is checked once more, so an item that arrives between the
//! check and the lowering raises it again, and is not missed.

use std::future::{Future, poll_fn};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use rnet_core::{Error, Lane, Result};
use rnet_shm::os::bell::Bells;
use rnet_shm::os::event::Event;

use super::subscriber::Subscriber;
use super::waitable::TryReceive;
use crate::Message;
use crate::core::NodeCore;
use crate::dispatch::Task;
use crate::sync::lock;
use crate::wait_source::WaitSource;

struct StreamState<S> {
    /// `None` once the stream has ended or was turned back into its source, and during a blocking call.
    source: Option<S>,
    is_blocking: bool,
    /// The bell of the dispatch thread, once that thread has the task.
    bell: Option<u64>,
    waker: Option<Waker>,
}

impl<S: TryReceive> StreamState<S> {
    /// Moves the wake-ups of the source to the dispatch thread.
    fn use_own_bell(&mut self, bells: &Arc<Bells>) {
        if let (Some(source), Some(bell)) = (&mut self.source, self.bell) {
            source.set_bell(bells, bell);
        }
    }
}

/// Wakes the async task when its source has an item.
struct WakeTask<S> {
    id: u64,
    bells: Arc<Bells>,
    shared: Arc<Mutex<StreamState<S>>>,
}

impl<S: TryReceive + Send + 'static> Task for WakeTask<S> {
    fn id(&self) -> u64 {
        self.id
    }
    fn describe(&self) -> String {
        "the wake-up of a stream".to_owned()
    }
    fn set_bell(&mut self, bell: u64) {
        let mut shared = lock(&self.shared);
        shared.bell = Some(bell);
        shared.use_own_bell(&self.bells);
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
        let shared = lock(&self.shared);
        shared.source.is_none() && !shared.is_blocking
    }
}

/// A subscriber or a watch for async code: a [`Stream`] of samples or changes; [`ReceiveStream::recv`] returns
/// one at a time. Made by [`Subscriber::into_stream`] and `Watch::into_stream`.
///
/// The same object serves blocking code: [`ReceiveStream::blocking`].
pub struct ReceiveStream<S: TryReceive + Send + 'static> {
    shared: Arc<Mutex<StreamState<S>>>,
    lane: Lane,
    core: Arc<NodeCore>,
    /// Set once the descriptor is requested.
    event: Option<Arc<Event>>,
}

/// A subscriber for async code.
pub type SampleStream<T> = ReceiveStream<Subscriber<T>>;

impl<T: Message + ?Sized> Subscriber<T> {
    /// Turns the subscriber into a stream, for any executor.
    pub fn into_stream(self) -> SampleStream<T> {
        let (lane, core) = (self.receiver.lane().unwrap_or(Lane::Urgent), self.core.clone());
        ReceiveStream::new(core, lane, self)
    }
}

impl<S: TryReceive + Send + 'static> ReceiveStream<S> {
    /// Gives the source to the dispatch thread of `lane`, which wakes the task that waits for it.
    #[doc(hidden)]
    pub fn new(core: Arc<NodeCore>, lane: Lane, source: S) -> ReceiveStream<S> {
        let shared = Arc::new(Mutex::new(StreamState {
            source: Some(source),
            is_blocking: false,
            bell: None,
            waker: None,
        }));
        // A forked child has no threads of the node; its stream returns `Closed`.
        if !core.state.fork_guard().is_from_parent() {
            let (id, bells) = (core.state.next_task(), core.state.own.bells().clone());
            core.state.dispatcher(lane).add(Box::new(WakeTask {
                id,
                bells,
                shared: shared.clone(),
            }));
        }
        ReceiveStream { shared, lane, core, event: None }
    }

    /// Checked before the lock is taken: a thread that does not exist in the child may hold it.
    fn is_from_parent(&self) -> bool {
        self.core.state.fork_guard().is_from_parent()
    }

    /// The next message or change.
    pub fn recv(&mut self) -> impl Future<Output = Result<S::Item>> + '_ {
        poll_fn(|context| self.poll_recv(context))
    }

    /// The next message or change, if available. A registered task stays registered.
    ///
    /// # Errors
    /// As `try_recv` of the subscriber or watch; `Closed` in a forked child.
    pub fn try_recv(&mut self) -> Result<Option<S::Item>> {
        self.core.state.check_fork()?;
        let next = lock(&self.shared).source.as_mut().ok_or_else(closed)?.try_receive()?;
        if next.is_none()
            && let Some(event) = self.event.clone().filter(|event| event.lower())
        {
            self.arm(&event);
        }
        Ok(next)
    }

    /// Calls `act` with the subscriber or watch; `None` in a forked child. `act` must not wait, because the
    /// dispatch thread would wait for it: use [`ReceiveStream::blocking`].
    pub fn with_source<R>(&self, act: impl FnOnce(&mut S) -> R) -> Option<R> {
        if self.is_from_parent() {
            return None;
        }
        lock(&self.shared).source.as_mut().map(act)
    }

    /// Calls `act`, which may wait, with the subscriber or watch. A registered task stays registered, and is
    /// woken after the call at the earliest.
    ///
    /// ```
    /// # fn main() -> rnet::Result<()> {
    /// # let (dir, domain) = (std::env::temp_dir(), format!("stream{}", std::process::id()));
    /// # let node = rnet::Node::builder("map").dir(dir).domain(&domain).open()?;
    /// use rnet::Sample;
    /// use std::time::Duration;
    ///
    /// let mut stream = node.subscriber::<[u8]>("/scan").open()?.into_stream();
    /// // In a task: stream.recv().await?
    /// let timeout = Duration::from_millis(1);
    /// let next = stream.blocking(|scans| scans.recv_timeout(timeout).map(Sample::into_owned))?;
    /// assert!(next.is_err(), "nothing was sent");
    /// # let path = node.domain_path().to_owned();
    /// # drop((stream, node));
    /// # let _ = std::fs::remove_dir_all(path);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `Closed` in a forked child.
    pub fn blocking<R>(&mut self, act: impl FnOnce(&mut S) -> R) -> Result<R> {
        self.core.state.check_fork()?;
        let mut shared = lock(&self.shared);
        let source = shared.source.take().ok_or_else(closed)?;
        shared.is_blocking = true;
        drop(shared);
        let mut call = BlockingCall { stream: self, source: Some(source) };
        call.source.as_mut().map(act).ok_or_else(closed)
    }

    /// Returns the subscriber or watch; a task that waits in the stream is no longer woken. Items that were
    /// received are not received again.
    ///
    /// # Errors
    /// `Closed` in a forked child.
    pub fn into_source(self) -> Result<S> {
        self.core.state.check_fork()?;
        lock(&self.shared).source.take().ok_or_else(closed)
    }

    /// A file descriptor that is readable when an item may be available, for event loops such as epoll, Qt
    /// or libuv. It is an `eventfd`, created by the first call and closed with the stream.
    ///
    /// Level-triggered: it stays readable until [`ReceiveStream::try_recv`] returns `None`, so receive until
    /// then. It may be readable without an item. Do not read from it or write to it. Use either the
    /// descriptor or async code, not both.
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

    /// Ready if an item or an error is probably available, without taking it; false positives are possible.
    /// Otherwise the task is woken later.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_from_parent() {
            return Poll::Ready(());
        }
        let mut shared = lock(&self.shared);
        let StreamState { source: Some(source), waker, .. } = &mut *shared else {
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

    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<S::Item>> {
        if let Some(result) = self.try_recv().transpose() {
            return Poll::Ready(result);
        }
        if self.poll_ready(context).is_ready() {
            // The item has just arrived. The executor decides which task runs next.
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

/// Ends when the node is closed; `Closed` is not an item.
impl<S: TryReceive + Send + 'static> Stream for ReceiveStream<S> {
    type Item = Result<S::Item>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_recv(context).map(|result| match result {
            Err(Error::Closed { .. }) => None,
            other => Some(other),
        })
    }
}

/// Whether an item may be available; may return true without one.
fn has_next(source: &mut impl TryReceive) -> bool {
    source.refresh();
    source.wait_source().is_ready()
}

fn closed() -> Error {
    Error::closed("the stream")
}

impl<S: TryReceive + Send + 'static> Drop for ReceiveStream<S> {
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

/// Returns the source to its stream after a blocking call, also if the call panics.
struct BlockingCall<'a, S: TryReceive + Send + 'static> {
    stream: &'a ReceiveStream<S>,
    source: Option<S>,
}

impl<S: TryReceive + Send + 'static> Drop for BlockingCall<'_, S> {
    fn drop(&mut self) {
        // The call may have forked and returned here in the child.
        if self.stream.is_from_parent() {
            return;
        }
        let state = &self.stream.core.state;
        let mut shared = lock(&self.stream.shared);
        (shared.source, shared.is_blocking) = (self.source.take(), false);
        // A blocking wait has moved the wake-ups to its own thread.
        shared.use_own_bell(state.own.bells());
        let waits = shared.waker.is_some();
        drop(shared);
        if waits {
            state.dispatcher(self.stream.lane).wake();
        }
    }
}

crate::debug_by!(
    [S: TryReceive + Send + 'static] ReceiveStream<S>, "ReceiveStream", |this| "lane": this.lane
);
