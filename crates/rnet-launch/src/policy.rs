//! Whether a process that has ended is started again, and when. Arithmetic over times that are given; no clock.

use std::collections::VecDeque;
use std::str::FromStr;

/// Which ends of a process are followed by a start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// None.
    Never,
    /// All but exit code 0.
    #[default]
    OnFailure,
    /// All.
    Always,
}

impl When {
    /// All, as they are written.
    pub const NAMES: [&str; 3] = ["never", "on-failure", "always"];
}

impl FromStr for When {
    type Err = ();

    fn from_str(text: &str) -> Result<When, ()> {
        match text {
            "never" => Ok(When::Never),
            "on-failure" => Ok(When::OnFailure),
            "always" => Ok(When::Always),
            _ => Err(()),
        }
    }
}

/// What happens when a process ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Which ends are followed by a start.
    pub when: When,
    /// The wait before the first start, in ms. It doubles with each end within `give_up_within_ms`.
    pub backoff_ms: u64,
    /// The longest wait, in ms.
    pub backoff_max_ms: u64,
    /// This many ends within `give_up_within_ms`, and it is not started again.
    pub give_up_after: u32,
    /// See `give_up_after`.
    pub give_up_within_ms: u64,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            when: When::default(),
            backoff_ms: 500,
            backoff_max_ms: 30_000,
            give_up_after: 5,
            give_up_within_ms: 60_000,
        }
    }
}

/// What becomes of a process that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has done its work.
    Done,
    /// It is started after so many ms.
    Again(u64),
    /// It is not started again, and that is a failure.
    GiveUp,
}

/// When a process has ended, as far as that still counts.
#[derive(Clone, Debug, Default)]
pub struct History {
    ends_ms: VecDeque<u64>,
}

impl History {
    /// Says what becomes of a process that has ended at `now_ms`. `random` is from 0 to 1: nodes that fail together
    /// are not to start together for ever, so that a wait is between half and all of what it would be.
    pub fn ended(&mut self, policy: &Policy, failed: bool, now_ms: u64, random: f64) -> Verdict {
        match (policy.when, failed) {
            (When::Never | When::OnFailure, false) => return Verdict::Done,
            (When::Never, true) => return Verdict::GiveUp,
            (When::OnFailure, true) | (When::Always, _) => {}
        }
        self.ends_ms.push_back(now_ms);
        while self.ends_ms.front().is_some_and(|end| now_ms - end >= policy.give_up_within_ms) {
            self.ends_ms.pop_front();
        }
        let ends = u32::try_from(self.ends_ms.len()).unwrap_or(u32::MAX);
        if ends >= policy.give_up_after {
            self.ends_ms.clear();
            return Verdict::GiveUp;
        }
        let doubled = policy.backoff_ms.saturating_mul(1 << (ends - 1).min(32));
        let whole = doubled.min(policy.backoff_max_ms);
        Verdict::Again(whole - (whole as f64 / 2.0 * random.clamp(0.0, 1.0)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Policy {
        Policy { give_up_after: 4, backoff_ms: 100, backoff_max_ms: 300, ..Policy::default() }
    }

    #[test]
    fn waits_double_up_to_the_longest_and_then_it_is_given_up() {
        let mut history = History::default();
        let verdicts: Vec<Verdict> =
            [0, 200, 500, 900].map(|now| history.ended(&policy(), true, now, 0.0)).into();
        use Verdict::{Again, GiveUp};
        assert_eq!(verdicts, [Again(100), Again(200), Again(300), GiveUp]);
        // Who starts it by hand begins anew.
        assert_eq!(history.ended(&policy(), true, 1000, 0.0), Again(100));
    }

    #[test]
    fn a_wait_is_between_half_and_all() {
        for (random, wait) in [(0.0, 100), (0.5, 75), (1.0, 50), (7.0, 50), (-1.0, 100)] {
            assert_eq!(
                History::default().ended(&policy(), true, 0, random),
                Verdict::Again(wait),
                "{random}"
            );
        }
    }

    #[test]
    fn an_end_counts_for_a_while() {
        let mut history = History::default();
        for round in 0..100 {
            let now = round * 60_000;
            assert_eq!(history.ended(&policy(), true, now, 0.0), Verdict::Again(100), "{round}");
        }
        let mut close = History::default();
        assert_eq!(close.ended(&policy(), true, 0, 0.0), Verdict::Again(100));
        assert_eq!(close.ended(&policy(), true, 59_999, 0.0), Verdict::Again(200));
        assert_eq!(close.ended(&policy(), true, 60_000, 0.0), Verdict::Again(200));
    }

    #[test]
    fn which_ends_are_followed_by_a_start() {
        let of =
            |when, failed| History::default().ended(&Policy { when, ..policy() }, failed, 0, 0.0);
        assert_eq!(of(When::Never, false), Verdict::Done);
        assert_eq!(of(When::Never, true), Verdict::GiveUp);
        assert_eq!(of(When::OnFailure, false), Verdict::Done);
        assert_eq!(of(When::OnFailure, true), Verdict::Again(100));
        assert_eq!(of(When::Always, false), Verdict::Again(100));
        assert_eq!(of(When::Always, true), Verdict::Again(100));
    }

    #[test]
    fn large_numbers_do_no_harm() {
        let all = Policy {
            when: When::Always,
            backoff_ms: u64::MAX,
            backoff_max_ms: u64::MAX,
            give_up_after: u32::MAX,
            give_up_within_ms: u64::MAX,
        };
        let mut history = History::default();
        for now in 0..100 {
            assert_eq!(history.ended(&all, false, now, 0.0), Verdict::Again(u64::MAX));
        }
    }
}
