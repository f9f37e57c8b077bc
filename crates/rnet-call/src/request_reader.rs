//! What a server hears: requests, and what callers say of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rnet_core::{CancelReason, Result, Wait};
use rnet_node::sync::lock;

use super::{Bytes, CallId, CallTopics};
use crate::msgs::{CallControl, call_control::Action};
use rnet_core::Error;
use rnet_node::{
    MatchEvent, MessageType, NodeHandle, Sample, Subscriber, SubscriberOptions, WaitSet,
    WaitSetHandle,
};

/// Requests that are taken in one turn.
const MAX_BATCH: usize = 256;

pub enum CallerEvent {
    Request {
        caller: String,
        id: CallId,
        publisher: u64,
        bytes: Bytes,
    },
    Cancel {
        caller: String,
        id: CallId,
        reason: CancelReason,
        /// Whether the caller waits for the end.
        caller_waits: bool,
    },
    /// The goals of all callers are to end.
    StopAll,
    Malformed,
    /// The process of a caller has ended.
    Lost,
    /// The callers with these publishers have closed their ends.
    Closed(Vec<u64>),
}

/// What a wait has found.
#[derive(Clone, Copy)]
pub enum WaitOutcome {
    /// A request, perhaps, which a look at requests alone has found.
    MaybeRequest,
    Ready,
    /// It was interrupted, or its time is over.
    Nothing,
}

pub struct RequestReader {
    requests: Subscriber<[u8]>,
    control: Subscriber<CallControl>,
    set: WaitSet,
    received: u64,
    /// When the last request was sent, and taken if a glance has found it. What is to be learnt of it is learnt when it
    /// was answered.
    unrecorded_arrival: Option<(u64, Option<u64>)>,
    /// What was read and not told yet.
    pending_events: Vec<CallerEvent>,
    /// The publishers of callers that have closed their ends: no error says so.
    closed_publishers: Arc<Mutex<Vec<u64>>>,
}

impl RequestReader {
    pub fn open(
        node: &NodeHandle,
        topics: &CallTopics,
        request: &MessageType,
    ) -> Result<RequestReader> {
        let options = SubscriberOptions::new().reliable().wait(Wait::Adaptive);
        let typed = options.clone().message_type(request.clone());
        let requests = node.subscriber::<[u8]>(&topics.request(), typed)?;
        let control = node.subscriber::<CallControl>(&topics.control(), options)?;
        let set = WaitSet::adaptive(&node.core);
        let closed = Arc::<Mutex<Vec<u64>>>::default();
        let (closing, wait_handle) = (closed.clone(), set.handle());
        requests.on_match(move |event| {
            if let MatchEvent::Unmatched(publisher) = event {
                lock(&closing).push(publisher.id);
                wait_handle.interrupt();
            }
        });
        let (received, unrecorded_arrival, pending_events) = Default::default();
        Ok(RequestReader {
            requests,
            control,
            set,
            received,
            unrecorded_arrival,
            pending_events,
            closed_publishers: closed,
        })
    }

    pub fn handle(&self) -> WaitSetHandle {
        self.set.handle()
    }

    /// The callers that are there, by their publishers of requests.
    pub fn publishers(&self) -> Vec<u64> {
        self.requests.publishers().into_iter().map(|peer| peer.id).collect()
    }

    /// Waits until something was said, first with an eye on requests alone. Whether that has found one.
    pub fn wait(&mut self, limit: Option<Duration>) -> WaitOutcome {
        self.record_arrival();
        let control = &self.control;
        if self.set.spin_first(&mut self.requests, || control.is_ready_now()) {
            return WaitOutcome::MaybeRequest;
        }
        let said = self.set.wait(&mut [&mut self.requests, &mut self.control], limit);
        if said.unwrap_or(false) { WaitOutcome::Ready } else { WaitOutcome::Nothing }
    }

    /// Takes the next request in, where nothing was said beside it: a cancel would be read first. One that `take` does
    /// not want, and what went wrong, is among [`RequestReader::drain`].
    pub fn take_request<R>(
        &mut self,
        found: WaitOutcome,
        take: impl FnOnce(&Sample<'_, [u8]>, CallId) -> Option<R>,
    ) -> Option<R> {
        if self.control.has_more_now() {
            return None;
        }
        match self.requests.try_recv() {
            Ok(sample) => {
                let sample = sample?;
                let taken_ns =
                    matches!(found, WaitOutcome::MaybeRequest).then(|| sample.taken_ns());
                self.unrecorded_arrival = Some((sample.sent_ns(), taken_ns));
                let id = sample.correlation().map(CallId::from_correlation);
                let taken = id.and_then(|id| take(&sample, id));
                if taken.is_none() {
                    self.pending_events.push(request_event(&sample));
                }
                taken
            }
            Err(error) => {
                self.pending_events.push(error_event(&error));
                None
            }
        }
    }

    fn record_arrival(&mut self) {
        if let Some((sent_ns, taken_ns)) = self.unrecorded_arrival.take() {
            self.received += 1;
            match taken_ns {
                Some(taken_ns) => self.set.record_arrival_at(taken_ns, sent_ns, self.received),
                None => self.set.record_arrival(sent_ns, self.received),
            }
        }
    }

    /// All that was said.
    pub fn drain(&mut self) -> Vec<CallerEvent> {
        self.record_arrival();
        let mut events = std::mem::take(&mut self.pending_events);
        // What cancels is read first and obeyed last: the request was sent before it, so it is there.
        let mut cancels = Vec::new();
        for _ in 0..MAX_BATCH {
            match self.control.try_recv() {
                Ok(Some(sample)) => {
                    let id = sample.correlation().map(CallId::from_correlation);
                    let reason = match sample.action() {
                        Action::Cancel | Action::Stop => Some(CancelReason::Caller),
                        Action::TimedOut => Some(CancelReason::TimedOut),
                        Action::StopAll | Action::Unspecified => None,
                    };
                    cancels.push(match (reason, id) {
                        (Some(reason), Some(id)) => {
                            let (caller, caller_waits) =
                                (sample.node().to_owned(), sample.action() == Action::Stop);
                            CallerEvent::Cancel { caller, id, reason, caller_waits }
                        }
                        _ if sample.action() == Action::StopAll => CallerEvent::StopAll,
                        _ => CallerEvent::Malformed,
                    });
                }
                Ok(None) => break,
                Err(error) => cancels.push(error_event(&error)),
            }
        }
        // Taken ahead of the reads: what these have sent before is read then.
        let mut closed = std::mem::take(&mut *lock(&self.closed_publishers));
        let mut drained = false;
        for _ in 0..MAX_BATCH {
            match self.requests.try_recv() {
                Ok(Some(sample)) => {
                    let sent_ns = sample.sent_ns();
                    events.push(request_event(&sample));
                    self.received += 1;
                    self.set.record_arrival(sent_ns, self.received);
                }
                Ok(None) => {
                    drained = true;
                    break;
                }
                Err(error) => events.push(error_event(&error)),
            }
        }
        events.extend(cancels);
        if !drained {
            lock(&self.closed_publishers).append(&mut closed);
        }
        if !closed.is_empty() {
            events.push(CallerEvent::Closed(closed));
        }
        events
    }
}

fn request_event(sample: &Sample<'_, [u8]>) -> CallerEvent {
    match sample.correlation() {
        Some(word) => CallerEvent::Request {
            caller: sample.node().to_owned(),
            id: CallId::from_correlation(word),
            publisher: sample.publisher(),
            bytes: Bytes::copy_of(sample),
        },
        None => CallerEvent::Malformed,
    }
}

/// What an error says of a caller.
fn error_event(error: &Error) -> CallerEvent {
    match error {
        Error::Malformed { .. } => CallerEvent::Malformed,
        _ => CallerEvent::Lost,
    }
}
