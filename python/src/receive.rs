//! The receiving half behind `rnet.Subscriber`: read directly, by tasks of asyncio, or by a
//! callback.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use pyo3::prelude::*;
use rnet::{
    Behind, Error, Interrupter, LossCounts, MatchChanges, OwnedSample, PublisherStats,
    SampleStream, Subscription,
};

use crate::fair::{Fair, Guard};
use crate::fork::{ForkGuard, Own};
use crate::gate;
use crate::members::Member;
use crate::release::release;
use crate::wait::{SLICE, SPIN_SLICE, Stop, WaitLimit};
use crate::waiters::{self, Awaited, Waiters};

type Direct = rnet::Subscriber<[u8]>;
pub(crate) type RawSample = OwnedSample<[u8]>;

/// A message for a callback.
pub(crate) enum Incoming<'a> {
    Borrowed(rnet::Sample<'a, [u8]>),
    Owned(RawSample),
}

impl Incoming<'_> {
    /// The message, unless it has expired while the thread of the callback has waited for the interpreter.
    pub(crate) fn unless_expired(self) -> Option<RawSample> {
        match self {
            Incoming::Borrowed(sample) => (!sample.expire()).then(|| sample.to_owned_sample()),
            Incoming::Owned(sample) => Some(sample),
        }
    }
}

/// How long a wait with the lock may be while tasks wait for messages of the same subscriber.
pub(crate) const BESIDE: Duration = Duration::from_millis(10);

/// Who reads. Reading and awaiting may alternate, at any moment; a callback stays.
#[allow(clippy::large_enum_variant, reason = "one a subscriber, and the largest is the hot one")]
pub(crate) enum Mode {
    Direct(Direct),
    Stream(SampleStream<[u8]>),
    Callback(Subscription),
    Closed,
}

/// What the lock of a subscriber protects.
pub(crate) struct State {
    mode: Mode,
    /// A message that came in a batch and did not fit it: the next one, for whoever asks.
    pub(crate) held: Option<RawSample>,
}

/// What a look that does not wait for the lock came to.
pub(crate) enum Glance<R> {
    Found(R),
    Nothing,
    /// Somebody else has the lock, or there is more to do than a glance can.
    Unclear,
}

impl<R> Glance<R> {
    #[inline]
    pub(crate) fn map<S>(self, make: impl FnOnce(R) -> S) -> Glance<S> {
        match self {
            Glance::Found(found) => Glance::Found(make(found)),
            Glance::Nothing => Glance::Nothing,
            Glance::Unclear => Glance::Unclear,
        }
    }
}

/// How an iteration takes an error.
pub(crate) enum Passing {
    /// The loop gets it.
    Ends,
    /// The loop goes on.
    Silent,
    /// The loop goes on, and nobody is there whom it could hear: the user is warned.
    Warns,
}

/// Calls a method that a subscriber has however it is read. Call it without the GIL.
macro_rules! in_any_mode {
    ($core:expr, $inner:ident => $call:expr) => {
        match &mut $core.lock()?.mode {
            Mode::Direct($inner) => Ok($call),
            Mode::Stream($inner) => Ok($call),
            Mode::Callback($inner) => Ok($call),
            Mode::Closed => Err($core.closed_error()),
        }
    };
}

/// Which message is wanted.
#[derive(Clone, Copy)]
pub(crate) enum Which {
    Next,
    Newest,
}

/// What the Python object, its callback and its node share.
pub(crate) struct SubscriberCore {
    topic: String,
    state: Fair<Own<State>>,
    fork_guard: ForkGuard,
    closed: AtomicBool,
    /// Whether its messages go to an async callback; set with the lock.
    is_delivered: AtomicBool,
    /// Has a thread that waits let go of the lock.
    interrupter: Interrupter,
    /// How long a wait goes on without a look for signals.
    slice: Duration,
    /// Tasks of asyncio, and threads beside them.
    pub(crate) waiters: Waiters,
}

impl SubscriberCore {
    /// `spins`: its waits do not sleep.
    pub(crate) fn new(mut inner: Direct, spins: bool) -> Arc<SubscriberCore> {
        inner.set_interruptible(true);
        Arc::new(SubscriberCore {
            topic: inner.topic().to_owned(),
            interrupter: inner.interrupter(),
            state: Fair::new(Own::new(State { mode: Mode::Direct(inner), held: None })),
            fork_guard: ForkGuard::here(),
            slice: if spins { SPIN_SLICE } else { SLICE },
            closed: AtomicBool::new(false),
            is_delivered: AtomicBool::new(false),
            waiters: Waiters::default(),
        })
    }

    pub(crate) fn topic(&self) -> &str {
        &self.topic
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.fork_guard.is_parents() || self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn closed_error(&self) -> Error {
        Error::Closed { what: self.fork_guard.name(format!("the subscriber of {}", self.topic)) }
    }

    fn has_callback(&self) -> Error {
        Error::BadValue {
            what: format!("use of the subscriber of {}", self.topic),
            why: "its messages go to the callback given with on".into(),
        }
    }

    /// The subscriber itself, and the message that is held for it. Tasks that await a message are
    /// not woken any more until [`waiters::pass_on`], which the caller runs without the lock.
    pub(crate) fn direct<'a>(
        &self,
        state: &'a mut State,
    ) -> rnet::Result<(&'a mut Direct, &'a mut Option<RawSample>)> {
        self.check_mine()?;
        if self.is_closed() {
            return Err(self.closed_error());
        }
        self.inner(state)
    }

    /// Its messages are for who asks, and not for an async callback.
    fn check_mine(&self) -> rnet::Result<()> {
        match self.is_delivered.load(Ordering::Acquire) {
            true => Err(self.has_callback()),
            false => Ok(()),
        }
    }

    /// Has its messages go to an async callback, which takes them by [`SubscriberCore::look_to_deliver`]. Call it without
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

    /// As [`SubscriberCore::direct`], also of one that somebody is about to close, who ends its waits.
    pub(crate) fn inner<'a>(
        &self,
        state: &'a mut State,
    ) -> rnet::Result<(&'a mut Direct, &'a mut Option<RawSample>)> {
        let State { mode, held } = state;
        if matches!(mode, Mode::Stream(_))
            && let Mode::Stream(stream) = std::mem::replace(mode, Mode::Closed)
        {
            let mut inner = stream.into_subscriber();
            inner.set_interruptible(true);
            *mode = Mode::Direct(inner);
        }
        match mode {
            Mode::Direct(inner) => Ok((inner, held)),
            Mode::Callback(_) => Err(self.has_callback()),
            Mode::Stream(_) | Mode::Closed => Err(self.closed_error()),
        }
    }

    fn check_fork(&self) -> rnet::Result<()> {
        // The lock may be held by a thread that only the parent has.
        if self.fork_guard.is_parents() { Err(self.closed_error()) } else { Ok(()) }
    }

    /// Takes the lock for something short; a thread that waits lets go of it. Call it without
    /// the GIL.
    fn lock(&self) -> rnet::Result<Guard<'_, Own<State>>> {
        self.check_fork()?;
        Ok(self.state.lock_for_a_look(|| self.interrupter.interrupt()))
    }

    /// Takes the lock to wait for a message with it, in turn with others who do; says what is left
    /// of `limit`, too. Call it without the GIL.
    fn lock_to_wait(&self, limit: Duration) -> rnet::Result<(Guard<'_, Own<State>>, Duration)> {
        self.check_fork()?;
        self.state.lock_to_wait(limit, || {
            let what = format!("a message on {}", self.topic);
            Error::Timeout { topic: self.topic.to_string(), what, after_ms: 0 }
        })
    }

    /// As [`Fair::lock_with_others`]. Call it without the GIL.
    pub(crate) fn lock_with_others(&self, turn: Duration) -> rnet::Result<Guard<'_, Own<State>>> {
        self.check_fork()?;
        self.state.lock_with_others(turn, || self.interrupter.interrupt())
    }

    /// Runs `act` on the subscriber, for a wait for messages: all of it may take `limit`. `act` is told
    /// what is left of that, which is nothing while tasks wait, too; then it is run again when it is
    /// this thread's turn. Call it without the GIL.
    pub(crate) fn wait_with<R>(
        self: &Arc<Self>,
        limit: Duration,
        mut act: impl FnMut(&mut Direct, &mut Option<RawSample>, Duration) -> rnet::Result<R>,
    ) -> rnet::Result<R> {
        waiters::wait_in_line(self, limit, |left| {
            let (mut guard, left) = self.lock_to_wait(left)?;
            let (inner, held) = self.direct(&mut guard)?;
            act(inner, held, self.waiters.alone_for(left))
        })
    }

    /// As [`SubscriberCore::wait_with`], for a wait for something else than messages, which tasks that
    /// await messages are not to notice.
    pub(crate) fn wait_aside<R>(
        self: &Arc<Self>,
        limit: Duration,
        act: impl FnOnce(&mut Direct, Duration) -> rnet::Result<R>,
    ) -> rnet::Result<R> {
        let result = self.lock_to_wait(limit).and_then(|(mut guard, left)| {
            if self.is_closed() {
                return Err(self.closed_error());
            }
            let (inner, _) = self.inner(&mut guard)?;
            act(inner, if self.waiters.any() { left.min(BESIDE) } else { left })
        });
        waiters::pass_on(self);
        result
    }

    /// The next message, as `make` makes it, or `make_owned` where it cannot be borrowed, if it can
    /// be had at once and with the GIL held: to let go of the GIL and to get it back costs more than
    /// the look.
    #[inline]
    pub(crate) fn glance<R>(
        &self,
        make: impl FnOnce(rnet::Sample<'_, [u8]>) -> R,
        make_owned: impl FnOnce(RawSample) -> R,
    ) -> rnet::Result<Glance<R>> {
        if self.is_closed() || self.is_delivered.load(Ordering::Acquire) {
            return Ok(Glance::Unclear);
        }
        let Some(mut guard) = self.state.try_lock() else { return Ok(Glance::Unclear) };
        let found = match &mut **guard {
            State { mode: Mode::Direct(inner), held: None } => inner.try_recv()?.map(make),
            State { mode: Mode::Stream(stream), held: None } => stream.try_recv()?.map(make_owned),
            _ => return Ok(Glance::Unclear),
        };
        Ok(found.map_or(Glance::Nothing, Glance::Found))
    }

    /// The next message, if it is there. Call it without the GIL.
    pub(crate) fn look(&self) -> rnet::Result<Option<RawSample>> {
        self.look_with(&mut *self.lock()?)
    }

    /// The next message for the async callback, if it is there. Call it without the GIL.
    pub(crate) fn look_to_deliver(&self) -> rnet::Result<Option<RawSample>> {
        self.look_at(&mut *self.lock()?)
    }

    /// As [`SubscriberCore::look`], by who has the lock.
    pub(crate) fn look_with(&self, state: &mut State) -> rnet::Result<Option<RawSample>> {
        self.check_mine()?;
        self.look_at(state)
    }

    fn look_at(&self, state: &mut State) -> rnet::Result<Option<RawSample>> {
        if self.is_closed() {
            return Err(self.closed_error());
        }
        let State { mode, held } = state;
        if held.is_some() {
            return Ok(held.take());
        }
        match mode {
            Mode::Direct(inner) => Ok(inner.try_recv()?.map(|sample| sample.to_owned_sample())),
            Mode::Stream(stream) => stream.try_recv(),
            Mode::Callback(_) => Err(self.has_callback()),
            Mode::Closed => Err(self.closed_error()),
        }
    }

    /// A descriptor that is readable while there may be a message. Call it without the GIL.
    pub(crate) fn fileno(self: &Arc<Self>) -> rnet::Result<RawFd> {
        // It must not be closed, nor have a callback.
        self.direct(&mut *self.lock()?)?;
        waiters::fileno(self)
    }

    /// The wait that was asked for, in slices as this subscriber's waits need them.
    pub(crate) fn patient(&self, wait_limit: &WaitLimit) -> WaitLimit {
        wait_limit.in_slices(self.slice)
    }

    /// Waits for a message.
    pub(crate) fn take(
        self: &Arc<Self>,
        py: Python<'_>,
        which: Which,
        wait_limit: &WaitLimit,
    ) -> Result<RawSample, Stop> {
        self.patient(wait_limit).run(py, |slice| {
            self.wait_with(slice, |inner, held, left| match (which, held.take()) {
                (Which::Next, Some(sample)) => Ok(sample),
                (Which::Next, None) => {
                    inner.recv(Some(left)).map(|sample| sample.to_owned_sample())
                }
                (Which::Newest, None) => inner.latest(Some(left)),
                (Which::Newest, Some(sample)) => match inner.latest_after(&sample) {
                    Ok(newer) => Ok(newer.unwrap_or(sample)),
                    Err(error) => {
                        *held = Some(sample);
                        Err(error)
                    }
                },
            })
        })
    }

    /// Hands all messages to `callback` from now on, and at once the error that keeps it from being
    /// called, if there is one. Call it without the GIL.
    pub(crate) fn call(
        self: &Arc<Self>,
        callback: impl Fn(rnet::Result<Incoming<'_>>) + Clone + Send + 'static,
    ) -> rnet::Result<()> {
        let held = self.direct(&mut *self.lock()?)?.1.take();
        if let Some(sample) = held {
            // The dispatch thread does not know of it.
            callback(Ok(Incoming::Owned(sample)));
        }
        let mut guard = self.lock()?;
        self.direct(&mut guard)?;
        let mode = &mut guard.mode;
        let tell = callback.clone();
        let mut late = None;
        if let Mode::Direct(inner) = std::mem::replace(mode, Mode::Closed) {
            let run = move |result: rnet::Result<rnet::Sample<'_, [u8]>>| {
                callback(result.map(Incoming::Borrowed))
            };
            let subscription = inner.on_result(run);
            late = subscription.error();
            *mode = Mode::Callback(subscription);
        }
        drop(guard);
        // Whoever waits is told that there is a callback now.
        self.waiters.wake_all();
        // The callback may close this subscriber.
        if let Some(error) = late {
            tell(Err(error));
        }
        Ok(())
    }

    /// How many publishers serve it now. Call it without the GIL.
    pub(crate) fn publisher_count(&self) -> rnet::Result<usize> {
        in_any_mode!(self, inner => inner.publisher_count())
    }

    /// Calls `hook` for each change of who is matched. Call it without the GIL.
    pub(crate) fn on_match(
        &self,
        hook: impl FnMut(&rnet::MatchEvent) + Send + 'static,
    ) -> rnet::Result<()> {
        in_any_mode!(self, inner => inner.on_match(hook))
    }

    pub(crate) fn on_deadline(
        &self,
        hook: impl FnMut(&rnet::DeadlineMissed) + Send + 'static,
    ) -> rnet::Result<()> {
        in_any_mode!(self, inner => inner.on_deadline(hook))
    }

    pub(crate) fn on_liveliness(
        &self,
        hook: impl FnMut(&rnet::LivelinessChange) + Send + 'static,
    ) -> rnet::Result<()> {
        in_any_mode!(self, inner => inner.on_liveliness(hook))
    }

    pub(crate) fn liveliness(&self) -> rnet::Result<rnet::LivelinessCounts> {
        in_any_mode!(self, inner => inner.liveliness())
    }

    /// Waits for a slice until `n` publishers serve it. Call it without the GIL.
    pub(crate) fn wait_for_publishers(
        self: &Arc<Self>,
        n: usize,
        slice: Duration,
    ) -> rnet::Result<()> {
        let Some((changes, seen, now)) = self.look_at_callback(n)? else {
            return self.wait_aside(slice, |inner, left| inner.wait_for_publishers(n, Some(left)));
        };
        match now {
            Err(Error::Timeout { .. }) => {}
            result => return result,
        }
        // Slept outside of the lock: the callback may look at its subscriber meanwhile.
        changes.wait(seen, slice)?;
        match self.look_at_callback(n)? {
            Some((_, _, now)) => now,
            None => Err(self.closed_error()),
        }
    }

    /// Whether `n` publishers serve the callback now, and how to hear of a change; `None` if it has none.
    #[allow(clippy::type_complexity, reason = "used by its neighbour alone")]
    fn look_at_callback(
        &self,
        n: usize,
    ) -> rnet::Result<Option<(MatchChanges, u32, rnet::Result<()>)>> {
        let guard = self.lock()?;
        let Mode::Callback(subscription) = &guard.mode else { return Ok(None) };
        let changes = subscription.match_changes();
        let seen = changes.count();
        let now = subscription.wait_for_publishers(n, Some(Duration::ZERO));
        Ok(Some((changes, seen, now)))
    }

    /// What was received and lost, by publisher. Call it without the GIL.
    pub(crate) fn stats(&self) -> rnet::Result<Vec<PublisherStats>> {
        in_any_mode!(self, inner => inner.stats())
    }

    /// How an iteration takes an error: what happened to a single publisher is counted, or seen by
    /// `on_match` and the tools, and ends nothing. Call it without the GIL.
    pub(crate) fn passes_over(&self, error: &Error) -> Passing {
        match error {
            Error::PeerLost { .. } | Error::Detached { .. } => Passing::Silent,
            Error::IncompatibleType { .. } | Error::IncompatibleQos { .. } => match self.stats() {
                Ok(stats) if stats.iter().any(|of| of.connected) => Passing::Silent,
                _ => Passing::Warns,
            },
            _ => Passing::Ends,
        }
    }

    pub(crate) fn behind(&self) -> rnet::Result<Behind> {
        let mut sum = Behind::default();
        self.stats()?.iter().for_each(|stats| sum.add(&stats.behind));
        Ok(sum)
    }

    pub(crate) fn lost(&self) -> rnet::Result<LossCounts> {
        let mut sum = LossCounts::default();
        for stats in self.stats()? {
            sum.add(&stats.lost);
        }
        Ok(sum)
    }
}

impl Member for SubscriberCore {
    /// Leaves the topic; whoever waits is told.
    fn close(&self) {
        if self.fork_guard.is_parents() || self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        // A callback that closes its own subscriber has the lock of nobody but is waited for by
        // everybody: so the lock is let go of before anything is dropped.
        let closed = State { mode: Mode::Closed, held: None };
        let before = {
            let mut guard = self.state.lock_for_a_look(|| self.interrupter.interrupt());
            std::mem::replace(&mut **guard, closed)
        };
        drop(before);
        self.waiters.wake_all();
    }
}

impl Awaited for SubscriberCore {
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
            Mode::Stream(stream) => stream.poll_ready(&mut Context::from_waker(waker)).is_ready(),
            // What there is is an error.
            _ => true,
        }
    }

    fn is_parents(&self) -> bool {
        self.fork_guard.is_parents()
    }
}

impl Drop for SubscriberCore {
    fn drop(&mut self) {
        if self.fork_guard.is_parents() {
            return;
        }
        if let Some(mut guard) = self.state.try_lock() {
            let closed = State { mode: Mode::Closed, held: None };
            let before = std::mem::replace(&mut **guard, closed);
            drop(guard);
            match &before.mode {
                Mode::Callback(_) => gate::drop_in_time(before),
                _ => release(before),
            }
        }
    }
}
