//! One open call of a client: where it stands, what has come for it, and who waits.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar};
use std::task::Waker;
use std::time::Instant;

use rnet_core::{Error, Result};

use super::Bytes;
use super::servers::{Server, hash_of};
use crate::msgs::CallStatus;

/// What is wanted of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Reply,
    Feedback,
}

/// The replies of a call that wait for its reader: of most there is one, which takes no memory of its own.
#[derive(Default)]
pub struct Replies {
    first: Option<Bytes>,
    more: VecDeque<Bytes>,
}

impl Replies {
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
pub struct Open {
    pub server: Option<Arc<Server>>,
    /// Servers that have refused it, or that it is not sent to.
    pub refused: Vec<u64>,
    pub request: Vec<u8>,
    pub key: Option<u64>,
    pub deadline: Option<Instant>,
    pub replies: Replies,
    pub received: u64,
    /// How many replies there are, once that is known. Ahead of its end, they are awaited.
    pub total: Option<u64>,
    pub error: Option<Error>,
    /// Whether it is a goal, which has feedback and ends once all of that has come.
    pub goal: bool,
    pub feedback: VecDeque<Bytes>,
    pub heard: u64,
    /// How many messages of feedback there are, once that is known.
    pub said: Option<u64>,
    /// Some feedback was lost, which may be its: the rest is not waited for.
    pub gaps: bool,
    /// Whether its caller wants it to end.
    pub cancelled: bool,
    /// Those who wait for [`Wanted`].
    pub wakers: [Option<Waker>; 2],
    pub bell: Option<Arc<Condvar>>,
    /// How many threads wait at the bell: to ring it is a system call, and most calls have none.
    pub waits: usize,
}

impl Open {
    pub fn new(request: Vec<u8>, key: Option<&str>, goal: bool) -> Open {
        let (key, said) = (key.map(hash_of), (!goal).then_some(0));
        Open { request, key, goal, said, ..Open::default() }
    }

    /// Becomes one that has not begun, with the memory that it has.
    pub fn renew(&mut self) {
        let mut request = std::mem::take(&mut self.request);
        request.clear();
        *self = Open::new(request, None, false);
    }

    /// Does not send it to this server.
    pub fn avoid(&mut self, server: u64) {
        self.refused.push(server);
    }

    /// What its reader gets next; `None` while nothing is there.
    pub fn next(&mut self, wanted: Wanted) -> Option<Result<Option<Bytes>>> {
        if wanted == Wanted::Feedback {
            let feedback = self.feedback.pop_front();
            return (feedback.is_some() || self.has_ended()).then_some(Ok(feedback));
        }
        // The result of a goal comes behind its feedback.
        if self.goal && !self.has_ended() {
            return None;
        }
        if let Some(reply) = self.replies.pop() {
            return Some(Ok(Some(reply)));
        }
        if !self.is_decided() {
            return None;
        }
        Some(self.error.clone().map_or(Ok(None), Err))
    }

    pub fn has_next(&self, wanted: Wanted) -> bool {
        let waiting = match wanted {
            Wanted::Feedback => !self.feedback.is_empty(),
            Wanted::Reply => !self.goal && self.replies.first.is_some(),
        };
        waiting || self.has_ended()
    }

    /// Whether a task waits.
    pub fn is_awaited(&self) -> bool {
        self.wakers.iter().any(Option::is_some)
    }

    /// Whether it is known how it ends, and all its replies have come.
    pub fn is_decided(&self) -> bool {
        self.total.is_some_and(|total| self.received >= total)
    }

    pub fn has_ended(&self) -> bool {
        self.is_decided() && self.said.is_some_and(|said| self.gaps || self.heard >= said)
    }

    pub fn tell(&mut self, woken: &mut Vec<Waker>) {
        if let Some(bell) = self.bell.as_ref().filter(|_| self.waits > 0) {
            bell.notify_all();
        }
        woken.extend(self.wakers.iter_mut().filter_map(Option::take));
    }

    /// Ends it at once: with the error, or with what its server has said already.
    pub fn fail(&mut self, error: Error, woken: &mut Vec<Waker>) {
        if !self.has_ended() {
            if !self.is_decided() {
                self.error = Some(error);
            }
            self.total = Some(self.received);
            self.said = Some(self.heard);
            self.tell(woken);
        }
    }

    /// Ends it, with the error if there is one, once so many replies and so much feedback have come: topics have no
    /// order between each other, so the status may be here first.
    pub fn end_behind(
        &mut self,
        status: &CallStatus,
        error: Option<Error>,
        woken: &mut Vec<Waker>,
    ) {
        self.error = error;
        self.total = Some(status.replies);
        if self.goal {
            self.said = Some(status.feedback);
        }
        self.tell(woken);
    }
}

#[cfg(test)]
mod tests {
    use rnet_core::CancelReason;

    use super::*;

    fn behind(replies: u64, error: Option<Error>) -> Open {
        let mut open = Open::new(Vec::new(), None, false);
        let status = CallStatus { replies, ..Default::default() };
        open.end_behind(&status, error, &mut Vec::new());
        open
    }

    fn cancelled() -> Error {
        Error::Cancelled { topic: "/plan".to_owned(), reason: CancelReason::Caller }
    }

    #[test]
    fn an_error_waits_for_the_replies_ahead_of_it() {
        let mut open = behind(1, Some(cancelled()));
        assert!(!open.has_next(Wanted::Reply));
        assert!(open.next(Wanted::Reply).is_none());
        open.replies.push(Bytes::copy_of(b"a"));
        open.received += 1;
        assert!(matches!(open.next(Wanted::Reply), Some(Ok(Some(_)))));
        assert!(matches!(open.next(Wanted::Reply), Some(Err(Error::Cancelled { .. }))));
    }

    #[test]
    fn replies_that_do_not_come_end_with_the_loss() {
        let mut open = behind(2, None);
        assert!(open.next(Wanted::Reply).is_none());
        let (topic, node) = ("/plan".to_owned(), "server".to_owned());
        open.fail(Error::CallLost { topic, node, lost: 2 }, &mut Vec::new());
        assert!(matches!(open.next(Wanted::Reply), Some(Err(Error::CallLost { .. }))));
    }
}
