//! What a server hears: requests, and what callers say of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rnet_core::{CancelReason, Result, Wait};
use rnet_node::sync::lock;

use super::{Bytes, CallId, Topics};
use crate::msgs::{CallControl, call_control::Action};
use crate::{
    Error, MatchEvent, MessageType, Node, Sample, Subscriber, SubscriberOptions, WaitSet,
    WaitSetHandle,
};

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
    /// The process of a caller has ended.
    Left,
    /// The callers with these publishers have closed their ends.
    Closed(Vec<u64>),
}

/// What a wait has found.
#[derive(Clone, Copy)]
pub enum Found {
    /// A request, perhaps, which a look at requests alone has found.
    AtOnce,
    Something,
    /// It was interrupted, or its time is over.
    Nothing,
}

pub struct Intake {
    requests: Subscriber<[u8]>,
    control: Subscriber<CallControl>,
    set: WaitSet,
    taken: u64,
    /// When the last request was sent, and taken if a glance has found it. What is to be learnt of it is learnt when it
    /// was answered.
    unlearnt: Option<(u64, Option<u64>)>,
    /// What was read and not told yet.
    untold: Vec<Told>,
    /// The publishers of callers that have closed their ends: no error says so.
    closed: Arc<Mutex<Vec<u64>>>,
}

impl Intake {
    pub fn open(node: &Node, topics: &Topics, request: &MessageType) -> Result<Intake> {
        let options = SubscriberOptions::new().reliable().wait(Wait::Adaptive);
        let typed = options.clone().message_type(request.clone());
        let requests = node.subscriber_with::<[u8]>(&topics.request(), typed)?;
        let control = node.subscriber_with::<CallControl>(&topics.control(), options)?;
        let set = WaitSet::adaptive(node);
        let closed = Arc::<Mutex<Vec<u64>>>::default();
        let (closing, reading) = (closed.clone(), set.handle());
        requests.on_match(move |event| {
            if let MatchEvent::Unmatched(publisher) = event {
                lock(&closing).push(publisher.id);
                reading.interrupt();
            }
        });
        let (taken, unlearnt, untold) = Default::default();
        Ok(Intake { requests, control, set, taken, unlearnt, untold, closed })
    }

    pub fn handle(&self) -> WaitSetHandle {
        self.set.handle()
    }

    /// The callers that are there, by their publishers of requests.
    pub fn publishers(&self) -> Vec<u64> {
        self.requests.publishers().into_iter().map(|peer| peer.id).collect()
    }

    /// Waits until something was said, first with an eye on requests alone. Whether that has found one.
    pub fn wait(&mut self, limit: Option<Duration>) -> Found {
        self.learn();
        let control = &self.control;
        if self.set.glance(&mut self.requests, || control.is_ready_now()) {
            return Found::AtOnce;
        }
        let said = self.set.wait(&mut [&mut self.requests, &mut self.control], limit);
        if said.unwrap_or(false) { Found::Something } else { Found::Nothing }
    }

    /// Takes the next request in, where nothing was said beside it: a cancel would be read first. One that `take` does
    /// not want, and what went wrong, is among [`Intake::all`].
    pub fn one<R>(
        &mut self,
        found: Found,
        take: impl FnOnce(&Sample<'_, [u8]>, CallId) -> Option<R>,
    ) -> Option<R> {
        if self.control.has_more_now() {
            return None;
        }
        match self.requests.try_recv() {
            Ok(sample) => {
                let sample = sample?;
                let taken_ns = matches!(found, Found::AtOnce).then(|| sample.taken_ns());
                self.unlearnt = Some((sample.sent_ns(), taken_ns));
                let id = sample.correlation().map(CallId::of);
                let taken = id.and_then(|id| take(&sample, id));
                if taken.is_none() {
                    self.untold.push(told_by(&sample));
                }
                taken
            }
            Err(error) => {
                self.untold.push(of(&error));
                None
            }
        }
    }

    fn learn(&mut self) {
        if let Some((sent_ns, taken_ns)) = self.unlearnt.take() {
            self.taken += 1;
            match taken_ns {
                Some(taken_ns) => self.set.came_at(taken_ns, sent_ns, self.taken),
                None => self.set.came(sent_ns, self.taken),
            }
        }
    }

    /// All that was said.
    pub fn all(&mut self) -> Vec<Told> {
        self.learn();
        let mut told = std::mem::take(&mut self.untold);
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
        // Taken ahead of the reads: what these have sent before is read then.
        let mut closed = std::mem::take(&mut *lock(&self.closed));
        let mut drained = false;
        for _ in 0..TURN {
            match self.requests.try_recv() {
                Ok(Some(sample)) => {
                    let sent_ns = sample.sent_ns();
                    told.push(told_by(&sample));
                    self.taken += 1;
                    self.set.came(sent_ns, self.taken);
                }
                Ok(None) => {
                    drained = true;
                    break;
                }
                Err(error) => told.push(of(&error)),
            }
        }
        told.extend(cancels);
        if !drained {
            lock(&self.closed).append(&mut closed);
        }
        if !closed.is_empty() {
            told.push(Told::Closed(closed));
        }
        told
    }
}

fn told_by(sample: &Sample<'_, [u8]>) -> Told {
    match sample.correlation() {
        Some(word) => Told::Request {
            caller: sample.node().to_owned(),
            id: CallId::of(word),
            publisher: sample.publisher(),
            bytes: Bytes::copy_of(sample),
        },
        None => Told::Malformed,
    }
}

/// What an error says of a caller.
fn of(error: &Error) -> Told {
    match error {
        Error::Malformed { .. } => Told::Malformed,
        _ => Told::Left,
    }
}
