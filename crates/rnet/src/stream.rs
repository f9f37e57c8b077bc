//! Receiving in async code, under any executor.
//!
//! The dispatch thread of the topic's lane waits for the subscriber and wakes the task.

use std::future::Future;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use rnet_core::{Behind, Error, Lane, Result};
use rnet_node::awaited::Awaited;
use rnet_node::core::NodeCore;
use rnet_node::dispatch::Task;
use rnet_node::ready_fd::ReadyFd;
use rnet_node::receiver::Receiver;

use crate::subscriber::Decode;
use crate::subscriber::Subscriber;
use crate::{
    DeadlineMissed, LivelinessChange, LivelinessCounts, MatchEvent, Message, OwnedSample,
    PublisherStats, Sample,
};

struct Shared {
    /// `None` once the stream has ended, or is a subscriber again.
    receiver: Option<Receiver>,
    waker: Option<Waker>,
}

impl Shared {
    fn is_ready(&self) -> bool {
        self.receiver.as_ref().is_some_and(Receiver::is_ready)
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes the async task when its subscriber has something.
struct WakeTask {
    id: u64,
    shared: Arc<Mutex<Shared>>,
}

impl Task for WakeTask {
    fn id(&self) -> u64 {
        self.id
    }
    fn describe(&self) -> String {
        "the wake-up of a stream".to_owned()
    }
    fn set_bell(&mut self, bell: u64) {
        if let Some(receiver) = &mut lock(&self.shared).receiver {
            receiver.set_bell(bell);
        }
    }
    fn lane(&self) -> Option<Lane> {
        // A waker takes no time, so it may stay where it began.
        None
    }
    fn run(&mut self, _lane: Lane, _must_yield: &dyn Fn() -> bool) -> bool {
        let mut shared = lock(&self.shared);
        if !shared.is_ready() {
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
        shared.receiver.iter().filter(|_| shared.waker.is_some()).for_each(|one| look(one));
    }
    fn is_over(&self) -> bool {
        lock(&self.shared).receiver.is_none()
    }
    fn move_to(self: Box<Self>, _lane: Lane) {}
}

/// A subscriber for async code: a [`Stream`] of samples, or one at a time with
/// [`SampleStream::recv`].
pub struct SampleStream<T: Message + ?Sized> {
    shared: Arc<Mutex<Shared>>,
    lane: Lane,
    core: Arc<NodeCore>,
    /// `None` once it is a subscriber's again.
    held: Option<T::Held>,
    ready: ReadyFd,
}

impl<T: Message + ?Sized> Subscriber<T> {
    /// Turns the subscriber into a stream, for any executor.
    pub fn into_stream(self) -> SampleStream<T> {
        let (receiver, core, held) = self.into_parts();
        let held = Some(held);
        if receiver.is_parents() {
            // What it gives is `Closed`, as the subscriber did.
            let lane = Lane::Bulk;
            let shared = Arc::new(Mutex::new(Shared { receiver: None, waker: None }));
            return SampleStream { shared, lane, core, held, ready: ReadyFd::default() };
        }
        let lane = receiver.lane().unwrap_or(Lane::Urgent);
        let id = core.state.next_task();
        let shared = Arc::new(Mutex::new(Shared { receiver: Some(receiver), waker: None }));
        core.state.dispatcher(lane).add(Box::new(WakeTask { id, shared: shared.clone() }));
        SampleStream { shared, lane, core, held, ready: ReadyFd::default() }
    }
}

impl<T: Message + ?Sized> SampleStream<T> {
    /// Turns the stream back into a subscriber; a task that waits in it is not woken any more.
    ///
    /// # Panics
    /// In a process that was forked since the stream was made: it is its parent's.
    pub fn into_subscriber(mut self) -> Subscriber<T> {
        assert!(!self.is_parents(), "a stream of the process that this one was forked from");
        let receiver = lock(&self.shared).receiver.take();
        let both = receiver.zip(self.held.take());
        let (receiver, held) =
            both.expect("only this function and the drop take them, and both end it");
        Subscriber::from_parts(receiver, self.core.clone(), held)
    }

    /// Asked before its lock is taken: a thread that is not here may hold it.
    fn is_parents(&self) -> bool {
        self.core.state.fork_guard().is_parents()
    }

    /// What `act` says of the receiver; nothing of one that is not here any more.
    fn look<R: Default>(&self, act: impl FnOnce(&mut Receiver) -> R) -> R {
        if self.is_parents() {
            return R::default();
        }
        lock(&self.shared).receiver.as_mut().map(act).unwrap_or_default()
    }

    /// What was received and lost, by publisher; those that are gone included.
    pub fn stats(&self) -> Vec<PublisherStats> {
        self.look(|receiver| receiver.stats())
    }

    /// How many publishers serve it now.
    pub fn publisher_count(&self) -> usize {
        self.look(Receiver::count_publishers)
    }

    /// Calls `callback` for each change of who is matched, on the node's bulk dispatch thread.
    pub fn on_match(&self, callback: impl FnMut(&MatchEvent) + Send + 'static) {
        self.look(|receiver| receiver.state.hooks.add(Box::new(callback)));
    }

    /// As [`crate::Subscriber::on_deadline`].
    pub fn on_deadline(&self, callback: impl FnMut(&DeadlineMissed) + Send + 'static) {
        self.look(|receiver| receiver.state.on_deadline(Box::new(callback)));
    }

    /// As [`crate::Subscriber::on_liveliness`].
    pub fn on_liveliness(&self, callback: impl FnMut(&LivelinessChange) + Send + 'static) {
        self.look(|r| r.node.on_liveliness(&r.state, r.id, Box::new(callback)));
    }

    /// As [`crate::Subscriber::liveliness`].
    pub fn liveliness(&self) -> LivelinessCounts {
        self.look(|receiver| receiver.node.liveliness_of(receiver.id))
    }

    /// How far it is behind its publishers, all of them together.
    pub fn behind(&self) -> Behind {
        self.look(|receiver| receiver.behind())
    }

    /// The next message.
    pub fn recv(&mut self) -> RecvFuture<'_, T> {
        RecvFuture { stream: self }
    }

    /// The next message if it is there. A task that is to be woken stays so.
    ///
    /// # Errors
    /// As [`Subscriber::try_recv`].
    pub fn try_recv(&mut self) -> Result<Option<OwnedSample<T>>> {
        self.core.state.check_fork()?;
        let mut shared = lock(&self.shared);
        let (Some(receiver), Some(held)) = (&mut shared.receiver, &mut self.held) else {
            return Err(Error::Closed { what: "the stream".to_owned() });
        };
        if let Some(at) = receiver.advance()? {
            return receiver.sample::<T>(at, held).map(Sample::to_owned_sample).map(Some);
        }
        drop(shared);
        let ready = std::mem::take(&mut self.ready);
        ready.drained(|context| self.poll_ready(context));
        self.ready = ready;
        Ok(None)
    }

    /// A descriptor that is readable when there may be something to receive, for a loop that waits for
    /// descriptors: epoll, Qt, libuv. An `eventfd`, made by the first call and closed with the stream.
    ///
    /// Level-triggered: it stays readable until [`SampleStream::try_recv`] has returned `None`. So receive
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

    /// Whether there is something to take: a message, or an error. Takes nothing, and may be wrong
    /// in saying yes. If there is nothing, the task is woken once there is.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_parents() {
            return Poll::Ready(());
        }
        let mut shared = lock(&self.shared);
        if shared.receiver.is_none() || shared.is_ready() {
            return Poll::Ready(());
        }
        shared.waker = Some(context.waker().clone());
        drop(shared);
        // The thread looks again, now that there is somebody to wake.
        self.core.state.dispatcher(self.lane).wake();
        Poll::Pending
    }

    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<OwnedSample<T>>> {
        if let Some(result) = self.try_recv().transpose() {
            return Poll::Ready(result);
        }
        if self.poll_ready(context).is_ready() {
            // It came just now. The executor decides who is next.
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl<T: Message + ?Sized> Stream for SampleStream<T> {
    type Item = Result<OwnedSample<T>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_recv(context).map(Some)
    }
}

impl<T: Message + ?Sized> Drop for SampleStream<T> {
    fn drop(&mut self) {
        if self.is_parents() {
            return;
        }
        // Dropped with the lock free: to take the endpoint back takes other locks.
        let mut shared = lock(&self.shared);
        let ended = (shared.receiver.take(), shared.waker.take());
        drop(shared);
        drop(ended);
        self.core.state.dispatcher(self.lane).wake();
    }
}

/// The future of [`SampleStream::recv`].
pub struct RecvFuture<'a, T: Message + ?Sized> {
    stream: &'a mut SampleStream<T>,
}

impl<T: Message + ?Sized> Future for RecvFuture<'_, T> {
    type Output = Result<OwnedSample<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().stream.poll_recv(context)
    }
}
