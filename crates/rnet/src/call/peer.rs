//! One caller, as a server sees it: its calls, and the way back to it.

use std::collections::hash_map::Entry;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rnet_core::{CancelReason, Error, Meta, OnFull, Result};
use rnet_node::sync::lock;
use rnet_shm::ring::fail_point;

use super::desk::Outcome;
use super::numbers::ByNumber;
use super::service::HandlerError;
use super::service_stats::End;
use super::{CallId, Key, Topics, WANTS_DONE, WANTS_FEEDBACK, reason_to_wire};
use crate::msgs::CallStatus;
use crate::msgs::call_status::State;
use crate::{MessageType, Node, Publisher, PublisherOptions};

/// How long an answer waits for a caller that does not read.
const PATIENCE: Duration = Duration::from_secs(1);

/// An open call.
#[derive(Default)]
struct Open {
    cancelled: Option<CancelReason>,
    /// Its caller waits for the end of it although it was cancelled.
    awaited: bool,
    /// Its handler knows that it was cancelled.
    seen: bool,
    replies: u64,
    /// An answer could not be sent.
    unsent: bool,
    /// Messages of feedback that were sent.
    feedback: u64,
    /// Those that were not, because the caller did not read.
    dropped: u64,
}

impl Open {
    fn look(&mut self) -> Option<CancelReason> {
        self.seen |= self.cancelled.is_some();
        self.cancelled
    }

    /// Whether its answer is not delivered any more. A server that closes delivers the answer of a handler that does
    /// not know of it: the work is done.
    fn is_unwanted(&self) -> bool {
        self.cancelled.is_some_and(|reason| reason != CancelReason::ServerClosing || self.seen)
    }
}

struct Out {
    reply: Publisher<[u8]>,
    status: Publisher<CallStatus>,
    /// Of an action.
    feedback: Option<Publisher<[u8]>>,
    /// It has not read for [`PATIENCE`]: nobody waits for it again before it does.
    behind: bool,
}

pub struct Peer {
    service: String,
    node: String,
    client: u32,
    /// Its publisher of requests.
    pub publisher: u64,
    open: Mutex<ByNumber<Open>>,
    gone: AtomicBool,
    out: Mutex<Out>,
}

impl Peer {
    pub fn open(
        node: &Node,
        service: &str,
        (caller, client): Key,
        publisher: u64,
        (reply, feedback): (&MessageType, Option<&MessageType>),
    ) -> Result<Peer> {
        let topics = Topics::of_client(service, client);
        let options = PublisherOptions::new().reliable(OnFull::Wait(PATIENCE));
        let typed = options.message_type(reply.clone());
        // It holds thousands: one that is full is of a caller that reads nothing.
        let statuses = PublisherOptions::new().reliable(OnFull::Refuse);
        let reply = node.publisher_with::<[u8]>(&topics.reply(), typed)?;
        fail_point!("call.half_met");
        let status = node.publisher_with::<CallStatus>(&topics.status(), statuses)?;
        // It never holds a handler up.
        let options = |ty: &MessageType| {
            PublisherOptions::new().reliable(OnFull::Refuse).message_type(ty.clone())
        };
        let open = |ty| node.publisher_with::<[u8]>(&topics.feedback(), options(ty));
        let feedback = feedback.map(open).transpose()?;
        let out = Mutex::new(Out { reply, status, feedback, behind: false });
        let (service, node) = (service.to_owned(), caller);
        let (open, gone) = Default::default();
        Ok(Peer { service, node, client, publisher, open, gone, out })
    }

    /// Calls `callback` when its caller may have come to hear it.
    pub fn on_match(&self, callback: impl Fn() + Clone + Send + 'static) {
        let out = lock(&self.out);
        let [others, feedback] = [callback.clone(), callback.clone()];
        out.reply.on_match(move |_| callback());
        out.status.on_match(move |_| others());
        if let Some(publisher) = &out.feedback {
            publisher.on_match(move |_| feedback());
        }
    }

    /// Whether its caller hears what is said of calls with these numbers.
    pub fn hears(&self, mut numbers: impl Iterator<Item = u32>) -> bool {
        let out = lock(&self.out);
        let wanted = numbers.any(|number| number & WANTS_FEEDBACK != 0);
        let feedback = out.feedback.as_ref().filter(|_| wanted);
        out.reply.subscriber_count() > 0
            && out.status.subscriber_count() > 0
            && feedback.is_none_or(|feedback| feedback.subscriber_count() > 0)
    }

    pub fn service(&self) -> &str {
        &self.service
    }

    pub fn client(&self) -> u32 {
        self.client
    }

    pub fn node(&self) -> &str {
        &self.node
    }

    /// Whether the number was free.
    pub fn begin(&self, number: u32) -> bool {
        match lock(&self.open).entry(number) {
            Entry::Vacant(place) => {
                place.insert(Open::default());
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// The first reason is the one that is told.
    pub fn cancel(&self, number: u32, reason: CancelReason, awaited: bool) {
        if let Some(open) = lock(&self.open).get_mut(&number) {
            open.cancelled.get_or_insert(reason);
            open.awaited = awaited;
        }
    }

    pub fn cancel_all(&self, reason: CancelReason) {
        lock(&self.open).values_mut().for_each(|open| {
            open.cancelled.get_or_insert(reason);
            open.awaited = false;
        });
    }

    /// The caller is gone.
    pub fn leave(&self) {
        self.gone.store(true, Ordering::Relaxed);
        self.cancel_all(CancelReason::CallerGone);
    }

    /// Whether it was cancelled or has ended, as a handler asks.
    pub fn is_cancelled(&self, number: u32) -> bool {
        lock(&self.open).get_mut(&number).is_none_or(|open| open.look().is_some())
    }

    /// Whether its handler knows that it was cancelled.
    pub fn is_cancel_seen(&self, number: u32) -> bool {
        lock(&self.open).get(&number).is_none_or(|open| open.seen)
    }

    /// Why it was cancelled. Its handler does not know by this.
    pub fn cancelled(&self, number: u32) -> Option<CancelReason> {
        lock(&self.open).get(&number).and_then(|open| open.cancelled)
    }

    /// Why it was cancelled, as a handler asks.
    pub fn cancel_reason(&self, number: u32) -> Option<CancelReason> {
        lock(&self.open).get_mut(&number).and_then(Open::look)
    }

    /// # Errors
    /// `Cancelled` if the call was, or has ended.
    fn check(&self, number: u32) -> Result<()> {
        let reason = match lock(&self.open).get_mut(&number) {
            Some(open) => match open.look() {
                // It wanted one, and has it.
                None if number & WANTS_DONE == 0 && open.replies > 0 => CancelReason::Caller,
                None => return Ok(()),
                Some(reason) => reason,
            },
            None => CancelReason::Caller,
        };
        Err(Error::Cancelled { topic: self.service.clone(), reason })
    }

    pub fn reply(&self, number: u32, encoded: &[u8]) -> Result<()> {
        if !self.awaits_answer(number) {
            self.check(number)?;
        }
        self.send_reply(number, encoded)
    }

    /// Whether the next reply is the only one of its call, and is still delivered.
    fn awaits_answer(&self, number: u32) -> bool {
        let open = lock(&self.open);
        let open = open.get(&number).filter(|_| number & WANTS_DONE == 0);
        open.is_some_and(|open| open.replies == 0 && !open.is_unwanted())
    }

    /// The one reply of a handler that gives one, and with it the end of the call; `None` where the call has another
    /// end, because it was cancelled or its caller is to be told of the end.
    pub fn answer(&self, number: u32, encoded: &[u8]) -> Option<End> {
        if number & WANTS_DONE != 0 {
            return None;
        }
        let mut open = lock(&self.open);
        let Entry::Occupied(call) = open.entry(number) else { return None };
        if call.get().is_unwanted() || call.get().replies > 0 {
            return None;
        }
        call.remove();
        drop(open);
        let meta = self.meta(number);
        let sent = self.send(true, |out| out.reply.send_with(encoded, meta));
        Some(match sent {
            Ok(()) => End::Sent,
            Err(error) => {
                self.end(number, End::Failed, &error.into());
                End::Unsent
            }
        })
    }

    /// Whether a call that was begun has ended: its caller was told, or is about to be.
    pub fn has_ended(&self, number: u32) -> bool {
        !lock(&self.open).contains_key(&number)
    }

    fn send_reply(&self, number: u32, encoded: &[u8]) -> Result<()> {
        let meta = self.meta(number);
        let sent = self.send(true, |out| out.reply.send_with(encoded, meta));
        fail_point!("call.replied");
        if let Some(open) = lock(&self.open).get_mut(&number) {
            open.replies += u64::from(sent.is_ok());
            open.unsent |= sent.is_err();
        }
        sent
    }

    /// Sends feedback to a caller that hears it, without a wait; what there is no room for is dropped and counted.
    pub fn feedback(&self, number: u32, encoded: &[u8]) -> Result<()> {
        self.check(number)?;
        if number & WANTS_FEEDBACK == 0 {
            return Ok(());
        }
        let meta = self.meta(number);
        let mut out = lock(&self.out);
        let Some(publisher) = &mut out.feedback else { return Ok(()) };
        let sent = publisher.send_with(encoded, meta);
        fail_point!("call.fed_back");
        drop(out);
        let sent = match sent {
            Err(Error::Full { .. } | Error::OutOfMemory { .. }) => Ok(false),
            sent => sent.map(|()| true),
        };
        if let (Ok(sent), Some(open)) = (&sent, lock(&self.open).get_mut(&number)) {
            open.feedback += u64::from(*sent);
            open.dropped += u64::from(!*sent);
        }
        sent.map(drop)
    }

    /// The handler has ended; tells the caller what it does not know.
    pub fn finish(&self, number: u32, outcome: Outcome) -> End {
        let (cancelled, unwanted, replies, unsent) =
            lock(&self.open).get(&number).map_or((true, true, 0, false), |o| {
                let gone = o.cancelled == Some(CancelReason::CallerGone);
                let stands = matches!(outcome, Outcome::Settled(_))
                    && o.cancelled == Some(CancelReason::ServerClosing);
                // A job, or a stream, that has not come to its end is cancelled, whatever its handler knows.
                let whole = number & WANTS_DONE == 0 && !o.is_unwanted();
                let cancelled = o.cancelled.is_some() && !stands && !whole;
                (cancelled, o.seen || gone, o.replies, o.unsent)
            });
        let none = HandlerError::new("", "");
        let outcome = match outcome {
            Outcome::Settled(Ok(())) => Outcome::Returned,
            Outcome::Settled(Err(error)) => Outcome::Failed(error),
            Outcome::Answered(end) => return end,
            Outcome::Unseen => return self.hand_back(number),
            outcome => outcome,
        };
        match outcome {
            // A goal that was reached before its handler knew that it was not wanted any more is reached.
            Outcome::Reached(result) if !unwanted => match self.send_reply(number, &result) {
                Ok(()) if number & WANTS_DONE == 0 => {
                    lock(&self.open).remove(&number);
                    End::Sent
                }
                Ok(()) => self.end(number, End::Sent, &none),
                Err(error) => {
                    self.end(number, End::Failed, &error.into());
                    End::Unsent
                }
            },
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
                let text = "the handler returned without a reply";
                self.end(number, End::Failed, &HandlerError::new("no_reply", text))
            }
            _ => self.end(number, End::Sent, &none),
        }
    }

    /// `running` is the node whose goal runs, for an action.
    pub fn refuse(&self, number: u32, backlog: u32, running: &str) {
        lock(&self.open).remove(&number);
        let running = running.to_owned();
        let mut status = CallStatus { backlog, running, ..Default::default() };
        status.set_state(State::Refused);
        // One that does not read it has its time-out.
        let _ = self.say(number, &status, true);
    }

    /// Ends a call that no handler has seen, and that its caller gives to another server if it still wants it.
    pub fn hand_back(&self, number: u32) -> End {
        let reason = lock(&self.open).get(&number).and_then(|open| open.cancelled);
        if reason.is_some_and(|reason| reason != CancelReason::ServerClosing) {
            return self.end_cancelled(number);
        }
        lock(&self.open).remove(&number);
        let mut status = CallStatus::default();
        status.set_state(State::Refused);
        status.set_reason(reason_to_wire(CancelReason::ServerClosing));
        let _ = self.say(number, &status, true);
        End::Cancelled
    }

    /// A call that was cancelled before its handler began.
    pub fn end_cancelled(&self, number: u32) -> End {
        self.end(number, End::Cancelled, &HandlerError::new("", ""))
    }

    /// Ends a call with a status.
    fn end(&self, number: u32, end: End, error: &HandlerError) -> End {
        let open = lock(&self.open).remove(&number).unwrap_or_default();
        let (code, text) = (cut(&error.kind, 256), cut(&error.text, 16 << 10));
        let (replies, feedback, feedback_dropped) = (open.replies, open.feedback, open.dropped);
        let mut status =
            CallStatus { replies, code, text, feedback, feedback_dropped, ..Default::default() };
        status.set_state(match end {
            End::Failed => State::Failed,
            End::Cancelled => State::Cancelled,
            End::Sent | End::Unsent => State::Done,
        });
        if let (End::Cancelled, Some(reason)) = (&end, open.cancelled) {
            status.set_reason(reason_to_wire(reason));
        }
        fail_point!("call.ending");
        let said = self.say(number, &status, open.awaited);
        fail_point!("call.ended");
        match said {
            Ok(()) => end,
            // One that has cancelled may be gone.
            Err(_) if matches!(end, End::Cancelled) => end,
            Err(_) => End::Unsent,
        }
    }

    fn say(&self, number: u32, status: &CallStatus, awaited: bool) -> Result<()> {
        let meta = self.meta(number);
        let waits = status.state() != State::Cancelled || awaited;
        self.send(waits, |out| out.status.send_with(status, meta))
    }

    fn meta(&self, number: u32) -> Meta {
        Meta::default().with_correlation(CallId { client: self.client, number }.word())
    }

    /// Sends; waits for room if the caller is to be waited for.
    fn send(&self, waits: bool, send: impl FnOnce(&mut Out) -> Result<()>) -> Result<()> {
        let mut out = lock(&self.out);
        let waits = waits && !out.behind;
        out.reply.set_waiting(waits);
        let sent = send(&mut out);
        match &sent {
            Ok(()) => out.behind = false,
            Err(_) => out.behind |= waits,
        }
        sent
    }
}

fn cut(text: &str, len: usize) -> String {
    let end = (0..=len.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text[..end.unwrap_or(0)].to_owned()
}
