//! The subscribers of a client, and how its reading thread waits for messages.

use std::time::Instant;

use rnet_core::Result;
use rnet_node::internal::{EngineSubscriber, EngineWaitSet};

use super::loss_tracker::LossTracker;
use crate::msgs::CallStatus;
use rnet_node::{Subscriber, WaitSet};

pub struct ReplyReader {
    pub replies: Subscriber<[u8]>,
    pub status: Subscriber<CallStatus>,
    /// Only for a client of an action.
    pub feedback: Option<Subscriber<[u8]>>,
    /// Losses of replies, status and feedback.
    pub lost: [LossTracker; 3],
    pub set: WaitSet,
    pub received: u64,
    /// When the last reply was sent and, if a spin found it, received. Its statistics are recorded while the
    /// next one is in flight.
    pub unrecorded_arrival: Option<(u64, Option<u64>)>,
    /// Consecutive replies that were received without a check of the other subscribers.
    pub single_replies: u32,
}

impl ReplyReader {
    /// Waits until a message is available.
    pub fn wait(&mut self, until: Option<Instant>) -> Result<bool> {
        let ReplyReader { replies, status, feedback, set, .. } = self;
        match feedback {
            Some(feedback) => set.wait_until(&mut [replies, status, feedback], until),
            None => set.wait_until(&mut [replies, status], until),
        }
    }

    /// The first part of such a wait: spins on replies alone, which is sufficient for most calls.
    pub fn spin_for_reply(&mut self) -> bool {
        let ReplyReader { replies, status, feedback, set, .. } = self;
        let is_ready = |one: &Subscriber<[u8]>| one.is_ready_now();
        set.spin_first(replies, || status.is_ready_now() || feedback.as_ref().is_some_and(is_ready))
    }

    /// Records that a reply was received; `taken_ns` is given if a spin found it.
    fn record(&mut self, sent_ns: u64, taken_ns: Option<u64>) {
        self.received += 1;
        match taken_ns {
            Some(taken_ns) => self.set.record_arrival_at(taken_ns, sent_ns, self.received),
            None => self.set.record_arrival(sent_ns, self.received),
        }
    }

    pub fn record_arrival(&mut self) {
        if let Some((sent_ns, taken_ns)) = self.unrecorded_arrival.take() {
            self.record(sent_ns, taken_ns);
        }
    }
}

/// Whether a message other than a reply is available.
pub fn has_more(status: &Subscriber<CallStatus>, feedback: &Option<Subscriber<[u8]>>) -> bool {
    status.has_more_now() || feedback.as_ref().is_some_and(Subscriber::has_more_now)
}
