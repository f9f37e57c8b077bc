//! Tracing: publishes where the time of a subscription's messages goes, on a reserved topic while that topic
//! has a subscriber.
//!
//! The control thread finds the subscription of the trace topic and opens a
//! [`TracePublisher`](crate::trace_publisher::TracePublisher) for each of our subscriptions on the traced
//! topic. The receiving thread sees a bit in a word that it reads anyway (`SubscriberState::attention`), and
//! writes a record when it is done with a message. Without a tracer, the message path executes no instruction
//! for tracing. See docs/design/trace.md.

use std::cell::Cell;

use rnet_core::{MAX_TRACED_PER_S, TraceRecord};
use rnet_shm::channel::reader::Reader;
use rnet_shm::os::clock;

use crate::subscriber_state::SubscriberState;
use crate::wait_loop;

/// Credit that one record costs.
const RECORD_COST_NS: u64 = 1_000_000_000 / MAX_TRACED_PER_S;
/// Maximum number of consecutive records: a burst is traced completely.
const MAX_BURST: u64 = 64;

/// The tracing state of a receiver.
#[derive(Default)]
pub struct Tracing {
    /// The last received message, until the next receive shows that the user is done with it.
    current: Option<TracedMessage>,
    /// The saved credit for records, in ns, and when it was updated.
    credit_ns: u64,
    refilled_ns: u64,
    /// Whether the receiver has paused tracing until it has credit again.
    paused: bool,
}

/// A message that was taken and is being processed.
pub struct TracedMessage {
    record: TraceRecord,
    session: u32,
}

impl TracedMessage {
    /// Notes that the callback starts now.
    pub fn begin(&mut self) {
        self.record.began_ns = clock::now_ns();
        CALLBACK_BEGAN_NS.set(CALLBACK_PENDING);
    }
}

impl Tracing {
    /// Pays for a record at this time.
    fn spend(&mut self, now_ns: u64) -> bool {
        self.refill(now_ns);
        let paid = self.credit_ns.checked_sub(RECORD_COST_NS);
        self.credit_ns = paid.unwrap_or(self.credit_ns);
        paid.is_some()
    }

    fn refill(&mut self, now_ns: u64) {
        let saved = now_ns.saturating_sub(self.refilled_ns);
        self.credit_ns = self.credit_ns.saturating_add(saved).min(MAX_BURST * RECORD_COST_NS);
        self.refilled_ns = self.refilled_ns.max(now_ns);
    }

    /// Starts a trace of a message taken from one of these channels; `None` without credit.
    pub fn start(
        &mut self,
        state: &SubscriberState,
        channels: &[Reader],
        at: usize,
    ) -> Option<TracedMessage> {
        let mut record = channels[at].current_trace();
        if !self.spend(record.taken_ns) {
            return None;
        }
        record.received = channels.iter().map(Reader::received).fold(0, u64::wrapping_add);
        let woken_ns = wait_loop::woken_ns();
        let for_it = (record.sent_ns..=record.taken_ns).contains(&woken_ns);
        record.woken_ns = if for_it { woken_ns } else { 0 };
        Some(TracedMessage { record, session: state.trace.session() })
    }

    /// As [`Tracing::start`], for a receive, which ends with the next one. Without credit the receiver pauses
    /// tracing.
    pub fn start_receive(&mut self, state: &SubscriberState, channels: &[Reader], at: usize) {
        self.current = self.start(state, channels, at);
        match &mut self.current {
            Some(current) => current.record.began_ns = clock::now_ns(),
            None => {
                self.paused = true;
                state.pause_tracing();
            }
        }
    }

    /// The user is done with the message of the last receive.
    pub fn end_receive(&mut self, state: &SubscriberState, subscription: u64) {
        if let Some(current) = self.current.take() {
            end(state, subscription, current);
        }
    }

    /// Resumes tracing if there is credit.
    #[inline]
    pub fn resume_with_credit(&mut self, state: &SubscriberState) {
        if self.paused {
            self.unpause(state);
        }
    }

    #[cold]
    fn unpause(&mut self, state: &SubscriberState) {
        self.refill(clock::now_ns());
        if self.credit_ns >= RECORD_COST_NS {
            self.paused = false;
            if state.trace.is_open() {
                state.resume_tracing();
            }
        }
    }
}

/// The user is done with a message: writes its record.
pub fn end(state: &SubscriberState, subscription: u64, started: TracedMessage) {
    let TracedMessage { mut record, session } = started;
    record.ended_ns = clock::now_ns();
    let called_ns = CALLBACK_BEGAN_NS.replace(0);
    if (record.began_ns..=record.ended_ns).contains(&called_ns) {
        record.began_ns = called_ns;
    }
    if session != state.trace.session() {
        return;
    }
    (record.subscription, record.written_ns) = (subscription, record.ended_ns);
    if !state.trace.put(record) {
        state.pause_tracing();
        // A tracer may have subscribed between the two.
        if state.trace.is_open() {
            state.resume_tracing();
        }
    }
}

/// A traced callback is about to be called.
const CALLBACK_PENDING: u64 = 1;

thread_local! {
    /// When the callback of a binding started, after waiting for its interpreter; [`CALLBACK_PENDING`]
    /// before.
    static CALLBACK_BEGAN_NS: Cell<u64> = const { Cell::new(0) };
}

/// For bindings: the user's callback starts now, later than the call of the binding.
pub fn callback_begins() {
    CALLBACK_BEGAN_NS.with(|cell| {
        if cell.get() == CALLBACK_PENDING {
            cell.set(clock::now_ns());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_is_traced_completely_and_flood_partly() {
        let mut tracing = Tracing::default();
        let start_ns = 1_000_000_000_000;
        let burst = (0..1000).filter(|n| tracing.spend(start_ns + n)).count() as u64;
        assert_eq!(burst, MAX_BURST);
        // One second of 100,000 messages.
        let flood = (1..=100_000).filter(|n| tracing.spend(start_ns + n * 10_000)).count() as u64;
        assert!((MAX_TRACED_PER_S - 1..=MAX_TRACED_PER_S + 1).contains(&flood), "{flood}");
    }

    #[test]
    fn all_messages_at_1_khz_are_traced() {
        let mut tracing = Tracing::default();
        assert!((1..10_000).all(|n| tracing.spend(1_000_000_000_000 + n * 1_000_000)));
    }
}
