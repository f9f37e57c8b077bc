//! The future of a call in progress: [`Pending`].

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_core::Stream;
use rnet_core::{Error, Result};

use super::client::{ClientShared, no_reply_error};
use super::open_call::CallOutput;
use super::{Bytes, Received};
use rnet_node::Message;

/// A call in progress. Dropping it cancels the call.
///
/// A future of the reply; for a call started by [`crate::Client::stream`], a [`Stream`] of the replies.
#[must_use = "dropping it cancels the call"]
pub struct Pending<R: Message + ?Sized> {
    pub(super) shared: Arc<ClientShared>,
    pub(super) number: u32,
    pub(super) after: Duration,
    ended: AtomicBool,
    _type: PhantomData<fn() -> Box<R>>,
}

impl<R: Message + ?Sized> Pending<R> {
    pub(crate) fn new(shared: Arc<ClientShared>, number: u32, after: Duration) -> Self {
        Pending { shared, number, after, ended: AtomicBool::new(false), _type: PhantomData }
    }

    /// Waits for the reply.
    ///
    /// # Errors
    /// As [`crate::Client::call`]; `CallFailed` for a stream that ended without a reply.
    pub fn wait(mut self) -> Result<Received<R>> {
        let next = self.next()?;
        self.single_reply(next)
    }

    /// Waits for the next reply; `None` after the last.
    ///
    /// # Errors
    /// As [`crate::Client::call`]; the call has then ended.
    // Not `Iterator::next`: an error ends the call, and is returned once.
    #[expect(clippy::should_implement_trait, reason = "a result of an option")]
    pub fn next(&mut self) -> Result<Option<Received<R>>> {
        self.wait_for_next(None)
    }

    /// As [`Pending::next`] with a limit; a limit of zero returns only available replies. Any number of
    /// threads may call it.
    ///
    /// # Errors
    /// `Interrupted` after `limit` or on a signal: the call continues, and you can wait again.
    pub fn next_within(&self, limit: Duration) -> Result<Option<Received<R>>> {
        self.wait_for_next(Instant::now().checked_add(limit))
    }

    fn wait_for_next(&self, pause: Option<Instant>) -> Result<Option<Received<R>>> {
        self.shared.core.check_fork()?;
        if self.ended.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let next = self.shared.core.next(
            &self.shared.watch,
            (self.number, CallOutput::Reply),
            self.after,
            pause,
        );
        self.decode_next(next)
    }

    /// Whether [`Pending::next_within`] has something to return at once: a reply, the end or an error. If
    /// not, the task is woken once it has.
    pub fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        let ready = self.shared.core.check_fork().is_err()
            || self.ended.load(Ordering::Relaxed)
            || self.shared.core.poll_ready(context, (self.number, CallOutput::Reply));
        if ready { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Cancels the call, as dropping it does: its server is notified, and waits for it return `Cancelled`.
    pub fn cancel(&self) {
        self.shared.core.cancel(self.number);
    }

    /// Whether it was sent to a server; false for one that has ended.
    #[doc(hidden)]
    pub fn is_sent(&self) -> bool {
        self.shared.core.is_sent(self.number)
    }

    /// The id of its server, or of its last server.
    pub(super) fn server(&self) -> Option<u64> {
        self.shared.core.server_of(self.number)
    }

    /// Cancels it; returns whether it was sent to a server.
    #[doc(hidden)]
    pub fn abandon(self) -> bool {
        self.shared.core.end(self.number)
    }

    fn decode_next(&self, next: Result<Option<Bytes>>) -> Result<Option<Received<R>>> {
        let decoded =
            next.and_then(|bytes| bytes.map(|bytes| self.shared.decode(bytes)).transpose());
        if !matches!(decoded, Ok(Some(_)) | Err(Error::Interrupted)) {
            self.ended.store(true, Ordering::Relaxed);
        }
        decoded
    }

    pub(super) fn single_reply(&self, next: Option<Received<R>>) -> Result<Received<R>> {
        next.ok_or_else(no_reply_error)
    }

    fn poll_one(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Received<R>>>> {
        if let Err(error) = self.shared.core.check_fork() {
            return Poll::Ready(Err(error));
        }
        if self.ended.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(None));
        }
        match self.shared.core.poll(context, (self.number, CallOutput::Reply), self.after) {
            Some(next) => Poll::Ready(self.decode_next(next)),
            None => Poll::Pending,
        }
    }
}

impl<R: Message + ?Sized> Future for Pending<R> {
    type Output = Result<Received<R>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.poll_one(context).map(|next| next.and_then(|next| this.single_reply(next)))
    }
}

impl<R: Message + ?Sized> Stream for Pending<R> {
    type Item = Result<Received<R>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_one(context).map(Result::transpose)
    }
}

impl<R: Message + ?Sized> Drop for Pending<R> {
    fn drop(&mut self) {
        self.shared.core.end(self.number);
    }
}
