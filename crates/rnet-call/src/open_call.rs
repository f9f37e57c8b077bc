//! One open call of a client: its progress, its replies, and its waiters.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar};
use std::task::Waker;
use std::time::Instant;

use rnet_core::{Error, Result};

use super::Bytes;
use super::servers::{Server, hash_of};
use crate::msgs::CallStatus;

/// The output of a call that a reader waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutput {
    Reply,
    Feedback,
}

/// Replies of a call that wait for its reader. Most calls have one reply, which needs no allocation.
#[derive(Default)]
pub struct ReplyQueue {
    first: Option<Bytes>,
    more: VecDeque<Bytes>,
}

impl ReplyQueue {
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    pub fn push(&mut self, reply: Bytes) {
        match self.first {
            None => self.first = Some(reply),
            Some(_) => self.more.push_back(reply),
        }
    }

    pub fn pop(&mut self) -> Option<Bytes> {
        let first = self.first.take();
        if first.is_some() {
            self.first = self.more.pop_front();
        }
        first
    }
}

/// An open call.
#[derive(Default)]
pub struct OpenCall {
    pub server: Option<Arc<Server>>,
    /// Servers that have refused it, or that it is not sent to.
    pub excluded_servers: Vec<u64>,
    pub request: Vec<u8>,
    pub key: Option<u64>,
    pub deadline: Option<Instant>,
    pub replies: ReplyQueue,
    pub replies_received: u64,
    /// Number of replies, once known. The call ends after them.
    pub reply_total: Option<u64>,
    pub error: Option<Error>,
    /// Whether it is a goal, which has feedback and ends once all of it has arrived.
    pub goal: bool,
    pub feedback: VecDeque<Bytes>,
    pub feedback_received: u64,
    /// Number of feedback messages, once known.
    pub feedback_total: Option<u64>,
    /// Some feedback was lost, perhaps of this goal: the rest is not waited for.
    pub feedback_lost: bool,
    /// Whether its caller has cancelled it.
    pub cancelled: bool,
    /// The tasks that wait for each [`CallOutput`].
    pub wakers: [Option<Waker>; 2],
    pub condvar: Option<Arc<Condvar>>,
    /// Number of threads that wait for the condvar: a notification is a system call, and most calls have no
    /// waiters.
    pub waiting_threads: usize,
}

impl OpenCall {
    pub fn new(request: Vec<u8>, key: Option<&str>, goal: bool) -> OpenCall {
        let (key, feedback_total) = (key.map(hash_of), (!goal).then_some(0));
        OpenCall { request, key, goal, feedback_total, ..OpenCall::default() }
    }

    /// Resets it to a call that has not begun; keeps its memory.
    pub fn reset(&mut self) {
        let mut request = std::mem::take(&mut self.request);
        request.clear();
        *self = OpenCall::new(request, None, false);
    }

    /// Excludes this server.
    pub fn exclude_server(&mut self, server: u64) {
        self.excluded_servers.push(server);
    }

    /// The next output for its reader; `None` while none is available.
    pub fn next(&mut self, output: CallOutput) -> Option<Result<Option<Bytes>>> {
        if output == CallOutput::Feedback {
            let feedback = self.feedback.pop_front();
            return (feedback.is_some() || self.has_ended()).then_some(Ok(feedback));
        }
        // The result of a goal comes after its feedback.
        if self.goal && !self.has_ended() {
            return None;
        }
        if let Some(reply) = self.replies.pop() {
            return Some(Ok(Some(reply)));
        }
        if !self.has_outcome() {
            return None;
        }
        Some(self.error.clone().map_or(Ok(None), Err))
    }

    pub fn has_next(&self, output: CallOutput) -> bool {
        let waiting = match output {
            CallOutput::Feedback => !self.feedback.is_empty(),
            CallOutput::Reply => !self.goal && self.replies.first.is_some(),
        };
        waiting || self.has_ended()
    }

    /// Whether a task waits.
    pub fn has_waiting_task(&self) -> bool {
        self.wakers.iter().any(Option::is_some)
    }

    /// Whether its outcome is known, and all its replies have arrived.
    pub fn has_outcome(&self) -> bool {
        self.reply_total.is_some_and(|total| self.replies_received >= total)
    }

    pub fn has_ended(&self) -> bool {
        self.has_outcome()
            && self
                .feedback_total
                .is_some_and(|said| self.feedback_lost || self.feedback_received >= said)
    }

    pub fn notify(&mut self, to_wake: &mut Vec<Waker>) {
        if let Some(condvar) = self.condvar.as_ref().filter(|_| self.waiting_threads > 0) {
            condvar.notify_all();
        }
        to_wake.extend(self.wakers.iter_mut().filter_map(Option::take));
    }

    /// Ends it at once: with the error, or with the outcome that its server has already sent.
    pub fn fail(&mut self, error: Error, to_wake: &mut Vec<Waker>) {
        if !self.has_ended() {
            if !self.has_outcome() {
                self.error = Some(error);
            }
            self.reply_total = Some(self.replies_received);
            self.feedback_total = Some(self.feedback_received);
            self.notify(to_wake);
        }
    }

    /// Ends it, with the error if there is one, once this many replies and feedback messages have arrived.
    /// Topics are not ordered between each other, so the status may arrive first.
    pub fn end_after(
        &mut self,
        status: &CallStatus,
        error: Option<Error>,
        to_wake: &mut Vec<Waker>,
    ) {
        self.error = error;
        self.reply_total = Some(status.replies);
        if self.goal {
            self.feedback_total = Some(status.feedback);
        }
        self.notify(to_wake);
    }
}

#[cfg(test)]
mod tests {
    use rnet_core::CancelReason;

    use super::*;

    fn behind(replies: u64, error: Option<Error>) -> OpenCall {
        let mut open = OpenCall::new(Vec::new(), None, false);
        let status = CallStatus { replies, ..Default::default() };
        open.end_after(&status, error, &mut Vec::new());
        open
    }

    fn cancelled() -> Error {
        Error::Cancelled { topic: "/plan".to_owned(), reason: CancelReason::Caller }
    }

    #[test]
    fn an_error_waits_for_the_replies_ahead_of_it() {
        let mut open = behind(1, Some(cancelled()));
        assert!(!open.has_next(CallOutput::Reply));
        assert!(open.next(CallOutput::Reply).is_none());
        open.replies.push(Bytes::copy_of(b"a"));
        open.replies_received += 1;
        assert!(matches!(open.next(CallOutput::Reply), Some(Ok(Some(_)))));
        assert!(matches!(open.next(CallOutput::Reply), Some(Err(Error::Cancelled { .. }))));
    }

    #[test]
    fn replies_that_do_not_come_end_with_the_loss() {
        let mut open = behind(2, None);
        assert!(open.next(CallOutput::Reply).is_none());
        let (topic, node) = ("/plan".to_owned(), "server".to_owned());
        open.fail(Error::CallLost { topic, node, lost: 2 }, &mut Vec::new());
        assert!(matches!(open.next(CallOutput::Reply), Some(Err(Error::CallLost { .. }))));
    }
}
