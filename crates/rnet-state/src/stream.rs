//! Changes for async code, under any executor. A dispatch thread of the node wakes the task.

use std::future::{Future, poll_fn};
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use rnet_core::{Error, Result};
use rnet_node::wake_stream::WakeStream;

use super::entry::Change;
use super::watch::Watch;

/// A watch for async code: a [`Stream`] of changes, or one at a time with [`ChangeStream::recv`].
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

    /// The watch again; what it told before it does not tell again.
    ///
    /// # Errors
    /// `Closed` in a forked child.
    pub fn into_watch(self) -> Result<Watch> {
        self.0.into_source()
    }

    /// The next change if it is there. A task that is to be woken stays so.
    ///
    /// # Errors
    /// As [`Watch::try_recv`].
    pub fn try_recv(&mut self) -> Result<Option<Change>> {
        self.0.try_next(Watch::try_recv)
    }

    /// A descriptor that is readable when there may be something to receive, for a loop that waits for
    /// descriptors: epoll, Qt, libuv. An `eventfd`, made by the first call and closed with the stream.
    ///
    /// Level-triggered: it stays readable until [`ChangeStream::try_recv`] has returned `None`. So receive
    /// until then; what comes later makes it readable again. It may be readable with nothing there. Read or
    /// write nothing of it. It takes the place of the task that async code is: use one of both.
    ///
    /// # Errors
    /// `LimitReached` where the process has no descriptor left; `Closed` in a forked child.
    pub fn fd(&mut self) -> Result<BorrowedFd<'_>> {
        self.0.fd()
    }

    /// Whether there is a change, or an error, to take. Takes nothing. If there is none, the task is
    /// woken once there is.
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
