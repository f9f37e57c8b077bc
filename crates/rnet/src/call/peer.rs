//! One caller, as a server sees it: its calls, and the way back to it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rnet_core::{Error, Meta, OnFull, Result};

use super::desk::Outcome;
use super::service::HandlerError;
use super::{CallId, Topics, WANTS_DONE};
use crate::msgs::{CallStatus, call_status::State};
use crate::{MessageType, Node, Publisher, PublisherOptions};

/// How long an answer waits for the first look of its caller at this server.
const MATCHING: Duration = Duration::from_secs(5);
/// How long an answer waits for a caller that does not read.
const PATIENCE: Duration = Duration::from_secs(1);

/// What became of an answer.
pub enum End {
    Sent,
    Failed,
    Cancelled,
    Unsent,
}

/// An open call.
#[derive(Default)]
struct Open {
    cancelled: bool,
    replies: u64,
    /// An answer could not be sent.
    unsent: bool,
}

struct Out {
    reply: Publisher<[u8]>,
    status: Publisher<CallStatus>,
    /// It has not read for [`PATIENCE`]: nobody waits for it again before it does.
    behind: bool,
    /// Whether it was there once: then it is waited for no more.
    matched: bool,
}

pub struct Peer {
    service: String,
    node: String,
    client: u32,
    /// Its publisher of requests.
    pub publisher: u64,
    open: Mutex<HashMap<u32, Open>>,
    out: Mutex<Out>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peer {
    pub fn open(
        node: &Node,
        service: &str,
        (caller, client): &(String, u32),
        publisher: u64,
        topics: &Topics,
        reply: &MessageType,
    ) -> Result<Peer> {
        let options = PublisherOptions::new().reliable(OnFull::Wait(PATIENCE));
        let typed = options.message_type(reply.clone());
        // It holds thousands: one that is full is of a caller that reads nothing.
        let statuses = PublisherOptions::new().reliable(OnFull::Refuse);
        let reply = node.publisher_with::<[u8]>(&topics.reply(), typed)?;
        let status = node.publisher_with::<CallStatus>(&topics.status(), statuses)?;
        let out = Mutex::new(Out { reply, status, behind: false, matched: false });
        let (service, node, client) = (service.to_owned(), caller.clone(), *client);
        Ok(Peer { service, node, client, publisher, open: Mutex::default(), out })
    }

    pub fn service(&self) -> &str {
        &self.service
    }

    pub fn node(&self) -> &str {
        &self.node
    }

    /// Whether the number was free.
    pub fn begin(&self, number: u32) -> bool {
        lock(&self.open).try_insert_default(number)
    }

    pub fn cancel(&self, number: u32) {
        if let Some(open) = lock(&self.open).get_mut(&number) {
            open.cancelled = true;
        }
    }

    pub fn cancel_all(&self) {
        lock(&self.open).values_mut().for_each(|open| open.cancelled = true);
    }

    pub fn is_cancelled(&self, number: u32) -> bool {
        lock(&self.open).get(&number).is_none_or(|open| open.cancelled)
    }

    pub fn reply(&self, number: u32, encoded: &[u8]) -> Result<()> {
        let cancelled = || Error::Cancelled { topic: self.service.clone() };
        let one = number & WANTS_DONE == 0;
        match lock(&self.open).get(&number) {
            Some(open) if open.cancelled || one && open.replies > 0 => return Err(cancelled()),
            Some(_) => {}
            None => return Err(cancelled()),
        }
        let meta = self.meta(number);
        let sent = self.send(true, |out| out.reply.send_with(encoded, meta));
        if let Some(open) = lock(&self.open).get_mut(&number) {
            open.replies += u64::from(sent.is_ok());
            open.unsent |= sent.is_err();
        }
        sent
    }

    /// The handler has ended; tells the caller what it does not know.
    pub fn finish(&self, number: u32, outcome: Outcome) -> End {
        let (cancelled, replies, unsent) = lock(&self.open)
            .get(&number)
            .map_or((true, 0, false), |o| (o.cancelled, o.replies, o.unsent));
        let none = HandlerError::new("", "");
        match outcome {
            _ if cancelled => self.end(number, End::Cancelled, &none),
            // Its only reply has ended the call.
            Outcome::Returned if number & WANTS_DONE == 0 && replies > 0 => {
                lock(&self.open).remove(&number);
                End::Sent
            }
            Outcome::Failed(error) if !(number & WANTS_DONE == 0 && replies > 0) => {
                let end = self.end(number, End::Failed, &error);
                if unsent { End::Unsent } else { end }
            }
            Outcome::Failed(_) => {
                lock(&self.open).remove(&number);
                End::Failed
            }
            Outcome::Returned if number & WANTS_DONE == 0 => {
                let text = "the handler has returned without a reply";
                self.end(number, End::Failed, &HandlerError::new("no_reply", text))
            }
            Outcome::Returned => self.end(number, End::Sent, &none),
        }
    }

    pub fn refuse(&self, number: u32, backlog: u32) {
        lock(&self.open).remove(&number);
        let mut status = CallStatus { backlog, ..Default::default() };
        status.set_state(State::Refused);
        // One that does not read it has its time-out.
        let _ = self.say(number, &status);
    }

    /// Ends a call with a status.
    pub fn end(&self, number: u32, end: End, error: &HandlerError) -> End {
        let replies = lock(&self.open).remove(&number).map_or(0, |open| open.replies);
        let (code, text) = (cut(&error.kind, 256), cut(&error.text, 16 << 10));
        let mut status = CallStatus { replies, code, text, backlog: 0, state: 0 };
        status.set_state(match end {
            End::Failed => State::Failed,
            End::Cancelled => State::Cancelled,
            End::Sent | End::Unsent => State::Done,
        });
        match self.say(number, &status) {
            Ok(()) => end,
            // One that has cancelled may be gone.
            Err(_) if matches!(end, End::Cancelled) => end,
            Err(_) => End::Unsent,
        }
    }

    fn say(&self, number: u32, status: &CallStatus) -> Result<()> {
        let meta = self.meta(number);
        let waits = status.state() != State::Cancelled;
        self.send(waits, |out| out.status.send_with(status, meta))
    }

    fn meta(&self, number: u32) -> Meta {
        Meta::default().with_correlation(CallId { client: self.client, number }.word())
    }

    /// Sends; waits for room, and the first time until the caller's ends are matched, if the caller is to be
    /// waited for.
    fn send(&self, waits: bool, send: impl FnOnce(&mut Out) -> Result<()>) -> Result<()> {
        let mut out = lock(&self.out);
        let waits = waits && !out.behind;
        if waits && !out.matched {
            let matched = out.reply.wait_for_subscribers(1, Some(MATCHING));
            let matched = matched.and_then(|()| out.status.wait_for_subscribers(1, Some(MATCHING)));
            matched.inspect_err(|_| out.behind = true)?;
            out.matched = true;
        }
        out.reply.set_waiting(waits);
        let sent = send(&mut out);
        match &sent {
            Ok(()) => out.behind = false,
            Err(_) => out.behind |= waits,
        }
        sent
    }
}

trait TryInsert {
    fn try_insert_default(&mut self, number: u32) -> bool;
}

impl TryInsert for HashMap<u32, Open> {
    fn try_insert_default(&mut self, number: u32) -> bool {
        let before = self.len();
        self.entry(number).or_default();
        self.len() > before
    }
}

fn cut(text: &str, len: usize) -> String {
    let end = (0..=len.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text[..end.unwrap_or(0)].to_owned()
}
