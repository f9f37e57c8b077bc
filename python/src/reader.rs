//! The receiver behind `rnet.Subscriber` and `rnet.state.Watch`: read directly, by asyncio tasks, or by a
//! callback.
//!
//! A thread that waits holds the lock. A brief caller, or one that closes the reader, interrupts that wait.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use rnet::binding::TryReceive;
use rnet::{Error, Interrupter, ReceiveStream};

use crate::drop_without_gil::drop_without_gil;
use crate::fair_mutex::{FairMutex, FairMutexGuard};
use crate::fork::{ForkGuard, ProcessOwned};
use crate::interpreter;
use crate::lock::lock;
use crate::members::Member;
use crate::wait::{SIGNAL_CHECK_INTERVAL, SPIN_SIGNAL_CHECK_INTERVAL, WaitLimit};
use crate::wait_queue::{self, Pollable, WaitQueue};

/// A subscriber or a watch of crate `rnet`.
pub(crate) trait Receiver: TryReceive<Item: Send> + Sized + Send + 'static {
    /// The same receiver for a callback, which runs until this is dropped.
    type Subscription: Send;

    /// The plural name of the items, for messages.
    const ITEMS: &str;

    fn interrupter(&mut self) -> Interrupter;
    fn make_interruptible(&mut self);
    /// The same receiver for asyncio tasks.
    fn into_stream(self) -> ReceiveStream<Self>;
}

/// Limit of a wait with the lock while tasks wait for messages of the same subscriber.
pub(crate) const SHARED_WAIT_LIMIT: Duration = Duration::from_millis(10);

/// The current way of reading. Reading and awaiting may alternate at any moment; a callback is permanent.
pub(crate) enum Mode<R: Receiver> {
    Direct(R),
    Stream(ReceiveStream<R>),
    Callback(R::Subscription),
    Closed,
}

/// The data that the lock of a reader protects.
pub(crate) struct ReaderState<R: Receiver> {
    pub(crate) mode: Mode<R>,
    /// The next message: it was taken for a batch and did not fit into it.
    pub(crate) lookahead: Option<R::Item>,
}

impl<R: Receiver> ReaderState<R> {
    fn close(&mut self) -> ReaderState<R> {
        std::mem::replace(self, ReaderState { mode: Mode::Closed, lookahead: None })
    }
}

/// The name of a reader in errors, and the things that it waits for.
pub(crate) struct Labels {
    /// Topic of a subscriber.
    pub(crate) topic: String,
    pub(crate) description: String,
    pub(crate) awaited_item: String,
}

/// State shared by the Python object, its callback and its node.
pub(crate) struct Reader<R: Receiver> {
    pub(crate) labels: Labels,
    pub(crate) state: FairMutex<ProcessOwned<ReaderState<R>>>,
    fork_guard: ForkGuard,
    /// Set when no call of a callback may begin any more.
    pub(crate) closed: Arc<AtomicBool>,
    /// Whether messages go to an async callback; changed only with the lock held.
    pub(crate) has_async_callback: AtomicBool,
    /// Makes a waiting thread release the lock. `None` after closing, since it may hold the node.
    interrupter: Mutex<Option<ProcessOwned<Interrupter>>>,
    /// Limit of a sleep between two checks for signals.
    slice: Duration,
    /// Waiting asyncio tasks, and the threads that wait at the same time as a task.
    pub(crate) wait_queue: WaitQueue,
}

impl<R: Receiver> Reader<R> {
    /// `spins`: its waits busy-wait instead of sleeping.
    pub(crate) fn new(mut inner: R, labels: Labels, spins: bool) -> Arc<Reader<R>> {
        inner.make_interruptible();
        Arc::new(Reader {
            labels,
            interrupter: Mutex::new(Some(ProcessOwned::new(inner.interrupter()))),
            state: FairMutex::new(ProcessOwned::new(ReaderState {
                mode: Mode::Direct(inner),
                lookahead: None,
            })),
            fork_guard: ForkGuard::here(),
            closed: Arc::default(),
            has_async_callback: AtomicBool::new(false),
            slice: if spins { SPIN_SIGNAL_CHECK_INTERVAL } else { SIGNAL_CHECK_INTERVAL },
            wait_queue: WaitQueue::default(),
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.fork_guard.is_from_parent() || self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn closed_error(&self) -> Error {
        Error::Closed { what: self.fork_guard.name(self.labels.description.clone()) }
    }

    fn has_callback(&self) -> Error {
        let what = format!("use of {}", self.labels.description);
        Error::BadValue { what, why: format!("its {} go to the callback passed as on", R::ITEMS) }
    }

    fn interrupt(&self) {
        if let Some(interrupter) = &*lock(&self.interrupter) {
            interrupter.interrupt();
        }
    }

    /// Takes the lock for a short operation; a waiting thread releases it. Call it without the GIL.
    pub(crate) fn lock(&self) -> rnet::Result<FairMutexGuard<'_, ProcessOwned<ReaderState<R>>>> {
        self.check_fork()?;
        Ok(self.state.lock_briefly(|| self.interrupt()))
    }

    fn check_fork(&self) -> rnet::Result<()> {
        // The lock may be held by a thread that exists only in the parent.
        self.fork_guard.check(|| self.labels.description.clone())
    }

    /// Takes the lock in order to wait with it, in turn with other waiters. Also returns the rest of `limit`.
    /// Call it without the GIL.
    pub(crate) fn lock_to_wait(
        &self,
        limit: Duration,
    ) -> rnet::Result<(FairMutexGuard<'_, ProcessOwned<ReaderState<R>>>, Duration)> {
        self.check_fork()?;
        self.state.lock_to_wait(limit, || {
            let (topic, what) = (self.labels.topic.clone(), self.labels.awaited_item.clone());
            Error::timeout(topic, what, Duration::ZERO)
        })
    }

    /// Like [`FairMutex::lock_for_wait_set`]. Call it without the GIL.
    pub(crate) fn lock_for_wait_set(
        &self,
        turn: Duration,
    ) -> rnet::Result<FairMutexGuard<'_, ProcessOwned<ReaderState<R>>>> {
        self.check_fork()?;
        self.state.lock_for_wait_set(turn, || self.interrupt())
    }

    /// The receiver itself, and the lookahead message. Waiting tasks are not woken again until
    /// [`wait_queue::wake_or_arm`], which the caller runs without the lock.
    pub(crate) fn direct<'a>(
        &self,
        state: &'a mut ReaderState<R>,
    ) -> rnet::Result<(&'a mut R, &'a mut Option<R::Item>)> {
        self.check_no_async_callback()?;
        if self.is_closed() {
            return Err(self.closed_error());
        }
        self.inner(state)
    }

    /// Fails if the messages go to an async callback.
    fn check_no_async_callback(&self) -> rnet::Result<()> {
        match self.has_async_callback.load(Ordering::Acquire) {
            true => Err(self.has_callback()),
            false => Ok(()),
        }
    }

    /// Like [`Reader::direct`], also while another thread is about to close the reader and ends its waits.
    pub(crate) fn inner<'a>(
        &self,
        state: &'a mut ReaderState<R>,
    ) -> rnet::Result<(&'a mut R, &'a mut Option<R::Item>)> {
        let ReaderState { mode, lookahead } = state;
        if matches!(mode, Mode::Stream(_))
            && let Mode::Stream(stream) = std::mem::replace(mode, Mode::Closed)
        {
            let mut inner = stream.into_source()?;
            inner.make_interruptible();
            *mode = Mode::Direct(inner);
        }
        match mode {
            Mode::Direct(inner) => Ok((inner, lookahead)),
            Mode::Callback(_) => Err(self.has_callback()),
            Mode::Stream(_) | Mode::Closed => Err(self.closed_error()),
        }
    }

    /// Sends every item to an async callback, which takes it with [`Reader::try_next_for_delivery`]. Call it
    /// without the GIL.
    pub(crate) fn begin_delivery(&self) -> rnet::Result<()> {
        let mut guard = self.lock()?;
        self.direct(&mut guard)?;
        self.has_async_callback.store(true, Ordering::Release);
        drop(guard);
        // Waiters must learn that a callback now receives the messages.
        self.wait_queue.wake_all();
        Ok(())
    }

    /// Runs `act` on the receiver as a wait of at most `limit`. `act` gets the remaining time; it gets zero
    /// while tasks wait, and runs again when it is this thread's turn. Call it without the GIL.
    pub(crate) fn wait_with<T>(
        self: &Arc<Self>,
        limit: Duration,
        mut act: impl FnMut(&mut R, &mut Option<R::Item>, Duration) -> rnet::Result<T>,
    ) -> rnet::Result<T> {
        wait_queue::wait_in_queue(self, limit, |left| {
            let (mut guard, left) = self.lock_to_wait(left)?;
            let (inner, lookahead) = self.direct(&mut guard)?;
            act(inner, lookahead, self.wait_queue.max_locked_wait(left))
        })
    }

    /// The next item, if one is available. Call it without the GIL.
    pub(crate) fn try_next(&self) -> rnet::Result<Option<R::Item>> {
        self.try_next_locked(&mut *self.lock()?)
    }

    /// The next item for the async callback, if one is available. Call it without the GIL.
    pub(crate) fn try_next_for_delivery(&self) -> rnet::Result<Option<R::Item>> {
        self.take_next(&mut *self.lock()?)
    }

    /// Like [`Reader::try_next`], for a caller that holds the lock.
    fn try_next_locked(&self, state: &mut ReaderState<R>) -> rnet::Result<Option<R::Item>> {
        self.check_no_async_callback()?;
        self.take_next(state)
    }

    fn take_next(&self, state: &mut ReaderState<R>) -> rnet::Result<Option<R::Item>> {
        if self.is_closed() {
            return Err(self.closed_error());
        }
        let ReaderState { mode, lookahead } = state;
        if lookahead.is_some() {
            return Ok(lookahead.take());
        }
        match mode {
            Mode::Direct(inner) => inner.try_receive(),
            Mode::Stream(stream) => stream.try_recv(),
            Mode::Callback(_) => Err(self.has_callback()),
            Mode::Closed => Err(self.closed_error()),
        }
    }

    /// A descriptor that is readable while an item may be available. Call it without the GIL.
    pub(crate) fn fileno(self: &Arc<Self>) -> rnet::Result<RawFd> {
        // Fails if the reader is closed or has a callback.
        self.direct(&mut *self.lock()?)?;
        wait_queue::fileno(self)
    }

    /// The requested wait, in slices of the length that this reader needs.
    pub(crate) fn in_slices(&self, wait_limit: &WaitLimit) -> WaitLimit {
        wait_limit.in_slices(self.slice)
    }

    /// Passes every item from now on to a callback, which `begin` starts. Call it without the GIL.
    pub(crate) fn begin_callback(
        &self,
        begin: impl FnOnce(R) -> R::Subscription,
    ) -> rnet::Result<()> {
        let mut guard = self.lock()?;
        self.direct(&mut guard)?;
        let mode = &mut guard.mode;
        if let Mode::Direct(inner) = std::mem::replace(mode, Mode::Closed) {
            *mode = Mode::Callback(begin(inner));
        }
        drop(guard);
        // Waiters must learn that a callback now receives the messages.
        self.wait_queue.wake_all();
        Ok(())
    }
}

impl<R: Receiver> Member for Reader<R> {
    /// Closes the reader and wakes the waiters.
    fn close(&self) {
        if self.fork_guard.is_from_parent() || self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        // A callback that closes its own reader does not hold the lock, but all closers wait for that
        // callback. So the lock is released before anything is dropped.
        let before = self.state.lock_briefly(|| self.interrupt()).close();
        drop(before);
        let interrupter = lock(&self.interrupter).take();
        drop(interrupter);
        self.wait_queue.wake_all();
    }

    fn is_finished(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

impl<R: Receiver> Pollable for Reader<R> {
    fn wait_queue(&self) -> &WaitQueue {
        &self.wait_queue
    }

    fn poll_ready(&self, waker: &Waker) -> bool {
        let Ok(mut guard) = self.lock() else { return true };
        let ReaderState { mode, lookahead } = &mut **guard;
        if lookahead.is_some() || self.is_closed() {
            return true;
        }
        if matches!(mode, Mode::Direct(_))
            && let Mode::Direct(inner) = std::mem::replace(mode, Mode::Closed)
        {
            *mode = Mode::Stream(inner.into_stream());
        }
        match mode {
            Mode::Stream(stream) => stream.poll_ready(&mut Context::from_waker(waker)).is_ready(),
            // Only an error is available.
            _ => true,
        }
    }

    fn is_from_parent(&self) -> bool {
        self.fork_guard.is_from_parent()
    }
}

impl<R: Receiver> Drop for Reader<R> {
    fn drop(&mut self) {
        if self.fork_guard.is_from_parent() {
            return;
        }
        if let Some(mut guard) = self.state.try_lock() {
            let before = guard.close();
            drop(guard);
            let interrupter = lock(&self.interrupter).take();
            match &before.mode {
                Mode::Callback(_) => interpreter::drop_in_time((before, interrupter)),
                _ => drop_without_gil((before, interrupter)),
            }
        }
    }
}
