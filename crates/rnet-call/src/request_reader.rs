//! The subscribers of a server: requests, and status messages of callers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rnet_core::{CancelReason, Result, Wait};
use rnet_node::internal::{EngineSubscriber, EngineWaitSet};
use rnet_node::options::deadline;
use rnet_node::sync::lock;

use super::{Bytes, CallId, CallTopics};
use crate::msgs::{CallControl, call_control::Action};
use rnet_core::Error;
use rnet_node::{MatchEvent, MessageType, NodeHandle, Sample, Subscriber, WaitSet, WaitSetHandle};

/// Maximum number of requests per batch.
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
    /// Cancels the goals of all callers.
    StopAll,
    Malformed,
    /// The process of a caller has ended.
    Lost,
    /// The callers with these publishers have closed their endpoints.
    Closed(Vec<u64>),
}

/// The result of a wait.
#[derive(Clone, Copy)]
pub enum WaitOutcome {
    /// A spin on requests alone has found a message, perhaps a request.
    MaybeRequest,
    Ready,
    /// The wait was interrupted or has timed out.
    Nothing,
}

pub struct RequestReader {
    requests: Subscriber<[u8]>,
    control: Subscriber<CallControl>,
    set: WaitSet,
    received: u64,
    /// When the last request was sent and, if a spin found it, received. Its statistics are recorded after it
    /// was answered.
    unrecorded_arrival: Option<(u64, Option<u64>)>,
    /// Events that were read and not returned yet.
    pending_events: Vec<CallerEvent>,
    /// The publishers of callers that have closed their endpoints: no error reports this.
    closed_publishers: Arc<Mutex<Vec<u64>>>,
}

impl RequestReader {
    pub fn open(
        node: &NodeHandle,
        topics: &CallTopics,
        request: &MessageType,
    ) -> Result<RequestReader> {
        let requests = node.subscriber::<[u8]>(&topics.request()).reliable().wait(Wait::Adaptive);
        let requests = requests.message_type(request.clone()).open()?;
        let control = node.subscriber(&topics.control()).reliable().wait(Wait::Adaptive).open()?;
        let set = WaitSet::adaptive(&node.core);
        let closed = Arc::<Mutex<Vec<u64>>>::default();
        let (closing, wait_handle) = (closed.clone(), set.handle());
        requests
            .on_match(move |event| {
                if let MatchEvent::Unmatched(publisher) = event {
                    lock(&closing).push(publisher.id);
                    wait_handle.interrupt();
                }
            })
            .detach();
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

    /// The connected callers, by their publishers of requests.
    pub fn publishers(&self) -> Vec<u64> {
        self.requests.publishers().into_iter().map(|peer| peer.id).collect()
    }

    /// Waits for a message, spinning on requests first; the result shows whether the spin has found one.
    pub fn wait(&mut self, limit: Option<Duration>) -> WaitOutcome {
        self.record_arrival();
        let control = &self.control;
        if self.set.spin_first(&mut self.requests, || control.is_ready_now()) {
            return WaitOutcome::MaybeRequest;
        }
        let until = deadline(limit);
        let said = self.set.wait_until(&mut [&mut self.requests, &mut self.control], until);
        if said.unwrap_or(false) { WaitOutcome::Ready } else { WaitOutcome::Nothing }
    }

    /// Receives the next request, if no other message is available: a cancel must be read first. A request
    /// that `take` rejects, and errors, are among the results of [`RequestReader::drain`].
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

    /// All available events.
    pub fn drain(&mut self) -> Vec<CallerEvent> {
        self.record_arrival();
        let mut events = std::mem::take(&mut self.pending_events);
        // Cancels are read first and applied last: their requests were sent before, so they are available.
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
        // Read before the other messages, so that everything these callers sent is read after it.
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

/// Converts an error to an event of a caller.
fn error_event(error: &Error) -> CallerEvent {
    match error {
        Error::Malformed { .. } => CallerEvent::Malformed,
        _ => CallerEvent::Lost,
    }
}
