//! Changes for async code, with any executor. A dispatch thread of the node wakes the task.

use std::future::{Future, poll_fn};
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use rnet_core::{Error, Result};
use rnet_node::wake_stream::WakeStream;

use super::entry::Change;
use super::watch::Watch;

/// A watch for async code: a [`Stream`] of changes, or single changes with [`ChangeStream::recv`].
pub struct ChangeStream(WakeStream<Watch>);

impl Watch {
    /// Turns the watch into a stream, for any executor.
    pub fn into_stream(self) -> ChangeStream {
        ChangeStream(WakeStream::new(self.core.clone(), self.watch.lane, self))
    }
}

impl ChangeStream {
    /// The next change.
    pub fn recv(&mut self) -> impl Future<Output = Result<Change>> + '_ {
        poll_fn(|context| self.poll_recv(context))
    }

    /// Returns the watch; earlier changes are not reported again.
    ///
    /// # Errors
    /// `Closed` in a forked child.
    pub fn into_watch(self) -> Result<Watch> {
        self.0.into_source()
    }

    /// The next change, if available. A task that is registered to be woken stays registered.
    ///
    /// # Errors
    /// As [`Watch::try_recv`].
    pub fn try_recv(&mut self) -> Result<Option<Change>> {
        self.0.try_next(Watch::try_recv)
    }

    /// A file descriptor that is readable when a change may be available, for event loops such as epoll, Qt
    /// or libuv. It is an `eventfd`, created by the first call and closed with the stream.
    ///
    /// Level-triggered: it stays readable until [`ChangeStream::try_recv`] returns `None`, so receive until
    /// then. It may be readable without a change. Do not read from it or write to it. Use either the
    /// descriptor or async code, not both.
    ///
    /// # Errors
    /// `LimitReached` if the process has no free file descriptor; `Closed` in a forked child.
    pub fn fd(&mut self) -> Result<BorrowedFd<'_>> {
        self.0.fd()
    }

    /// Ready if a change or an error is available, without taking it. Otherwise the task is woken later.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.0.poll_ready(context)
    }

    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<Change>> {
        self.0.poll_next(context, Watch::try_recv)
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

rnet_node::debug_by!([] ChangeStream, "ChangeStream", |_this|);
