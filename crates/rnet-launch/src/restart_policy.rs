//! Decides whether and when an exited process is restarted. Pure arithmetic over given times, without a
//! clock.

use std::collections::VecDeque;
use std::str::FromStr;

/// Which exits of a process lead to a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestartWhen {
    /// None.
    Never,
    /// All except exit code 0.
    #[default]
    OnFailure,
    /// All.
    Always,
}

impl RestartWhen {
    /// The names of all values.
    pub const NAMES: [&str; 3] = ["never", "on-failure", "always"];
}

impl FromStr for RestartWhen {
    type Err = ();

    fn from_str(text: &str) -> Result<RestartWhen, ()> {
        match text {
            "never" => Ok(RestartWhen::Never),
            "on-failure" => Ok(RestartWhen::OnFailure),
            "always" => Ok(RestartWhen::Always),
            _ => Err(()),
        }
    }
}

/// The reaction to the exit of a process.
#[derive(Clone, Debug, PartialEq)]
pub struct RestartPolicy {
    /// Which exits lead to a restart.
    pub when: RestartWhen,
    /// The wait before the first restart, in ms. It doubles with each exit within `give_up_within_ms`.
    pub backoff_ms: u64,
    /// The longest wait, in ms.
    pub backoff_max_ms: u64,
    /// After this many exits within `give_up_within_ms`, it is not restarted.
    pub give_up_after: u32,
    /// See `give_up_after`.
    pub give_up_within_ms: u64,
}

impl Default for RestartPolicy {
    fn default() -> RestartPolicy {
        RestartPolicy {
            when: RestartWhen::default(),
            backoff_ms: 500,
            backoff_max_ms: 30_000,
            give_up_after: 5,
            give_up_within_ms: 60_000,
        }
    }
}

/// The decision about an exited process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartDecision {
    /// It has finished its work.
    Done,
    /// It is restarted after this many ms.
    RestartAfter(u64),
    /// It is not restarted, and that is a failure.
    GiveUp,
}

/// The times of recent exits.
#[derive(Clone, Debug, Default)]
pub struct ExitHistory {
    ends_ms: VecDeque<u64>,
}

impl ExitHistory {
    /// Decides about a process that has exited at `now_ms`. `random` is from 0 to 1 and shortens the wait
    /// by up to half, so that nodes that fail together do not always restart together.
    pub fn record_exit(
        &mut self,
        policy: &RestartPolicy,
        failed: bool,
        now_ms: u64,
        random: f64,
    ) -> RestartDecision {
        match (policy.when, failed) {
            (RestartWhen::Never | RestartWhen::OnFailure, false) => return RestartDecision::Done,
            (RestartWhen::Never, true) => return RestartDecision::GiveUp,
            (RestartWhen::OnFailure, true) | (RestartWhen::Always, _) => {}
        }
        self.ends_ms.push_back(now_ms);
        while self.ends_ms.front().is_some_and(|end| now_ms - end >= policy.give_up_within_ms) {
            self.ends_ms.pop_front();
        }
        let ends = u32::try_from(self.ends_ms.len()).unwrap_or(u32::MAX);
        if ends >= policy.give_up_after {
            self.ends_ms.clear();
            return RestartDecision::GiveUp;
        }
        let doubled = policy.backoff_ms.saturating_mul(1 << (ends - 1).min(32));
        let whole = doubled.min(policy.backoff_max_ms);
        RestartDecision::RestartAfter(whole - (whole as f64 / 2.0 * random.clamp(0.0, 1.0)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> RestartPolicy {
        RestartPolicy {
            give_up_after: 4,
            backoff_ms: 100,
            backoff_max_ms: 300,
            ..RestartPolicy::default()
        }
    }

    #[test]
    fn waits_double_up_to_the_longest_and_then_give_up() {
        let mut history = ExitHistory::default();
        let verdicts: Vec<RestartDecision> =
            [0, 200, 500, 900].map(|now| history.record_exit(&policy(), true, now, 0.0)).into();
        use RestartDecision::{GiveUp, RestartAfter};
        assert_eq!(verdicts, [RestartAfter(100), RestartAfter(200), RestartAfter(300), GiveUp]);
        // A manual start resets the history.
        assert_eq!(history.record_exit(&policy(), true, 1000, 0.0), RestartAfter(100));
    }

    #[test]
    fn wait_is_between_half_and_full() {
        for (random, wait) in [(0.0, 100), (0.5, 75), (1.0, 50), (7.0, 50), (-1.0, 100)] {
            assert_eq!(
                ExitHistory::default().record_exit(&policy(), true, 0, random),
                RestartDecision::RestartAfter(wait),
                "{random}"
            );
        }
    }

    #[test]
    fn exit_counts_for_a_limited_time() {
        let mut history = ExitHistory::default();
        for round in 0..100 {
            let now = round * 60_000;
            assert_eq!(
                history.record_exit(&policy(), true, now, 0.0),
                RestartDecision::RestartAfter(100),
                "{round}"
            );
        }
        let mut close = ExitHistory::default();
        assert_eq!(close.record_exit(&policy(), true, 0, 0.0), RestartDecision::RestartAfter(100));
        assert_eq!(
            close.record_exit(&policy(), true, 59_999, 0.0),
            RestartDecision::RestartAfter(200)
        );
        assert_eq!(
            close.record_exit(&policy(), true, 60_000, 0.0),
            RestartDecision::RestartAfter(200)
        );
    }

    #[test]
    fn policy_decides_which_exits_restart() {
        let of = |when, failed| {
            ExitHistory::default().record_exit(&RestartPolicy { when, ..policy() }, failed, 0, 0.0)
        };
        assert_eq!(of(RestartWhen::Never, false), RestartDecision::Done);
        assert_eq!(of(RestartWhen::Never, true), RestartDecision::GiveUp);
        assert_eq!(of(RestartWhen::OnFailure, false), RestartDecision::Done);
        assert_eq!(of(RestartWhen::OnFailure, true), RestartDecision::RestartAfter(100));
        assert_eq!(of(RestartWhen::Always, false), RestartDecision::RestartAfter(100));
        assert_eq!(of(RestartWhen::Always, true), RestartDecision::RestartAfter(100));
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        let all = RestartPolicy {
            when: RestartWhen::Always,
            backoff_ms: u64::MAX,
            backoff_max_ms: u64::MAX,
            give_up_after: u32::MAX,
            give_up_within_ms: u64::MAX,
        };
        let mut history = ExitHistory::default();
        for now in 0..100 {
            assert_eq!(
                history.record_exit(&all, false, now, 0.0),
                RestartDecision::RestartAfter(u64::MAX)
            );
        }
    }
}
