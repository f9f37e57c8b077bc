//! What is received from, behind `rnet.Subscriber` and `rnet.Watch`: read directly, by tasks of asyncio, or by a
//! callback.
//!
//! A thread that waits holds the lock; who wants a look, or to close it, ends that wait.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rnet::{Error, Interrupter, Waitable};

use crate::fair::{Fair, Guard};
use crate::fork::{ForkGuard, ProcessOwned};
use crate::gate;
use crate::lock::lock;
use crate::members::Member;
use crate::release::release;
use crate::wait::{SLICE, SPIN_SLICE, WaitLimit};
use crate::waiters::{self, Awaited, Waiters};

/// A subscriber, or a watch, of crate `rnet`.
pub(crate) trait Receiver: Waitable + Sized + Send + 'static {
    /// What is received.
    type Item: Send;
    /// The same for tasks.
    type Stream: Send;
    /// The same for a callback, which goes on until this is dropped.
    type Subscription: Send;

    /// What `Item`s are called.
    const ITEMS: &str;

    fn interrupter(&mut self) -> Interrupter;
    fn interruptible(&mut self);
    fn try_recv_owned(&mut self) -> rnet::Result<Option<Self::Item>>;
    fn into_stream(self) -> Self::Stream;
    fn of_stream(stream: Self::Stream) -> rnet::Result<Self>;
    fn try_recv_of(stream: &mut Self::Stream) -> rnet::Result<Option<Self::Item>>;
    fn poll_ready(stream: &mut Self::Stream, context: &mut Context<'_>) -> Poll<()>;
}

/// How long a wait with the lock may be while tasks wait for messages of the same subscriber.
pub(crate) const BESIDE: Duration = Duration::from_millis(10);

/// Who reads. Reading and awaiting may alternate, at any moment; a callback stays.
pub(crate) enum Mode<R: Receiver> {
    Direct(R),
    Stream(R::Stream),
    Callback(R::Subscription),
    Closed,
}

/// What the lock of a reader protects.
pub(crate) struct State<R: Receiver> {
    pub(crate) mode: Mode<R>,
    /// A message that came in a batch and did not fit it: the next one, for whoever asks.
    pub(crate) held: Option<R::Item>,
}

impl<R: Receiver> State<R> {
    fn close(&mut self) -> State<R> {
        std::mem::replace(self, State { mode: Mode::Closed, held: None })
    }
}

/// How a reader calls itself, and what it waits for.
pub(crate) struct Names {
    /// Topic of a subscriber.
    pub(crate) topic: String,
    pub(crate) itself: String,
    pub(crate) awaited: String,
}

/// What the Python object, its callback and its node share.
pub(crate) struct Reader<R: Receiver> {
    pub(crate) names: Names,
    pub(crate) state: Fair<ProcessOwned<State<R>>>,
    fork_guard: ForkGuard,
    /// When no call of a callback may begin any more.
    pub(crate) closed: Arc<AtomicBool>,
    /// Whether it goes to an async callback; set with the lock.
    pub(crate) is_delivered: AtomicBool,
    /// Has a thread that waits let go of the lock. Gone when it is closed: it may hold the node.
    interrupter: Mutex<Option<ProcessOwned<Interrupter>>>,
    /// How long a wait goes on without a look for signals.
    slice: Duration,
    /// Tasks of asyncio, and threads beside them.
    pub(crate) waiters: Waiters,
}

impl<R: Receiver> Reader<R> {
    /// `spins`: its waits do not sleep.
    pub(crate) fn new(mut inner: R, names: Names, spins: bool) -> Arc<Reader<R>> {
        inner.interruptible();
        Arc::new(Reader {
            names,
            interrupter: Mutex::new(Some(ProcessOwned::new(inner.interrupter()))),
            state: Fair::new(ProcessOwned::new(State { mode: Mode::Direct(inner), held: None })),
            fork_guard: ForkGuard::here(),
            closed: Arc::default(),
            is_delivered: AtomicBool::new(false),
            slice: if spins { SPIN_SLICE } else { SLICE },
            waiters: Waiters::default(),
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.fork_guard.is_from_parent() || self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn closed_error(&self) -> Error {
        Error::Closed { what: self.fork_guard.name(self.names.itself.clone()) }
    }

    fn has_callback(&self) -> Error {
        let what = format!("use of {}", self.names.itself);
        Error::BadValue { what, why: format!("its {} go to the callback passed as on", R::ITEMS) }
    }

    fn interrupt(&self) {
        if let Some(interrupter) = &*lock(&self.interrupter) {
            interrupter.interrupt();
        }
    }

    /// Takes the lock for something short; a thread that waits lets go of it. Call it without
    /// the GIL.
    pub(crate) fn lock(&self) -> rnet::Result<Guard<'_, ProcessOwned<State<R>>>> {
        self.check_fork()?;
        Ok(self.state.lock_for_a_look(|| self.interrupt()))
    }

    fn check_fork(&self) -> rnet::Result<()> {
        // The lock may be held by a thread that only the parent has.
        self.fork_guard.check(|| self.names.itself.clone())
    }

    /// Takes the lock to wait with it, in turn with others who do; says what is left
    /// of `limit`, too. Call it without the GIL.
    pub(crate) fn lock_to_wait(
        &self,
        limit: Duration,
    ) -> rnet::Result<(Guard<'_, ProcessOwned<State<R>>>, Duration)> {
        self.check_fork()?;
        self.state.lock_to_wait(limit, || {
            let (topic, what) = (self.names.topic.clone(), self.names.awaited.clone());
            Error::Timeout { topic, what, after_ms: 0 }
        })
    }

    /// As [`Fair::lock_with_others`]. Call it without the GIL.
    pub(crate) fn lock_with_others(
        &self,
        turn: Duration,
    ) -> rnet::Result<Guard<'_, ProcessOwned<State<R>>>> {
        self.check_fork()?;
        self.state.lock_with_others(turn, || self.interrupt())
    }

    /// The receiver itself, and the message that is held for it. Tasks that await one are
    /// not woken any more until [`waiters::pass_on`], which the caller runs without the lock.
    pub(crate) fn direct<'a>(
        &self,
        state: &'a mut State<R>,
    ) -> rnet::Result<(&'a mut R, &'a mut Option<R::Item>)> {
        self.check_mine()?;
        if self.is_closed() {
            return Err(self.closed_error());
        }
        self.inner(state)
    }

    /// It is for who asks, and not for an async callback.
    fn check_mine(&self) -> rnet::Result<()> {
        match self.is_delivered.load(Ordering::Acquire) {
            true => Err(self.has_callback()),
            false => Ok(()),
        }
    }

    /// As [`Reader::direct`], also of one that somebody is about to close, who ends its waits.
    pub(crate) fn inner<'a>(
        &self,
        state: &'a mut State<R>,
    ) -> rnet::Result<(&'a mut R, &'a mut Option<R::Item>)> {
        let State { mode, held } = state;
        if matches!(mode, Mode::Stream(_))
            && let Mode::Stream(stream) = std::mem::replace(mode, Mode::Closed)
        {
            let mut inner = R::of_stream(stream)?;
            inner.interruptible();
            *mode = Mode::Direct(inner);
        }
        match mode {
            Mode::Direct(inner) => Ok((inner, held)),
            Mode::Callback(_) => Err(self.has_callback()),
            Mode::Stream(_) | Mode::Closed => Err(self.closed_error()),
        }
    }

    /// Has everything go to an async callback, which takes it by [`Reader::look_to_deliver`]. Call it without
    /// the GIL.
    pub(crate) fn begin_delivery(&self) -> rnet::Result<()> {
        let mut guard = self.lock()?;
        self.direct(&mut guard)?;
        self.is_delivered.store(true, Ordering::Release);
        drop(guard);
        // Whoever waits is told that there is a callback now.
        self.waiters.wake_all();
        Ok(())
    }

    /// Runs `act` on the receiver, for a wait: all of it may take `limit`. `act` is told
    /// what is left of that, which is nothing while tasks wait, too; then it is run again when it is
    /// this thread's turn. Call it without the GIL.
    pub(crate) fn wait_with<T>(
        self: &Arc<Self>,
        limit: Duration,
        mut act: impl FnMut(&mut R, &mut Option<R::Item>, Duration) -> rnet::Result<T>,
    ) -> rnet::Result<T> {
        waiters::wait_in_line(self, limit, |left| {
            let (mut guard, left) = self.lock_to_wait(left)?;
            let (inner, held) = self.direct(&mut guard)?;
            act(inner, held, self.waiters.alone_for(left))
        })
    }

    /// The next one, if it is there. Call it without the GIL.
    pub(crate) fn look(&self) -> rnet::Result<Option<R::Item>> {
        self.look_with(&mut *self.lock()?)
    }

    /// The next one for the async callback, if it is there. Call it without the GIL.
    pub(crate) fn look_to_deliver(&self) -> rnet::Result<Option<R::Item>> {
        self.look_at(&mut *self.lock()?)
    }

    /// As [`Reader::look`], by who has the lock.
    fn look_with(&self, state: &mut State<R>) -> rnet::Result<Option<R::Item>> {
        self.check_mine()?;
        self.look_at(state)
    }

    fn look_at(&self, state: &mut State<R>) -> rnet::Result<Option<R::Item>> {
        if self.is_closed() {
            return Err(self.closed_error());
        }
        let State { mode, held } = state;
        if held.is_some() {
            return Ok(held.take());
        }
        match mode {
            Mode::Direct(inner) => inner.try_recv_owned(),
            Mode::Stream(stream) => R::try_recv_of(stream),
            Mode::Callback(_) => Err(self.has_callback()),
            Mode::Closed => Err(self.closed_error()),
        }
    }

    /// A descriptor that is readable while there may be something. Call it without the GIL.
    pub(crate) fn fileno(self: &Arc<Self>) -> rnet::Result<RawFd> {
        // It must not be closed, nor have a callback.
        self.direct(&mut *self.lock()?)?;
        waiters::fileno(self)
    }

    /// The wait that was asked for, in slices as this reader's waits need them.
    pub(crate) fn patient(&self, wait_limit: &WaitLimit) -> WaitLimit {
        wait_limit.in_slices(self.slice)
    }

    /// Has a callback get everything from now on, as `begin` begins it. Call it without the GIL.
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
        // Whoever waits is told that there is a callback now.
        self.waiters.wake_all();
        Ok(())
    }
}

impl<R: Receiver> Member for Reader<R> {
    /// Ends it; whoever waits is told.
    fn close(&self) {
        if self.fork_guard.is_from_parent() || self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        // A callback that closes what calls it has the lock of nobody but is waited for by
        // everybody: so the lock is let go of before anything is dropped.
        let before = self.state.lock_for_a_look(|| self.interrupt()).close();
        drop(before);
        let interrupter = lock(&self.interrupter).take();
        drop(interrupter);
        self.waiters.wake_all();
    }

    fn is_over(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

impl<R: Receiver> Awaited for Reader<R> {
    fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    fn poll_ready(&self, waker: &Waker) -> bool {
        let Ok(mut guard) = self.lock() else { return true };
        let State { mode, held } = &mut **guard;
        if held.is_some() || self.is_closed() {
            return true;
        }
        if matches!(mode, Mode::Direct(_))
            && let Mode::Direct(inner) = std::mem::replace(mode, Mode::Closed)
        {
            *mode = Mode::Stream(inner.into_stream());
        }
        match mode {
            Mode::Stream(stream) => {
                R::poll_ready(stream, &mut Context::from_waker(waker)).is_ready()
            }
            // What there is is an error.
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
                Mode::Callback(_) => gate::drop_in_time((before, interrupter)),
                _ => release((before, interrupter)),
            }
        }
    }
}
