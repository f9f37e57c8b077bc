//! One caller, as a server sees it: its calls, and the publishers to it. `peer/cancel.rs` cancels the calls.

mod cancel;

use std::collections::hash_map::Entry;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rnet_core::{CancelReason, Error, Meta, OnFull, Result};
use rnet_node::bridge::BridgePublisher;
use rnet_node::sync::lock;
use rnet_shm::ring::fail_point;

use super::number_map::NumberMap;
use super::server_core::HandlerOutcome;
use super::service::HandlerError;
use super::service_stats::CallEnd;
use super::{CallId, CallTopics, CallerKey, WANTS_ALL_REPLIES, WANTS_FEEDBACK, reason_to_wire};
use crate::msgs::CallStatus;
use crate::msgs::call_status::State;
use rnet_node::{MessageType, NodeHandle, Publisher};

/// How long an answer waits for a caller that does not read.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// An open call.
#[derive(Default)]
struct CallState {
    cancelled: Option<CancelReason>,
    /// Its caller waits for its end although it was cancelled.
    caller_waits: bool,
    /// Its handler has seen the cancellation.
    cancel_seen: bool,
    replies: u64,
    /// An answer could not be sent.
    unsent: bool,
    /// Messages of feedback that were sent.
    feedback_sent: u64,
    /// Feedback messages that were not sent because the caller did not read.
    feedback_dropped: u64,
}

impl CallState {
    /// Whether its answer is no longer delivered. A server that closes delivers the answer of a handler that
    /// has not seen the cancellation: the work is done.
    fn discards_answer(&self) -> bool {
        self.cancelled
            .is_some_and(|reason| reason != CancelReason::ServerClosing || self.cancel_seen)
    }
}

struct AnswerPublishers {
    reply: Publisher<[u8]>,
    status: Publisher<CallStatus>,
    /// Only for an action.
    feedback: Option<Publisher<[u8]>>,
    /// It has not read for [`SEND_TIMEOUT`]; sends do not wait for it until it reads again.
    is_stalled: bool,
}

pub struct Peer {
    service: String,
    node: String,
    client: u32,
    /// Its publisher of requests.
    pub publisher: u64,
    open: Mutex<NumberMap<CallState>>,
    gone: AtomicBool,
    publishers: Mutex<AnswerPublishers>,
}

impl Peer {
    pub fn open(
        node: &NodeHandle,
        service: &str,
        (caller, client): CallerKey,
        publisher: u64,
        (reply, feedback): (&MessageType, Option<&MessageType>),
    ) -> Result<Peer> {
        let topics = CallTopics::of_client(service, client);
        let bytes = |topic: &str, on_full, ty: &MessageType| {
            node.publisher::<[u8]>(topic).reliable(on_full).message_type(ty.clone()).open()
        };
        let reply = bytes(&topics.reply(), OnFull::Wait(SEND_TIMEOUT), reply)?;
        fail_point!("call.caller_half_open");
        // It holds thousands of messages: if it is full, the caller does not read at all.
        let status = node.publisher(&topics.status()).reliable(OnFull::Refuse).open()?;
        // It never blocks a handler.
        let feedback =
            feedback.map(|ty| bytes(&topics.feedback(), OnFull::Refuse, ty)).transpose()?;
        let publishers =
            Mutex::new(AnswerPublishers { reply, status, feedback, is_stalled: false });
        let (service, node) = (service.to_owned(), caller);
        let (open, gone) = Default::default();
        Ok(Peer { service, node, client, publisher, open, gone, publishers })
    }

    /// Calls `callback` when its caller may have matched.
    pub fn on_match(&self, callback: impl Fn() + Clone + Send + 'static) {
        let publishers = lock(&self.publishers);
        let [others, feedback] = [callback.clone(), callback.clone()];
        publishers.reply.on_match(move |_| callback()).detach();
        publishers.status.on_match(move |_| others()).detach();
        if let Some(publisher) = &publishers.feedback {
            publisher.on_match(move |_| feedback()).detach();
        }
    }

    /// Whether its caller receives messages about calls with these numbers.
    pub fn can_receive(&self, mut numbers: impl Iterator<Item = u32>) -> bool {
        let publishers = lock(&self.publishers);
        let wanted = numbers.any(|number| number & WANTS_FEEDBACK != 0);
        let feedback = publishers.feedback.as_ref().filter(|_| wanted);
        publishers.reply.subscriber_count() > 0
            && publishers.status.subscriber_count() > 0
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
                place.insert(CallState::default());
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    pub fn reply(&self, number: u32, encoded: &[u8]) -> Result<()> {
        if !self.awaits_answer(number) {
            self.check_cancelled(number)?;
        }
        self.send_reply(number, encoded)
    }

    /// Whether the next reply is the only one of its call, and is still delivered.
    fn awaits_answer(&self, number: u32) -> bool {
        let open = lock(&self.open);
        let open = open.get(&number).filter(|_| number & WANTS_ALL_REPLIES == 0);
        open.is_some_and(|open| open.replies == 0 && !open.discards_answer())
    }

    /// Sends the only reply of a handler, which also ends the call; `None` if the call ends differently,
    /// because it was cancelled or its caller must be notified of the end.
    pub fn answer(&self, number: u32, encoded: &[u8]) -> Option<CallEnd> {
        if number & WANTS_ALL_REPLIES != 0 {
            return None;
        }
        let mut open = lock(&self.open);
        let Entry::Occupied(call) = open.entry(number) else { return None };
        if call.get().discards_answer() || call.get().replies > 0 {
            return None;
        }
        call.remove();
        drop(open);
        let meta = self.meta(number);
        let sent = self.send(true, |publishers| publishers.reply.send_with(encoded, meta));
        Some(match sent {
            Ok(()) => CallEnd::Sent,
            Err(error) => {
                self.end(number, CallEnd::Failed, &error.into());
                CallEnd::Unsent
            }
        })
    }

    /// Whether a call that was begun has ended: its caller was notified, or is about to be.
    pub fn has_ended(&self, number: u32) -> bool {
        !lock(&self.open).contains_key(&number)
    }

    fn send_reply(&self, number: u32, encoded: &[u8]) -> Result<()> {
        let meta = self.meta(number);
        let sent = self.send(true, |publishers| publishers.reply.send_with(encoded, meta));
        fail_point!("call.replied");
        if let Some(open) = lock(&self.open).get_mut(&number) {
            open.replies += u64::from(sent.is_ok());
            open.unsent |= sent.is_err();
        }
        sent
    }

    /// Sends feedback to a matched caller, without waiting. Feedback beyond the capacity is dropped and
    /// counted.
    pub fn feedback(&self, number: u32, encoded: &[u8]) -> Result<()> {
        self.check_cancelled(number)?;
        if number & WANTS_FEEDBACK == 0 {
            return Ok(());
        }
        let meta = self.meta(number);
        let mut publishers = lock(&self.publishers);
        let Some(publisher) = &mut publishers.feedback else { return Ok(()) };
        let sent = publisher.send_with(encoded, meta);
        fail_point!("call.feedback_sent");
        drop(publishers);
        let sent = match sent {
            Err(Error::Full { .. } | Error::OutOfMemory { .. }) => Ok(false),
            sent => sent.map(|()| true),
        };
        if let (Ok(sent), Some(open)) = (&sent, lock(&self.open).get_mut(&number)) {
            open.feedback_sent += u64::from(*sent);
            open.feedback_dropped += u64::from(!*sent);
        }
        sent.map(drop)
    }

    /// The handler has ended; sends the caller what it does not know yet.
    pub fn finish(&self, number: u32, outcome: HandlerOutcome) -> CallEnd {
        let (cancelled, unwanted, replies, unsent) =
            lock(&self.open).get(&number).map_or((true, true, 0, false), |o| {
                let gone = o.cancelled == Some(CancelReason::CallerGone);
                let stands = matches!(outcome, HandlerOutcome::JobResult(_))
                    && o.cancelled == Some(CancelReason::ServerClosing);
                // A job, or a stream, that has not ended is cancelled, whether or not its handler has seen
                // the cancellation.
                let whole = number & WANTS_ALL_REPLIES == 0 && !o.discards_answer();
                let cancelled = o.cancelled.is_some() && !stands && !whole;
                (cancelled, o.cancel_seen || gone, o.replies, o.unsent)
            });
        let none = HandlerError::new("", "");
        let outcome = match outcome {
            HandlerOutcome::JobResult(Ok(())) => HandlerOutcome::Returned,
            HandlerOutcome::JobResult(Err(error)) => HandlerOutcome::Failed(error),
            HandlerOutcome::Replied(end) => return end,
            HandlerOutcome::NotStarted => return self.requeue(number),
            outcome => outcome,
        };
        match outcome {
            // A goal that was reached before its handler saw the cancellation counts as reached.
            HandlerOutcome::GoalResult(result) if !unwanted => {
                match self.send_reply(number, &result) {
                    Ok(()) if number & WANTS_ALL_REPLIES == 0 => {
                        lock(&self.open).remove(&number);
                        CallEnd::Sent
                    }
                    Ok(()) => self.end(number, CallEnd::Sent, &none),
                    Err(error) => {
                        self.end(number, CallEnd::Failed, &error.into());
                        CallEnd::Unsent
                    }
                }
            }
            _ if cancelled => self.end(number, CallEnd::Cancelled, &none),
            // Its only reply has ended the call.
            HandlerOutcome::Returned if number & WANTS_ALL_REPLIES == 0 && replies > 0 => {
                lock(&self.open).remove(&number);
                CallEnd::Sent
            }
            HandlerOutcome::Failed(error) if !(number & WANTS_ALL_REPLIES == 0 && replies > 0) => {
                let end = self.end(number, CallEnd::Failed, &error);
                if unsent { CallEnd::Unsent } else { end }
            }
            HandlerOutcome::Failed(_) => {
                lock(&self.open).remove(&number);
                CallEnd::Failed
            }
            HandlerOutcome::Returned if number & WANTS_ALL_REPLIES == 0 => {
                let text = "the handler returned without a reply";
                self.end(number, CallEnd::Failed, &HandlerError::new("no_reply", text))
            }
            _ => self.end(number, CallEnd::Sent, &none),
        }
    }

    /// `running` is the node whose goal runs, for an action.
    pub fn refuse(&self, number: u32, backlog: u32, running: &str) {
        lock(&self.open).remove(&number);
        let running = running.to_owned();
        let mut status = CallStatus { backlog, running, ..Default::default() };
        status.set_state(State::Refused);
        // A caller that does not read it times out.
        let _ = self.send_status(number, &status, true);
    }

    /// Ends a call that no handler has started; its caller sends it to another server if it still wants it.
    pub fn requeue(&self, number: u32) -> CallEnd {
        let reason = lock(&self.open).get(&number).and_then(|open| open.cancelled);
        if reason.is_some_and(|reason| reason != CancelReason::ServerClosing) {
            return self.end_cancelled(number);
        }
        lock(&self.open).remove(&number);
        let mut status = CallStatus::default();
        status.set_state(State::Refused);
        status.set_reason(reason_to_wire(CancelReason::ServerClosing));
        let _ = self.send_status(number, &status, true);
        CallEnd::Cancelled
    }

    /// Ends a call with a status.
    fn end(&self, number: u32, end: CallEnd, error: &HandlerError) -> CallEnd {
        let open = lock(&self.open).remove(&number).unwrap_or_default();
        let (code, text) = (truncate(&error.kind, 256), truncate(&error.text, 16 << 10));
        let (replies, feedback, feedback_dropped) =
            (open.replies, open.feedback_sent, open.feedback_dropped);
        let mut status =
            CallStatus { replies, code, text, feedback, feedback_dropped, ..Default::default() };
        status.set_state(match end {
            CallEnd::Failed => State::Failed,
            CallEnd::Cancelled => State::Cancelled,
            CallEnd::Sent | CallEnd::Unsent => State::Done,
        });
        if let (CallEnd::Cancelled, Some(reason)) = (&end, open.cancelled) {
            status.set_reason(reason_to_wire(reason));
        }
        fail_point!("call.ending");
        let said = self.send_status(number, &status, open.caller_waits);
        fail_point!("call.ended");
        match said {
            Ok(()) => end,
            // The caller that cancelled may be gone.
            Err(_) if matches!(end, CallEnd::Cancelled) => end,
            Err(_) => CallEnd::Unsent,
        }
    }

    fn send_status(&self, number: u32, status: &CallStatus, caller_waits: bool) -> Result<()> {
        let meta = self.meta(number);
        let waits = status.state() != State::Cancelled || caller_waits;
        self.send(waits, |publishers| publishers.status.send_with(status, meta))
    }

    fn meta(&self, number: u32) -> Meta {
        Meta::default().with_correlation(CallId { client: self.client, number }.to_correlation())
    }

    /// Sends; waits for capacity if the caller is to be waited for.
    fn send(
        &self,
        waits: bool,
        send: impl FnOnce(&mut AnswerPublishers) -> Result<()>,
    ) -> Result<()> {
        let mut publishers = lock(&self.publishers);
        let waits = waits && !publishers.is_stalled;
        publishers.reply.set_waiting(waits);
        let sent = send(&mut publishers);
        match &sent {
            Ok(()) => publishers.is_stalled = false,
            Err(_) => publishers.is_stalled |= waits,
        }
        sent
    }
}

fn truncate(text: &str, len: usize) -> String {
    let end = (0..=len.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text[..end.unwrap_or(0)].to_owned()
}
