//! Decides whether a caller stays awake for the reply.
//!
//! The interval between messages is misleading here: a reply that is slept for comes later by that sleep, so
//! the next request and its reply are late, too. If waking takes 25 µs, two peers that sleep for each other
//! are 50 µs apart, too far to wait awake for, and remain so although the reply takes 2 µs. So a caller stays
//! awake for a while whenever the reply would come in time without two such sleeps.

use crate::spin_or_sleep::SPIN_NS;

/// Consecutive late replies after which it sleeps for the next ones.
const MAX_LATE_REPLIES: u32 = 4;
/// Number of replies to sleep for: one try in this many costs next to nothing.
const SLEPT_REPLIES: u32 = 64;

/// Statistics of the replies so far.
#[derive(Debug)]
pub struct ReplyEstimator {
    /// Latency of the replies.
    latency_ns: f64,
    late_replies: u32,
    /// Replies left to sleep for.
    sleeps_left: u32,
}

impl Default for ReplyEstimator {
    fn default() -> Self {
        ReplyEstimator { latency_ns: f64::INFINITY, late_replies: 0, sleeps_left: 0 }
    }
}

impl ReplyEstimator {
    /// Until when a wait that started at `since_ns` stays awake.
    pub fn awake_until(&self, since_ns: u64) -> u64 {
        let pays = self.sleeps_left == 0 && self.latency_ns <= 2.0 * SPIN_NS as f64;
        since_ns.saturating_add(if pays { SPIN_NS } else { 0 })
    }

    /// Records a reply that came `latency_ns` after the start of its wait.
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
    fn waits_awake_for_replies_two_sleeps_apart_but_not_for_a_millisecond() {
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
    fn few_waits_are_awake_when_replies_are_late() {
        let mut answers = ReplyEstimator::default();
        let mut awake = 0;
        for _ in 0..6_500 {
            awake += u32::from(is_awake(&answers));
            answers.record_latency(90_000);
        }
        assert!((100..=110).contains(&awake), "{awake}");
        // The server got its own core.
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
