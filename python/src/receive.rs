//! The receiver behind `rnet.Subscriber`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pyo3::prelude::*;
use rnet::binding::EngineSubscriber;
use rnet::{
    Backlog, Error, Interrupter, LossCounts, MatchChanges, OwnedSample, PublisherStats,
    ReceiveStream, Subscription,
};

use crate::reader::{Labels, Mode, Reader, ReaderState, Receiver, SHARED_WAIT_LIMIT};
use crate::wait::WaitLimit;
use crate::wait_queue;

type RawSubscriber = rnet::Subscriber<[u8]>;
pub(crate) type RawSample = OwnedSample<[u8]>;
pub(crate) type SubscriberCore = Reader<RawSubscriber>;

impl Receiver for RawSubscriber {
    type Subscription = Subscription;

    const ITEMS: &str = "messages";

    fn interrupter(&mut self) -> Interrupter {
        rnet::Subscriber::interrupter(self)
    }
    fn make_interruptible(&mut self) {
        self.set_interruptible(true);
    }
    fn into_stream(self) -> ReceiveStream<RawSubscriber> {
        self.into_stream()
    }
}

/// A message for a callback.
pub(crate) enum Incoming<'a> {
    Borrowed(rnet::Sample<'a, [u8]>),
    Owned(RawSample),
}

impl Incoming<'_> {
    /// The message, unless it has expired while the thread of the callback waited for the GIL.
    pub(crate) fn unless_expired(self) -> Option<RawSample> {
        match self {
            Incoming::Borrowed(sample) => (!sample.expire()).then(|| sample.into_owned()),
            Incoming::Owned(sample) => Some(sample),
        }
    }
}

/// The result of an attempt that does not wait for the lock.
pub(crate) enum FastRecv<R> {
    Found(R),
    Empty,
    /// Another thread has the lock, or the fast path cannot do all of the work.
    NeedsSlowPath,
}

impl<R> FastRecv<R> {
    #[inline]
    pub(crate) fn map<S>(self, make: impl FnOnce(R) -> S) -> FastRecv<S> {
        match self {
            FastRecv::Found(found) => FastRecv::Found(make(found)),
            FastRecv::Empty => FastRecv::Empty,
            FastRecv::NeedsSlowPath => FastRecv::NeedsSlowPath,
        }
    }
}

/// The requested message.
#[derive(Clone, Copy)]
pub(crate) enum WhichMessage {
    Next,
    Newest,
}

/// Calls a method that a subscriber has in every reading mode. Call it without the GIL.
macro_rules! in_any_mode {
    ($core:expr, $inner:ident => $call:expr) => {
        match &mut $core.lock()?.mode {
            $crate::reader::Mode::Direct($inner) => Ok($call),
            $crate::reader::Mode::Stream(stream) => {
                Ok(stream.with_source(|$inner| $call).unwrap_or_default())
            }
            $crate::reader::Mode::Callback($inner) => Ok($call),
            $crate::reader::Mode::Closed => Err($core.closed_error()),
        }
    };
}
pub(crate) use in_any_mode;

impl SubscriberCore {
    pub(crate) fn of(inner: RawSubscriber, spins: bool) -> Arc<SubscriberCore> {
        let topic = inner.topic().to_owned();
        let description = format!("the subscriber of {topic}");
        let awaited_item = format!("a message on {topic}");
        Reader::new(inner, Labels { topic, description, awaited_item }, spins)
    }

    pub(crate) fn topic(&self) -> &str {
        &self.labels.topic
    }

    /// Like [`SubscriberCore::wait_with`], for a wait for something other than messages, which must not
    /// affect the tasks that await messages.
    pub(crate) fn wait_for_status<R>(
        self: &Arc<Self>,
        limit: Duration,
        act: impl FnOnce(&mut RawSubscriber, Duration) -> rnet::Result<R>,
    ) -> rnet::Result<R> {
        let result = self.lock_to_wait(limit).and_then(|(mut guard, left)| {
            if self.is_closed() {
                return Err(self.closed_error());
            }
            let (inner, _) = self.inner(&mut guard)?;
            act(
                inner,
                if self.wait_queue.has_waiters() { left.min(SHARED_WAIT_LIMIT) } else { left },
            )
        });
        wait_queue::wake_or_arm(self);
        result
    }

    /// The next message, converted by `make`, or by `make_owned` if it cannot be borrowed. Returns it only if
    /// that is possible at once with the GIL held, because releasing and retaking the GIL costs more than the
    /// check.
    #[inline]
    pub(crate) fn recv_fast<R>(
        &self,
        make: impl FnOnce(rnet::Sample<'_, [u8]>) -> R,
        make_owned: impl FnOnce(RawSample) -> R,
    ) -> rnet::Result<FastRecv<R>> {
        if self.is_closed() || self.has_async_callback.load(Ordering::Acquire) {
            return Ok(FastRecv::NeedsSlowPath);
        }
        let Some(mut guard) = self.state.try_lock() else { return Ok(FastRecv::NeedsSlowPath) };
        let found = match &mut **guard {
            ReaderState { mode: Mode::Direct(inner), lookahead: None } => {
                inner.try_recv()?.map(make)
            }
            ReaderState { mode: Mode::Stream(stream), lookahead: None } => {
                stream.try_recv()?.map(make_owned)
            }
            _ => return Ok(FastRecv::NeedsSlowPath),
        };
        Ok(found.map_or(FastRecv::Empty, FastRecv::Found))
    }

    /// Waits for a message.
    pub(crate) fn take(
        self: &Arc<Self>,
        py: Python<'_>,
        which: WhichMessage,
        wait_limit: &WaitLimit,
    ) -> PyResult<RawSample> {
        self.in_slices(wait_limit).run(py, |slice| {
            self.wait_with(slice, |inner, lookahead, left| match (which, lookahead.take()) {
                (WhichMessage::Next, Some(sample)) => Ok(sample),
                (WhichMessage::Next, None) => {
                    inner.recv_timeout(left).map(|sample| sample.into_owned())
                }
                (WhichMessage::Newest, None) => inner.latest_timeout(left),
                (WhichMessage::Newest, Some(sample)) => match inner.latest_after(&sample) {
                    Ok(newer) => Ok(newer.unwrap_or(sample)),
                    Err(error) => {
                        *lookahead = Some(sample);
                        Err(error)
                    }
                },
            })
        })
    }

    /// Passes all messages to `callback` from now on. If an error prevents the callback from being called, it
    /// gets that error at once. Call it without the GIL.
    pub(crate) fn start_callback(
        self: &Arc<Self>,
        callback: impl Fn(rnet::Result<Incoming<'_>>) + Clone + Send + 'static,
    ) -> rnet::Result<()> {
        let lookahead = self.direct(&mut *self.lock()?)?.1.take();
        if let Some(sample) = lookahead {
            // The dispatch thread does not have this message.
            callback(Ok(Incoming::Owned(sample)));
        }
        let tell = callback.clone();
        let mut late = None;
        self.begin_callback(|inner| {
            let run = move |result: rnet::Result<rnet::Sample<'_, [u8]>>| {
                callback(result.map(Incoming::Borrowed))
            };
            let subscription = inner.on_result(run);
            late = subscription.error();
            subscription
        })?;
        // The callback may close this subscriber.
        if let Some(error) = late {
            tell(Err(error));
        }
        Ok(())
    }

    /// Waits for a slice until `n` publishers are connected. Call it without the GIL.
    pub(crate) fn wait_for_publishers(
        self: &Arc<Self>,
        n: usize,
        slice: Duration,
    ) -> rnet::Result<()> {
        let Some((changes, seen, now)) = self.callback_match_status(n)? else {
            return self
                .wait_for_status(slice, |inner, left| inner.wait_for_publishers_timeout(n, left));
        };
        match now {
            Err(Error::Timeout { .. }) => {}
            result => return result,
        }
        // Waits outside of the lock: the callback may use its subscriber meanwhile.
        changes.wait(seen, slice)?;
        match self.callback_match_status(n)? {
            Some((_, _, now)) => now,
            None => Err(self.closed_error()),
        }
    }

    /// Whether `n` publishers are connected to the callback now, and how to wait for a change; `None` without
    /// a callback.
    #[allow(clippy::type_complexity, reason = "used by its neighbour alone")]
    fn callback_match_status(
        &self,
        n: usize,
    ) -> rnet::Result<Option<(MatchChanges, u32, rnet::Result<()>)>> {
        let guard = self.lock()?;
        let Mode::Callback(subscription) = &guard.mode else { return Ok(None) };
        let changes = subscription.match_changes();
        let seen = changes.count();
        let now = subscription.wait_for_publishers_timeout(n, Duration::ZERO);
        Ok(Some((changes, seen, now)))
    }

    /// Received and lost messages by publisher. Call it without the GIL.
    pub(crate) fn stats(&self) -> rnet::Result<Vec<PublisherStats>> {
        in_any_mode!(self, inner => inner.stats())
    }

    pub(crate) fn behind(&self) -> rnet::Result<Backlog> {
        let mut sum = Backlog::default();
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
