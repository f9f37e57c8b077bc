//! Whether whoever has asked stays awake for the answer.
//!
//! How close messages follow each other says nothing good here: an answer that is slept for comes later by that sleep, the
//! next question goes out later by it, and so does its answer. Where waking takes 25 µs, two that sleep for each other
//! are 50 µs apart, too far to be awake for, and stay so for ever, though the answer takes 2 µs. So one that asks is
//! awake for a while wherever the answer would come if it were not for two such sleeps.

use crate::period_estimator::SPIN_NS;

/// Answers that did not come while it was awake, one after the other, until it sleeps for some at once.
const FAILURES: u32 = 4;
/// For so many: one in so many tries costs next to nothing.
const ASLEEP: u32 = 64;

/// What was learnt of the answers so far.
#[derive(Debug)]
pub struct Answers {
    /// How long they took.
    took_ns: f64,
    failures: u32,
    /// As many are still to be slept for.
    asleep: u32,
}

impl Default for Answers {
    fn default() -> Self {
        Answers { took_ns: f64::INFINITY, failures: 0, asleep: 0 }
    }
}

impl Answers {
    /// Until when a wait that began at `since_ns` is spent awake.
    pub fn awake_until(&self, since_ns: u64) -> u64 {
        let pays = self.asleep == 0 && self.took_ns <= 2.0 * SPIN_NS as f64;
        since_ns.saturating_add(if pays { SPIN_NS } else { 0 })
    }

    /// An answer has come `took_ns` after the wait for it had begun.
    pub fn came(&mut self, took_ns: u64) {
        let was_asleep = self.asleep > 0;
        self.asleep = self.asleep.saturating_sub(1);
        let took = took_ns as f64;
        self.took_ns = match self.took_ns.is_finite() {
            true => self.took_ns + (took - self.took_ns) / 8.0,
            false => took,
        };
        if was_asleep {
            return;
        }
        self.failures = if took_ns <= SPIN_NS { 0 } else { self.failures + 1 };
        if self.failures >= FAILURES {
            // One try after these.
            (self.failures, self.asleep) = (FAILURES - 1, ASLEEP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_awake(answers: &Answers) -> bool {
        answers.awake_until(1_000) > 1_000
    }

    #[test]
    fn two_sleeps_apart_is_near_enough_and_a_millisecond_is_not() {
        let mut answers = Answers::default();
        assert!(!is_awake(&answers), "nothing is known yet");
        answers.came(90_000);
        assert!(is_awake(&answers));
        let mut answers = Answers::default();
        (0..100).for_each(|_| {
            answers.came(1_000_000);
            assert!(!is_awake(&answers));
        });
    }

    #[test]
    fn in_vain_it_is_awake_for_few() {
        let mut answers = Answers::default();
        let mut awake = 0;
        for _ in 0..6_500 {
            awake += u32::from(is_awake(&answers));
            answers.came(90_000);
        }
        assert!((100..=110).contains(&awake), "{awake}");
        // The server was given a core of its own.
        let mut tries = 0;
        while !is_awake(&answers) {
            answers.came(60_000);
            tries += 1;
        }
        assert!(tries <= ASLEEP);
        answers.came(2_000);
        (0..1_000).for_each(|_| {
            assert!(is_awake(&answers));
            answers.came(2_000);
        });
    }
}
