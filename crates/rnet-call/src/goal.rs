//! A client of an action, and its goals.
//!
//! [`Goal::cancel`] asks the server to cancel (`open_calls/cancel.rs`); the server records the reason
//! (`server_core/cancel.rs`, `peer/cancel.rs`), and the handler reads it.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_core::Stream;
use rnet_core::{Error, Result};
use rnet_node::options::deadline;
use rnet_node::types::choose_type;

use super::action::Signature;
use super::call_future::Pending;
use super::client::{CallOptions, Client, ClientBuilder};
use super::open_call::CallOutput;
use super::open_calls::ClientStats;
use super::{Bytes, Received, WANTS};
use rnet_node::{Message, MessageType, NodeHandle};

/// A client of an action that is not open yet; made by `rnet::Node::action_client`.
#[must_use = "a builder does nothing until it is opened"]
pub struct ActionClientBuilder<G: ?Sized, F: ?Sized, R: ?Sized> {
    node: NodeHandle,
    name: String,
    types: [Option<MessageType>; 3],
    _types: PhantomData<Signature<G, F, R>>,
}

impl<G: Message + ?Sized, F: Message + ?Sized, R: Message + ?Sized> ActionClientBuilder<G, F, R> {
    #[doc(hidden)]
    pub fn new(node: &NodeHandle, name: &str) -> Self {
        let (node, name, types) = (node.clone(), name.to_owned(), [None, None, None]);
        ActionClientBuilder { node, name, types, _types: PhantomData }
    }

    /// The types of goals, feedback and results, as [`ClientBuilder::message_types`].
    pub fn message_types(
        mut self,
        goal: MessageType,
        feedback: MessageType,
        result: MessageType,
    ) -> Self {
        self.types = [goal, feedback, result].map(Some);
        self
    }

    /// Opens it; its servers may start later.
    ///
    /// # Errors
    /// As [`ClientBuilder::open`].
    pub fn open(self) -> Result<ActionClient<G, F, R>> {
        let [goal, feedback, result] = self.types;
        let feedback = choose_type::<F>(&self.name, feedback)?;
        let client = ClientBuilder::new(&self.node, &self.name).types(goal, result);
        let client = client.feedback(feedback.clone()).open()?;
        Ok(ActionClient { client, feedback, _type: PhantomData })
    }
}

/// Sends goals to one action, with any number of concurrent goals from any thread. Clones are handles to the
/// same client.
pub struct ActionClient<G: Message + ?Sized, F: Message + ?Sized, R: Message + ?Sized> {
    client: Client<G, R>,
    feedback: MessageType,
    _type: PhantomData<fn() -> Box<F>>,
}

impl<G: Message + ?Sized, F: Message + ?Sized, R: Message + ?Sized> Clone
    for ActionClient<G, F, R>
{
    fn clone(&self) -> Self {
        let (client, feedback) = (self.client.clone(), self.feedback.clone());
        ActionClient { client, feedback, _type: PhantomData }
    }
}

impl<G: Message + ?Sized, F: Message + ?Sized, R: Message + ?Sized> ActionClient<G, F, R> {
    /// The name of the action.
    pub fn name(&self) -> &str {
        self.client.name()
    }

    /// Sends a goal, without waiting; if no server exists yet, the first server gets it. It has no time limit
    /// unless the options set one.
    ///
    /// # Errors
    /// As [`Client::start`].
    pub fn send(&self, goal: &G, options: CallOptions) -> Result<Goal<F, R>> {
        let timeout = options.timeout.unwrap_or(Duration::MAX);
        let pending = self.client.begin(goal, options.timeout(timeout), WANTS)?;
        Ok(Goal { pending, feedback: self.feedback.clone(), _type: PhantomData })
    }

    /// How many servers would accept or refuse a goal now.
    pub fn server_count(&self) -> usize {
        self.client.server_count()
    }

    /// Asks all servers of the action to cancel all goals of all callers: for an operator or a supervisor.
    /// The reason is `Operator`. Returns the number of servers.
    ///
    /// # Errors
    /// `Full` if a server does not read; `Closed` in a forked child.
    pub fn cancel_all(&self) -> Result<usize> {
        self.client.shared.core.cancel_all()
    }

    /// As [`Client::close`].
    #[doc(hidden)]
    pub fn close(&self) {
        self.client.close();
    }

    /// Counters of the goals so far.
    pub fn stats(&self) -> ClientStats {
        self.client.stats()
    }
}

/// A goal that was sent. Dropping it cancels it.
///
/// A future of its result, and a [`Stream`] of its feedback.
#[must_use = "dropping it cancels the goal"]
pub struct Goal<F: Message + ?Sized, R: Message + ?Sized> {
    pending: Pending<R>,
    feedback: MessageType,
    _type: PhantomData<fn() -> Box<F>>,
}

impl<F: Message + ?Sized, R: Message + ?Sized> Goal<F, R> {
    /// Waits for the next feedback; `None` once the goal has ended. Up to 1,024 messages are queued; beyond
    /// that, the oldest are skipped.
    ///
    /// # Errors
    /// `BadValue` for feedback that is malformed; `Closed` in a forked child.
    pub fn feedback(&self) -> Result<Option<Received<F>>> {
        self.wait_for_feedback(None)
    }

    /// As [`Goal::feedback`] with a limit; a limit of zero returns only available feedback. Any number of
    /// threads may call it.
    ///
    /// # Errors
    /// As [`Goal::feedback`]; `Interrupted` after `limit` or on a signal.
    pub fn feedback_within(&self, limit: Duration) -> Result<Option<Received<F>>> {
        self.wait_for_feedback(Instant::now().checked_add(limit))
    }

    fn wait_for_feedback(&self, pause: Option<Instant>) -> Result<Option<Received<F>>> {
        let Pending { shared, number, after, .. } = &self.pending;
        shared.core.check_fork()?;
        self.decode_feedback(shared.core.next(
            &shared.watch,
            (*number, CallOutput::Feedback),
            *after,
            pause,
        ))
    }

    fn decode_feedback(&self, next: Result<Option<Bytes>>) -> Result<Option<Received<F>>> {
        let decode = |bytes| {
            Received::decode(bytes, &self.feedback)
                .map_err(|why| Error::bad_value("feedback", format!("it is malformed: {why}")))
        };
        match next {
            // It was cancelled here, with all its feedback.
            Err(Error::Cancelled { .. }) => Ok(None),
            next => next?.map(decode).transpose(),
        }
    }

    /// Waits for the result, without a limit. It is returned once.
    ///
    /// # Errors
    /// `Cancelled` with its reason once the handler has returned; `CallFailed`, `ServerLost`, `Refused` and
    /// the other errors of [`Client::call`]; `Closed` if the result was already returned.
    pub fn result(&self) -> Result<Received<R>> {
        self.wait_for_result(None, None)
    }

    /// As [`Goal::result`], for at most `timeout`; the goal continues after that.
    ///
    /// # Errors
    /// `Timeout`; as [`Goal::result`].
    pub fn result_timeout(&self, timeout: Duration) -> Result<Received<R>> {
        self.wait_for_result(deadline(Some(timeout)), Some(timeout))
    }

    /// Waits until this time, which is the end of this time-out.
    fn wait_for_result(
        &self,
        until: Option<Instant>,
        timeout: Option<Duration>,
    ) -> Result<Received<R>> {
        loop {
            let left =
                until.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
            match self.result_within(left) {
                Err(Error::Interrupted) if until.is_some_and(|end| end <= Instant::now()) => {
                    let topic = self.pending.shared.name.clone();
                    let what = format!("the result of a goal of {topic}");
                    return Err(Error::timeout(topic, what, timeout.unwrap_or_default()));
                }
                Err(Error::Interrupted) => {}
                result => return result,
            }
        }
    }

    /// As [`Goal::result`] for a part of the wait; with a limit of zero, returns only an available result.
    /// Any number of threads may call it.
    ///
    /// # Errors
    /// As [`Goal::result`]; `Interrupted` after `limit` or on a signal.
    pub fn result_within(&self, limit: Duration) -> Result<Received<R>> {
        let next = self.pending.next_within(limit)?;
        self.pending.single_reply(next)
    }

    /// As [`Goal::result`], and calls `on_feedback` with each feedback before the result, in this thread.
    ///
    /// # Errors
    /// As [`Goal::result`].
    pub fn result_with(&self, on_feedback: impl FnMut(&F)) -> Result<Received<R>> {
        self.wait_with(None, on_feedback)
    }

    /// As [`Goal::result_with`], for at most `timeout`; the goal continues after that.
    ///
    /// # Errors
    /// As [`Goal::result_timeout`].
    pub fn result_with_timeout(
        &self,
        timeout: Duration,
        on_feedback: impl FnMut(&F),
    ) -> Result<Received<R>> {
        self.wait_with(Some(timeout), on_feedback)
    }

    fn wait_with(
        &self,
        timeout: Option<Duration>,
        mut on_feedback: impl FnMut(&F),
    ) -> Result<Received<R>> {
        let until = deadline(timeout);
        // Feedback may arrive faster than it is handled.
        while until.is_none_or(|end| Instant::now() < end) {
            match self.wait_for_feedback(until) {
                Ok(Some(feedback)) => on_feedback(&feedback),
                Ok(None) => break,
                Err(Error::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
        self.wait_for_result(until, timeout)
    }

    /// Asks the server to cancel the goal. It ends with [`Error::Cancelled`] once its handler has returned,
    /// or with the result if that came first; at once if no server has it yet.
    ///
    /// # Errors
    /// `Full` if the server does not read; the request was then not sent. `Closed` in a forked child.
    pub fn cancel(&self) -> Result<()> {
        self.pending.shared.core.request_cancel(self.pending.number)
    }

    /// Ends the goal here, as dropping it does. Other threads that wait for it get `Cancelled`.
    #[doc(hidden)]
    pub fn abandon(&self) {
        self.pending.cancel();
    }

    /// Ready if feedback, the result, an error or the end is available. Otherwise the task is woken later.
    pub fn poll_feedback_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        let Pending { shared, number, .. } = &self.pending;
        let ready = shared.core.check_fork().is_err()
            || shared.core.poll_ready(context, (*number, CallOutput::Feedback));
        if ready { Poll::Ready(()) } else { Poll::Pending }
    }

    /// As [`Goal::poll_feedback_ready`], for the result.
    pub fn poll_result_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        self.pending.poll_ready(context)
    }
}

impl<F: Message + ?Sized, R: Message + ?Sized> Future for Goal<F, R> {
    type Output = Result<Received<R>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Future::poll(Pin::new(&mut self.pending), context)
    }
}

impl<F: Message + ?Sized, R: Message + ?Sized> Stream for Goal<F, R> {
    type Item = Result<Received<F>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Pending { shared, number, after, .. } = &self.pending;
        if let Err(error) = shared.core.check_fork() {
            return Poll::Ready(Some(Err(error)));
        }
        match shared.core.poll(context, (*number, CallOutput::Feedback), *after) {
            Some(next) => Poll::Ready(self.decode_feedback(next).transpose()),
            None => Poll::Pending,
        }
    }
}
