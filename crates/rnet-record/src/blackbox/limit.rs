//! Limits which triggers make a file: at most a few per minute, and one per cause until the cause has been
//! quiet.
//!
//! A robot with a loose connector fires triggers for hours. Each file would be like the one before, and the
//! disk would be full when another fault occurs.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use super::trigger_queue::FiredTrigger;

/// Maximum number of files that begin within [`MINUTE`], without requested files.
const MAX_PER_MINUTE: usize = 3;
const MINUTE: Duration = Duration::from_secs(60);
/// Maximum number of causes that are distinguished.
const MAX_CAUSES: usize = 256;

/// The decision about a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It makes a file, or extends the pending one.
    Accepted,
    /// Its cause already had a file, and has not been quiet since.
    Repeated,
    /// The limit of files per minute is reached.
    TooMany,
}

/// Recent files and triggers.
#[derive(Debug, Default)]
pub struct RateLimit {
    /// When files were begun.
    begun: VecDeque<Instant>,
    /// When each cause last fired.
    causes: BTreeMap<String, Instant>,
}

impl RateLimit {
    /// Decides about a trigger that fires at `now`; `is_open`: a file is pending.
    pub fn check(
        &mut self,
        fired: &FiredTrigger,
        is_open: bool,
        is_call: bool,
        now: Instant,
    ) -> Verdict {
        self.causes.retain(|_, last| now.duration_since(*last) < MINUTE);
        while self.begun.front().is_some_and(|at| now.duration_since(*at) >= MINUTE) {
            self.begun.pop_front();
        }
        // A requested file is always written.
        if is_call {
            return Verdict::Accepted;
        }
        let cause = cause(fired);
        if let Some(last) = self.causes.get_mut(&cause) {
            *last = now;
            return Verdict::Repeated;
        }
        if !is_open {
            if self.begun.len() >= MAX_PER_MINUTE {
                return Verdict::TooMany;
            }
            self.begun.push_back(now);
        }
        if self.causes.len() < MAX_CAUSES {
            self.causes.insert(cause, now);
        }
        Verdict::Accepted
    }
}

/// The trigger and its reason without numbers, which vary. Numbers within names stay.
fn cause(fired: &FiredTrigger) -> String {
    let mut cause = format!("{}: ", fired.name);
    let (mut in_number, mut in_name) = (false, false);
    for c in fired.why.chars() {
        let was_in_number = in_number;
        in_number = !in_name && (c.is_ascii_digit() || was_in_number && c == '.');
        match (in_number, was_in_number) {
            (true, true) => {}
            (true, false) => cause.push('#'),
            (false, _) => {
                cause.push(c);
                // A `-` begins a number, or continues a name.
                in_name = c.is_alphanumeric() || matches!(c, '_' | '/') || in_name && c == '-';
            }
        }
    }
    cause
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fired(name: &str, why: &str) -> FiredTrigger {
        FiredTrigger { name: name.into(), why: why.into(), at_ns: 0 }
    }

    #[test]
    fn accepts_cause_again_after_one_quiet_minute() {
        let (mut limit, start) = (RateLimit::default(), Instant::now());
        let mut at = |s, why: &str| {
            let now = start + Duration::from_secs(s);
            limit.check(&fired("log error", why), false, false, now)
        };
        assert_eq!(at(0, "over current: 17.2 A"), Verdict::Accepted);
        assert_eq!(at(30, "over current: 18 A"), Verdict::Repeated);
        assert_eq!(at(85, "over current: 9.1 A"), Verdict::Repeated, "it was not quiet");
        assert_eq!(at(86, "no answer"), Verdict::Accepted);
        assert_eq!(at(145, "over current: 9.1 A"), Verdict::Accepted);
    }

    #[test]
    fn keeps_numbers_in_names_as_part_of_cause() {
        let cause = |why| super::cause(&fired("death", why));
        assert_ne!(cause("node /motor_1 has died"), cause("node /motor_2 has died"));
        assert_ne!(cause("/cam1: no image"), cause("/cam2: no image"));
        assert_ne!(cause("/leg-1/knee is hot"), cause("/leg-2/knee is hot"));
        assert_eq!(cause("/cam1: 12 of 30 lost"), cause("/cam1: 7 of 31 lost"));
        assert_eq!(cause("torque -5.25 N m"), cause("torque -16.5 N m"));
    }

    #[test]
    fn limits_files_per_minute_except_requested_ones() {
        let (mut limit, start) = (RateLimit::default(), Instant::now());
        let mut at = |s, n: u8, is_open, is_call| {
            let name = char::from(b'a' + n).to_string();
            limit.check(&fired(&name, ""), is_open, is_call, start + Duration::from_secs(s))
        };
        for n in 0..3 {
            assert_eq!(at(u64::from(n), n, false, false), Verdict::Accepted);
        }
        assert_eq!(at(3, 3, true, false), Verdict::Accepted, "it extends the third file");
        assert_eq!(at(30, 4, false, false), Verdict::TooMany);
        assert_eq!(at(30, 5, false, true), Verdict::Accepted);
        assert_eq!(at(60, 4, false, false), Verdict::Accepted, "the first was a minute ago");
        assert_eq!(at(60, 6, false, false), Verdict::TooMany);
    }
}
