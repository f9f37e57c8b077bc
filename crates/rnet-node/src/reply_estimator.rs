//! Whether whoever has asked stays awake for the answer.
//!
//! How close messages follow each other says nothing good here: an answer that is slept for comes later by that sleep, the
//! next question goes out later by it, and so does its answer. Where waking takes 25 µs, two that sleep for each other
//! are 50 µs apart, too far to be awake for, and stay so for ever, though the answer takes 2 µs. So one that asks is
//! awake for a while wherever the answer would come if it were not for two such sleeps.

use crate::period_estimator::SPIN_NS;

/// Answers that did not come while it was awake, one after the other, until it sleeps for some at once.
const MAX_LATE_REPLIES: u32 = 4;
/// For so many: one in so many tries costs next to nothing.
const SLEPT_REPLIES: u32 = 64;

/// What was learnt of the answers so far.
#[derive(Debug)]
pub struct ReplyEstimator {
    /// How long they took.
    latency_ns: f64,
    late_replies: u32,
    /// As many are still to be slept for.
    sleeps_left: u32,
}

impl Default for ReplyEstimator {
    fn default() -> Self {
        ReplyEstimator { latency_ns: f64::INFINITY, late_replies: 0, sleeps_left: 0 }
    }
}

impl ReplyEstimator {
    /// Until when a wait that began at `since_ns` is spent awake.
    pub fn awake_until(&self, since_ns: u64) -> u64 {
        let pays = self.sleeps_left == 0 && self.latency_ns <= 2.0 * SPIN_NS as f64;
        since_ns.saturating_add(if pays { SPIN_NS } else { 0 })
    }

    /// An answer has come `latency_ns` after the wait for it had begun.
    pub fn record_latency(&mut self, latency_ns: u64) {
        let was_asleep = self.sleeps_left > 0;
        self.sleeps_left = self.sleeps_left.saturating_sub(1);
        let took = latency_ns as f64;
        self.latency_ns = match self.latency_ns.is_finite() {
            true => self.latency_ns + (took - self.latency_ns) / 8.0,
            false => took,
        };
        if was_asleep {
            return;
        }
        self.late_replies = if latency_ns <= SPIN_NS { 0 } else { self.late_replies + 1 };
        if self.late_replies >= MAX_LATE_REPLIES {
            // One try after these.
            (self.late_replies, self.sleeps_left) = (MAX_LATE_REPLIES - 1, SLEPT_REPLIES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_awake(answers: &ReplyEstimator) -> bool {
        answers.awake_until(1_000) > 1_000
    }

    #[test]
    fn two_sleeps_apart_is_near_enough_and_a_millisecond_is_not() {
        let mut answers = ReplyEstimator::default();
        assert!(!is_awake(&answers), "nothing is known yet");
        answers.record_latency(90_000);
        assert!(is_awake(&answers));
        let mut answers = ReplyEstimator::default();
        (0..100).for_each(|_| {
            answers.record_latency(1_000_000);
            assert!(!is_awake(&answers));
        });
    }

    #[test]
    fn in_vain_it_is_awake_for_few() {
        let mut answers = ReplyEstimator::default();
        let mut awake = 0;
        for _ in 0..6_500 {
            awake += u32::from(is_awake(&answers));
            answers.record_latency(90_000);
        }
        assert!((100..=110).contains(&awake), "{awake}");
        // The server was given a core of its own.
        let mut tries = 0;
        while !is_awake(&answers) {
            answers.record_latency(60_000);
            tries += 1;
        }
        assert!(tries <= SLEPT_REPLIES);
        answers.record_latency(2_000);
        (0..1_000).for_each(|_| {
            assert!(is_awake(&answers));
            answers.record_latency(2_000);
        });
    }
}
