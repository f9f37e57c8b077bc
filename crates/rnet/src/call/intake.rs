//! What a server hears: requests, and what callers say of them.

use std::time::Duration;

use rnet_core::{CancelReason, Result, Wait};

use super::{Bytes, CallId, Topics};
use crate::msgs::{CallControl, call_control::Action};
use crate::{Error, MessageType, Node, Subscriber, SubscriberOptions, WaitSet, WaitSetHandle};

/// Requests that are taken in one turn.
const TURN: usize = 256;

pub enum Told {
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
        awaited: bool,
    },
    /// The goals of all callers are to end.
    StopAll,
    Malformed,
    /// The process of a caller has ended, or a caller has closed its end.
    Left,
}

pub struct Intake {
    requests: Subscriber<[u8]>,
    control: Subscriber<CallControl>,
    set: WaitSet,
    taken: u64,
}

impl Intake {
    pub fn open(node: &Node, topics: &Topics, request: &MessageType) -> Result<Intake> {
        let options = SubscriberOptions::new().reliable().wait(Wait::Adaptive);
        let typed = options.clone().message_type(request.clone());
        let requests = node.subscriber_with::<[u8]>(&topics.request(), typed)?;
        let control = node.subscriber_with::<CallControl>(&topics.control(), options)?;
        Ok(Intake { requests, control, set: WaitSet::adaptive(node), taken: 0 })
    }

    pub fn handle(&self) -> WaitSetHandle {
        self.set.handle()
    }

    /// The callers that are there, by their publishers of requests.
    pub fn publishers(&self) -> Vec<u64> {
        self.requests.publishers().into_iter().map(|peer| peer.id).collect()
    }

    /// Waits until something was said; nothing where the wait was interrupted or its time is over.
    pub fn wait(&mut self, limit: Option<Duration>) -> Vec<Told> {
        let mut told = Vec::new();
        let said = self.set.wait(&mut [&mut self.requests, &mut self.control], limit);
        if !said.unwrap_or(false) {
            return told;
        }
        // What cancels is read first and obeyed last: the request was sent before it, so it is there.
        let mut cancels = Vec::new();
        for _ in 0..TURN {
            match self.control.try_recv() {
                Ok(Some(sample)) => {
                    let id = sample.correlation().map(CallId::of);
                    let reason = match sample.action() {
                        Action::Cancel | Action::Stop => Some(CancelReason::Caller),
                        Action::TimedOut => Some(CancelReason::TimedOut),
                        Action::StopAll | Action::Unspecified => None,
                    };
                    cancels.push(match (reason, id) {
                        (Some(reason), Some(id)) => {
                            let (caller, awaited) =
                                (sample.node().to_owned(), sample.action() == Action::Stop);
                            Told::Cancel { caller, id, reason, awaited }
                        }
                        _ if sample.action() == Action::StopAll => Told::StopAll,
                        _ => Told::Malformed,
                    });
                }
                Ok(None) => break,
                Err(error) => cancels.push(of(&error)),
            }
        }
        for _ in 0..TURN {
            match self.requests.try_recv() {
                Ok(Some(sample)) => {
                    let (sent_ns, publisher) = (sample.sent_ns(), sample.publisher());
                    told.push(match sample.correlation() {
                        Some(word) => Told::Request {
                            caller: sample.node().to_owned(),
                            id: CallId::of(word),
                            publisher,
                            bytes: Bytes::copy_of(&sample),
                        },
                        None => Told::Malformed,
                    });
                    self.taken += 1;
                    self.set.came(sent_ns, self.taken);
                }
                Ok(None) => break,
                Err(error) => told.push(of(&error)),
            }
        }
        told.extend(cancels);
        told
    }
}

/// What an error says of a caller.
fn of(error: &Error) -> Told {
    match error {
        Error::Malformed { .. } => Told::Malformed,
        _ => Told::Left,
    }
}
