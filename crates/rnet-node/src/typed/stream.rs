//! Receiving in async code, under any executor.
//!
//! The dispatch thread of the topic's lane waits for the subscriber and wakes the task.

use std::future::{Future, poll_fn};
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::wake_stream::WakeStream;
use futures_core::Stream;
use rnet_core::{Backlog, Lane, Result};

use super::sample::{OwnedSample, Sample};
use super::subscriber::Subscriber;
use crate::{
    CallbackGuard, DeadlineMissed, LivelinessChange, LivelinessCounts, MatchEvent, Message,
    PublisherStats,
};

/// A subscriber for async code: a [`Stream`] of samples; [`SampleStream::recv`] returns one at a time.
pub struct SampleStream<T: Message + ?Sized>(WakeStream<Subscriber<T>>);

impl<T: Message + ?Sized> Subscriber<T> {
    /// Turns the subscriber into a stream, for any executor.
    pub fn into_stream(self) -> SampleStream<T> {
        let (lane, core) = (self.receiver.lane().unwrap_or(Lane::Urgent), self.core.clone());
        SampleStream(WakeStream::new(core, lane, self))
    }
}

/// The next message of a subscriber.
fn next<T: Message + ?Sized>(subscriber: &mut Subscriber<T>) -> Result<Option<OwnedSample<T>>> {
    Ok(subscriber.try_recv()?.map(Sample::into_owned))
}

impl<T: Message + ?Sized> SampleStream<T> {
    /// Turns the stream back into a subscriber; a task that waits in it is no longer woken.
    ///
    /// # Panics
    /// In a forked child, because the stream belongs to the parent.
    pub fn into_subscriber(self) -> Subscriber<T> {
        self.0.into_source().expect("the stream belongs to this process, not to its parent")
    }

    /// Calls `act` with the subscriber; `None` in a forked child. `act` must not wait for messages: that would
    /// stop the dispatch thread of the topic's lane.
    pub fn with_subscriber<R>(&self, act: impl FnOnce(&mut Subscriber<T>) -> R) -> Option<R> {
        self.0.with_source(|subscriber| Some(act(subscriber)))
    }

    /// Received and lost messages by publisher, including former publishers.
    pub fn stats(&self) -> Vec<PublisherStats> {
        self.0.with_source(|subscriber| subscriber.stats())
    }

    /// Number of publishers that serve it now.
    pub fn publisher_count(&self) -> usize {
        self.0.with_source(Subscriber::publisher_count)
    }

    /// Calls `callback` for each match change, on the node's bulk dispatch thread.
    pub fn on_match(&self, callback: impl FnMut(&MatchEvent) + Send + 'static) -> CallbackGuard {
        self.0.with_source(|subscriber| subscriber.on_match(callback))
    }

    /// As [`crate::Subscriber::on_deadline`].
    pub fn on_deadline(
        &self,
        callback: impl FnMut(&DeadlineMissed) + Send + 'static,
    ) -> CallbackGuard {
        self.0.with_source(|subscriber| subscriber.on_deadline(callback))
    }

    /// As [`crate::Subscriber::on_liveliness`].
    pub fn on_liveliness(
        &self,
        callback: impl FnMut(&LivelinessChange) + Send + 'static,
    ) -> CallbackGuard {
        self.0.with_source(|subscriber| subscriber.on_liveliness(callback))
    }

    /// As [`crate::Subscriber::liveliness`].
    pub fn liveliness(&self) -> LivelinessCounts {
        self.0.with_source(|subscriber| subscriber.liveliness())
    }

    /// Its backlog from all publishers together.
    pub fn behind(&self) -> Backlog {
        self.0.with_source(|subscriber| subscriber.behind())
    }

    /// The next message.
    pub fn recv(&mut self) -> impl Future<Output = Result<OwnedSample<T>>> + '_ {
        poll_fn(|context| self.poll_recv(context))
    }

    /// The next message, if available. A registered task stays registered.
    ///
    /// # Errors
    /// As [`Subscriber::try_recv`].
    pub fn try_recv(&mut self) -> Result<Option<OwnedSample<T>>> {
        self.0.try_next(next)
    }

    /// A file descriptor that is readable when a message may be available, for event loops such as epoll, Qt
    /// or libuv. It is an `eventfd`, created by the first call and closed with the stream.
    ///
    /// Level-triggered: it stays readable until [`SampleStream::try_recv`] returns `None`, so receive until
    /// then. It may be readable without a message. Do not read from it or write to it. Use either the
    /// descriptor or async code, not both.
    ///
    /// # Errors
    /// `LimitReached` if the process has no free file descriptor; `Closed` in a forked child.
    pub fn fd(&mut self) -> Result<BorrowedFd<'_>> {
        self.0.fd()
    }

    /// Ready if a message or an error is probably available, without taking it; false positives are possible.
    /// Otherwise the task is woken later.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.0.poll_ready(context)
    }

    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<OwnedSample<T>>> {
        self.0.poll_next(context, next)
    }
}

impl<T: Message + ?Sized> Stream for SampleStream<T> {
    type Item = Result<OwnedSample<T>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_recv(context).map(Some)
    }
}
