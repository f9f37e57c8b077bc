//! Descriptors for event loops: poll, epoll, asio, Qt.
//!
//! The descriptor is an `eventfd`. While nothing is available, the source is in a stream, which raises the event
//! from a dispatch thread of its node.

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rnet::state::{ChangeStream, Watch};
use rnet::{Error, Event, SampleStream, Subscriber};

use crate::border::{enter, given, write};
use crate::error::{Failure, Outcome, rnet_code, rnet_error};
use crate::options::duration;
use crate::subscriber::{RNET_FOREVER, end_borrow, rnet_subscriber};

/// A receiver that an event loop can poll.
pub(crate) trait EventSource: Sized {
    /// The same receiver, watched by a dispatch thread.
    type Stream: Send;

    fn into_stream(self) -> Self::Stream;
    /// `None` in a forked child.
    fn from_stream(stream: Self::Stream) -> Option<Self>;
    /// Ready if something may be available; otherwise the waker is called once something is.
    fn poll_ready(stream: &mut Self::Stream, context: &mut Context<'_>) -> Poll<()>;
    /// Calls `act`, which does not wait; `None` in a forked child.
    fn with<R>(stream: &Self::Stream, act: impl FnOnce(&mut Self) -> R) -> Option<R>;
}

impl EventSource for Subscriber<[u8]> {
    type Stream = SampleStream<[u8]>;

    fn into_stream(self) -> SampleStream<[u8]> {
        self.into_stream()
    }
    fn from_stream(stream: SampleStream<[u8]>) -> Option<Subscriber<[u8]>> {
        stream.into_source().ok()
    }
    fn poll_ready(stream: &mut SampleStream<[u8]>, context: &mut Context<'_>) -> Poll<()> {
        stream.poll_ready(context)
    }
    fn with<R>(stream: &SampleStream<[u8]>, act: impl FnOnce(&mut Self) -> R) -> Option<R> {
        stream.with_source(act)
    }
}

impl EventSource for Watch {
    type Stream = ChangeStream;

    fn into_stream(self) -> ChangeStream {
        self.into_stream()
    }
    fn from_stream(stream: ChangeStream) -> Option<Watch> {
        stream.into_source().ok()
    }
    fn poll_ready(stream: &mut ChangeStream, context: &mut Context<'_>) -> Poll<()> {
        stream.poll_ready(context)
    }
    fn with<R>(stream: &ChangeStream, act: impl FnOnce(&mut Self) -> R) -> Option<R> {
        stream.with_source(act)
    }
}

/// The event whose descriptor the user has. It stays open until the user frees the object, so that its number is not
/// given to another file while a loop still waits for it.
#[derive(Default)]
pub(crate) struct KeptEvent(OnceLock<Arc<Event>>);

impl KeptEvent {
    /// The descriptor of an event.
    pub(crate) fn keep(&self, event: Arc<Event>) -> c_int {
        self.0.get_or_init(|| event).as_fd().as_raw_fd()
    }
}

/// A receiver, read directly until its user asks for its descriptor.
pub(crate) enum Pollable<S: EventSource> {
    Direct(S),
    Polled(Polled<S>),
    /// Between the two.
    Empty,
}

/// A receiver with a descriptor. The event is raised, or the stream is armed to raise it.
pub(crate) struct Polled<S: EventSource> {
    /// `None` during a wait.
    stream: Option<S::Stream>,
    event: Arc<Event>,
}

fn closed() -> Failure {
    Error::closed("the object of a descriptor").into()
}

impl<S: EventSource> Pollable<S> {
    /// Calls `act`, which does not wait.
    pub(crate) fn read<R>(&self, act: impl FnOnce(&S) -> R) -> Outcome<R> {
        match self {
            Pollable::Direct(source) => Ok(act(source)),
            Pollable::Polled(polled) => polled.with(|source| act(source)),
            Pollable::Empty => Err(closed()),
        }
    }

    /// As [`Pollable::read`], for an `act` that changes the receiver.
    pub(crate) fn with<R>(&mut self, act: impl FnOnce(&mut S) -> R) -> Outcome<R> {
        match self {
            Pollable::Direct(source) => Ok(act(source)),
            Pollable::Polled(polled) => polled.with(act),
            Pollable::Empty => Err(closed()),
        }
    }

    /// Takes an item without waiting. If there is none, the descriptor signals the next one.
    pub(crate) fn try_next<R>(
        &mut self,
        take: impl FnOnce(&mut S) -> rnet::Result<Option<R>>,
    ) -> Outcome<Option<R>> {
        let next = self.with(take)??;
        if let Pollable::Polled(polled) = self
            && next.is_none()
            && polled.event.lower()
        {
            polled.arm();
        }
        Ok(next)
    }

    /// Calls `act`, which may wait.
    pub(crate) fn wait<R>(&mut self, act: impl FnOnce(&mut S) -> rnet::Result<R>) -> Outcome<R> {
        match self {
            Pollable::Direct(source) => Ok(act(source)?),
            Pollable::Polled(polled) => polled.wait(act),
            Pollable::Empty => Err(closed()),
        }
    }

    /// Takes an item, and waits for at most `timeout_ns` if there is none; `None` if that is 0.
    pub(crate) fn receive<R>(
        &mut self,
        timeout_ns: i64,
        try_take: fn(&mut S) -> rnet::Result<Option<R>>,
        take: fn(&mut S) -> rnet::Result<R>,
        take_within: fn(&mut S, Duration) -> rnet::Result<R>,
    ) -> Outcome<Option<R>> {
        let next = self.try_next(try_take)?;
        match timeout_ns {
            _ if next.is_some() => Ok(next),
            0 => Ok(None),
            RNET_FOREVER => self.wait(take).map(Some),
            ns => {
                let limit = duration(ns, "timeout_ns")?;
                self.wait(|source| take_within(source, limit)).map(Some)
            }
        }
    }

    /// The event whose descriptor signals items from now on.
    pub(crate) fn event(&mut self) -> Outcome<Arc<Event>> {
        if let Pollable::Direct(_) = self {
            let event = Arc::new(Event::new()?);
            let Pollable::Direct(source) = std::mem::replace(self, Pollable::Empty) else {
                return Err(closed());
            };
            let mut polled = Polled { stream: Some(source.into_stream()), event };
            polled.arm();
            *self = Pollable::Polled(polled);
        }
        match self {
            // Fails in a forked child.
            Pollable::Polled(polled) => polled.with(|_| ()).map(|()| polled.event.clone()),
            _ => Err(closed()),
        }
    }

    /// The receiver, without a descriptor.
    pub(crate) fn into_direct(self) -> Outcome<S> {
        match self {
            Pollable::Direct(source) => Ok(source),
            Pollable::Polled(mut polled) => polled.take(),
            Pollable::Empty => Err(closed()),
        }
    }
}

impl<S: EventSource> Polled<S> {
    fn with<R>(&self, act: impl FnOnce(&mut S) -> R) -> Outcome<R> {
        self.stream.as_ref().and_then(|stream| S::with(stream, act)).ok_or_else(closed)
    }

    fn take(&mut self) -> Outcome<S> {
        self.stream.take().and_then(S::from_stream).ok_or_else(closed)
    }

    fn wait<R>(&mut self, act: impl FnOnce(&mut S) -> rnet::Result<R>) -> Outcome<R> {
        let mut source = self.take()?;
        let result = act(&mut source);
        self.stream = Some(source.into_stream());
        self.event.lower();
        self.arm();
        Ok(result?)
    }

    /// Raises the event once something may be available.
    fn arm(&mut self) {
        let waker = Waker::from(self.event.clone());
        if let Some(stream) = &mut self.stream
            && S::poll_ready(stream, &mut Context::from_waker(&waker)).is_ready()
        {
            self.event.raise();
        }
    }
}

/// A loop that polls the descriptor of a closed object learns that from its next call.
impl<S: EventSource> Drop for Polled<S> {
    fn drop(&mut self) {
        drop(self.stream.take());
        self.event.raise();
    }
}

/// A file descriptor for an event loop: readable when a message or an error may be available.
///
/// It is level-triggered: it stays readable until rnet_subscriber_recv() with a timeout of 0 gives no sample, so
/// receive until then. It may be readable without a message. Do not read from it, write to it or close it: it is
/// closed by rnet_subscriber_free(). If the subscriber or its node is closed, it becomes readable, and
/// rnet_subscriber_recv() fails with RNET_CLOSED. Each call gives the same descriptor. Ends a borrowed sample.
///
/// A message takes one thread hop more than with rnet_subscriber_recv(); senders do not notice the descriptor.
///
/// Errors: RNET_LIMIT_REACHED if the process has no free descriptor; RNET_CLOSED, RNET_WRONG_THREAD.
///
/// # Safety
/// `subscriber` is a subscriber, `out` valid for a write, `error` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rnet_subscriber_fd(
    subscriber: *mut rnet_subscriber,
    out: *mut c_int,
    error: *mut *mut rnet_error,
) -> rnet_code {
    let body = || {
        // SAFETY: as promised by the caller.
        let subscriber = unsafe { given(subscriber, "subscriber") }?;
        end_borrow(&subscriber.receiving)?;
        let event = subscriber.receiving.with(|it| it.subscriber.event())?;
        // SAFETY: as promised by the caller.
        unsafe { write(out, subscriber.event.keep(event)) }
    };
    // SAFETY: as promised by the caller.
    unsafe { enter(error, body) }
}
