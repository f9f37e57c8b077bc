//! Tracing: where the time of a subscription's messages goes, told on a topic of its own while somebody subscribes to
//! that topic.
//!
//! The control thread finds the subscription of the trace and opens a [`TracePublisher`](crate::trace_publisher::TracePublisher) for each subscription of ours on the
//! traced topic; the thread that receives sees a bit in the word that it looks at anyway (`SubscriberState::attention`),
//! and writes a record when it is done with a message. While nobody traces, no instruction of the message path is for
//! this. docs/design/trace.md.

use std::cell::Cell;

use rnet_core::{MAX_TRACED_PER_S, TraceRecord};
use rnet_shm::channel::reader::Reader;
use rnet_shm::os::clock;

use crate::subscriber_state::SubscriberState;
use crate::wait_strategy;

/// What one record takes of what was saved up since the last.
const RECORD_COST_NS: u64 = 1_000_000_000 / MAX_TRACED_PER_S;
/// Records that may follow each other at once: a burst is traced whole.
const MAX_BURST: u64 = 64;

/// What a receiver remembers of its tracing.
#[derive(Default)]
pub struct Tracing {
    /// The message that was received last, until the next receive says when the user was done with it.
    current: Option<TracedMessage>,
    /// What was saved up for records, in ns of their price, and when.
    credit_ns: u64,
    refilled_ns: u64,
    /// Whether the receiver looks away until there is credit again.
    paused: bool,
}

/// A message that was taken and is being worked on.
pub struct TracedMessage {
    record: TraceRecord,
    session: u32,
}

impl TracedMessage {
    /// The callback begins now.
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

    /// A message was taken from one of these channels; what is known of it so far, if it is to be traced.
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
        let woken_ns = wait_strategy::woken_ns();
        let for_it = (record.sent_ns..=record.taken_ns).contains(&woken_ns);
        record.woken_ns = if for_it { woken_ns } else { 0 };
        Some(TracedMessage { record, session: state.trace.session() })
    }

    /// As [`Tracing::start`], of a receive, which ends with the next one. Without credit the receiver looks away.
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

    /// Looks again if there is credit.
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

/// The user is done with a message.
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
        // Somebody may have begun to trace between the two.
        if state.trace.is_open() {
            state.resume_tracing();
        }
    }
}

/// A traced callback is about to be called.
const CALLBACK_PENDING: u64 = 1;

thread_local! {
    /// When the callback of a binding began, which had to wait for its interpreter; [`CALLBACK_PENDING`] before.
    static CALLBACK_BEGAN_NS: Cell<u64> = const { Cell::new(0) };
}

/// For bindings: the user's callback begins now, and not when the binding was called.
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
    fn a_burst_is_traced_whole_and_a_flood_in_part() {
        let mut tracing = Tracing::default();
        let start_ns = 1_000_000_000_000;
        let burst = (0..1000).filter(|n| tracing.spend(start_ns + n)).count() as u64;
        assert_eq!(burst, MAX_BURST);
        // A second of 100,000 messages.
        let flood = (1..=100_000).filter(|n| tracing.spend(start_ns + n * 10_000)).count() as u64;
        assert!((MAX_TRACED_PER_S - 1..=MAX_TRACED_PER_S + 1).contains(&flood), "{flood}");
    }

    #[test]
    fn messages_at_1_khz_are_all_traced() {
        let mut tracing = Tracing::default();
        assert!((1..10_000).all(|n| tracing.spend(1_000_000_000_000 + n * 1_000_000)));
    }
}
