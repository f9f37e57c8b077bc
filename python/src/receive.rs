//! The receiving half behind `rnet.Subscriber`: read directly, by tasks of asyncio, or by a
//! callback.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pyo3::prelude::*;
use rnet::{Error, LossCounts, OwnedSample, PublisherStats, SampleStream, Subscription};

use crate::fair::Fair;
use crate::fork::{Birth, Own};
use crate::release::release;
use crate::tasks::Tasks;
use crate::wait::{Patience, Stop};

type Direct = rnet::Subscriber<[u8]>;
pub(crate) type RawSample = OwnedSample<[u8]>;

/// Who reads. Reading and awaiting may alternate; a callback stays.
pub(crate) enum Mode {
    Direct(Direct),
    Stream(SampleStream<[u8]>),
    Callback(Subscription),
    Closed,
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
    mode: Fair<Own<Mode>>,
    birth: Birth,
    closed: AtomicBool,
    pub(crate) tasks: Tasks,
}

impl SubscriberCore {
    pub(crate) fn new(mut inner: Direct) -> Arc<SubscriberCore> {
        inner.set_interruptible(true);
        Arc::new(SubscriberCore {
            topic: inner.topic().to_owned(),
            mode: Fair::new(Own::new(Mode::Direct(inner))),
            birth: Birth::here(),
            closed: AtomicBool::new(false),
            tasks: Tasks::default(),
        })
    }

    pub(crate) fn topic(&self) -> &str {
        &self.topic
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.birth.is_parents() || self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn closed_error(&self) -> Error {
        Error::Closed { what: self.birth.name(format!("the subscriber of {}", self.topic)) }
    }

    fn misuse(&self, why: &str) -> Error {
        Error::BadValue {
            what: format!("use of the subscriber of {}", self.topic),
            why: why.into(),
        }
    }

    /// The subscriber itself, taken back from the event loop if it is there.
    pub(crate) fn direct<'a>(&self, mode: &'a mut Mode) -> rnet::Result<&'a mut Direct> {
        if self.is_closed() {
            return Err(self.closed_error());
        }
        if matches!(mode, Mode::Stream(_)) {
            if self.tasks.any() {
                return Err(self.misuse("a task awaits its next message; await it too"));
            }
            if let Mode::Stream(stream) = std::mem::replace(mode, Mode::Closed) {
                let mut inner = stream.into_subscriber();
                inner.set_interruptible(true);
                *mode = Mode::Direct(inner);
            }
        }
        match mode {
            Mode::Direct(inner) => Ok(inner),
            Mode::Callback(_) => Err(self.misuse("its messages go to the callback given with on")),
            Mode::Stream(_) | Mode::Closed => Err(self.closed_error()),
        }
    }

    /// Takes the lock. Call it without the GIL.
    pub(crate) fn lock(&self) -> rnet::Result<MutexGuard<'_, Own<Mode>>> {
        if self.birth.is_parents() {
            // It may be held by a thread that only the parent has.
            return Err(self.closed_error());
        }
        Ok(self.mode.lock())
    }

    /// Runs `act` on the subscriber. Call it without the GIL.
    pub(crate) fn with<R>(
        &self,
        act: impl FnOnce(&mut Direct) -> rnet::Result<R>,
    ) -> rnet::Result<R> {
        let mut guard = self.lock()?;
        act(self.direct(&mut guard)?)
    }

    /// A message that is there already, if that can be said at once: letting go of the GIL and
    /// getting it back costs more than the look.
    fn look(&self) -> rnet::Result<Option<RawSample>> {
        match self.mode.try_lock().as_mut().map(|guard| &mut ***guard) {
            Some(Mode::Direct(inner)) if !self.is_closed() => {
                Ok(inner.try_recv()?.map(|sample| sample.to_owned_sample()))
            }
            _ => Ok(None),
        }
    }

    /// Waits for a message.
    pub(crate) fn take(
        &self,
        py: Python<'_>,
        which: Which,
        patience: &Patience,
    ) -> Result<RawSample, Stop> {
        if matches!(which, Which::Next)
            && let Some(sample) = self.look().map_err(Stop::Error)?
        {
            return Ok(sample);
        }
        patience.run(py, |slice: Duration| {
            self.with(|inner| match which {
                Which::Next => inner.recv(Some(slice)).map(|sample| sample.to_owned_sample()),
                Which::Newest => inner.latest(Some(slice)),
            })
        })
    }

    /// The next message, whatever happens to single publishers: that is counted. `None` once
    /// the subscriber is closed.
    pub(crate) fn take_any(&self, py: Python<'_>) -> Result<Option<RawSample>, Stop> {
        loop {
            match self.take(py, Which::Next, &Patience::endless()) {
                Ok(sample) => return Ok(Some(sample)),
                Err(Stop::Error(Error::PeerLost { .. } | Error::Detached { .. })) => {}
                Err(Stop::Error(Error::Closed { .. })) if self.is_closed() => return Ok(None),
                Err(stop) => return Err(stop),
            }
        }
    }

    /// Asks for the next message on behalf of a task. Call it without the GIL.
    pub(crate) fn poll(&self, waker: &Waker) -> Poll<rnet::Result<RawSample>> {
        let mut guard = match self.lock() {
            Ok(guard) if !self.is_closed() => guard,
            _ => return Poll::Ready(Err(self.closed_error())),
        };
        let mode = &mut **guard;
        if matches!(mode, Mode::Direct(_))
            && let Mode::Direct(inner) = std::mem::replace(mode, Mode::Closed)
        {
            *mode = Mode::Stream(inner.into_stream());
        }
        match mode {
            Mode::Stream(stream) => {
                std::pin::pin!(stream.recv()).poll(&mut Context::from_waker(waker))
            }
            Mode::Callback(_) => {
                Poll::Ready(Err(self.misuse("its messages go to the callback given with on")))
            }
            _ => Poll::Ready(Err(self.closed_error())),
        }
    }

    /// Hands all messages to `callback` from now on. Call it without the GIL.
    pub(crate) fn call(
        &self,
        callback: impl FnMut(rnet::Result<rnet::Sample<'_, [u8]>>) + Send + 'static,
    ) -> rnet::Result<()> {
        let mut guard = self.lock()?;
        let mode = &mut **guard;
        self.direct(mode)?;
        if let Mode::Direct(inner) = std::mem::replace(mode, Mode::Closed) {
            *mode = Mode::Callback(inner.on_result(callback));
        }
        Ok(())
    }

    /// What was received and lost, by publisher. Call it without the GIL.
    pub(crate) fn stats(&self) -> rnet::Result<Vec<PublisherStats>> {
        match &**self.lock()? {
            Mode::Direct(inner) => Ok(inner.stats()),
            Mode::Stream(stream) => Ok(stream.stats()),
            Mode::Callback(subscription) => Ok(subscription.stats()),
            Mode::Closed => Err(self.closed_error()),
        }
    }

    pub(crate) fn lost(&self) -> rnet::Result<LossCounts> {
        let mut sum = LossCounts::default();
        for stats in self.stats()? {
            sum.add(&stats.lost);
        }
        Ok(sum)
    }

    /// Leaves the topic; whoever waits is told. Call it without the GIL.
    pub(crate) fn close(self: &Arc<Self>) {
        if self.birth.is_parents() || self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        // A callback that closes its own subscriber has the lock of nobody but is waited for by
        // everybody: so the lock is let go of before anything is dropped.
        let before = std::mem::replace(&mut **self.mode.lock(), Mode::Closed);
        drop(before);
        self.tasks.wake_all(self);
    }
}

impl Drop for SubscriberCore {
    fn drop(&mut self) {
        if self.birth.is_parents() {
            return;
        }
        if let Some(mut guard) = self.mode.try_lock() {
            let mode = std::mem::replace(&mut **guard, Mode::Closed);
            drop(guard);
            release(mode);
        }
    }
}
