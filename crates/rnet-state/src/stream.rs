//! Changes for async code, under any executor. A dispatch thread of the node wakes the task.

use std::future::{Future, poll_fn};
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use rnet_core::{Error, Result};
use rnet_node::awaited::Awaited;
use rnet_node::wake_stream::{Source, WakeStream};
use rnet_shm::bell::MAX_SLEEP;

use super::entry::Change;
use super::watch::{Watch, WatchCore};

/// A watch, and what was taken of it to know whether to wake.
struct Buffered {
    watch: WatchCore,
    ready: Option<Result<Change>>,
    told: u64,
}

impl Buffered {
    fn next(&mut self) -> Result<Option<Change>> {
        self.ready.take().map_or_else(|| self.watch.next(), |ready| ready.map(Some))
    }
}

impl Source for Buffered {
    fn set_bell(&mut self, bell: u64) {
        self.watch.set_bell(bell);
    }
    fn has_next(&mut self) -> bool {
        if self.ready.is_none() {
            self.ready = self.watch.next().transpose();
        }
        self.ready.is_some()
    }
    fn before_sleep(&self) -> bool {
        // Whoever changes something from here on rings the thread, also one that sleeps already. It may sleep
        // for longer than until the next key's time is over.
        self.watch.before_sleep();
        self.watch.is_ready() || self.watch.sleep_limit() < MAX_SLEEP
    }
    fn awaited(&self) -> &dyn Awaited {
        &self.watch
    }
    fn came(&mut self) -> Option<(u64, u64)> {
        self.watch.came_since(&mut self.told)
    }
}

/// A watch for async code: a [`Stream`] of changes, or one at a time with [`ChangeStream::recv`].
pub struct ChangeStream(WakeStream<Buffered>);

impl Watch {
    /// Turns the watch into a stream, for any executor.
    pub fn into_stream(self) -> ChangeStream {
        let Watch { watch, core, .. } = self;
        let lane = watch.lane;
        ChangeStream(WakeStream::new(core, lane, Buffered { watch, ready: None, told: 0 }))
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
        let (Buffered { mut watch, ready, .. }, core) = self.0.into_source()?;
        if let Some(Ok(change)) = ready {
            watch.put_back(change);
        }
        Ok(Watch::of(watch, core))
    }

    /// The next change if it is there. A task that is to be woken stays so.
    ///
    /// # Errors
    /// As [`Watch::try_recv`].
    pub fn try_recv(&mut self) -> Result<Option<Change>> {
        self.0.try_next(Buffered::next)
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
        self.0.poll_next(context, Buffered::next)
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
