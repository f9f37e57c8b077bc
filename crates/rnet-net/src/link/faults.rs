//! What has gone wrong, for the status of the link. It is forgotten a while after it happened last: whoever looks is told
//! of what is wrong, and not of what was.

use std::time::{Duration, Instant};

use rnet::Error;

/// Faults that are told.
const MAX_FAULTS: usize = 32;
/// For how long one is told after it happened last.
const TOLD: Duration = Duration::from_secs(600);
/// Longest word of what went wrong, in characters: it may hold what another host has said.
const MAX_FAULT_CHARS: usize = 400;

struct Fault {
    text: String,
    /// When it happened last; `None` for what is so until somebody says that it is over.
    last: Option<Instant>,
}

/// What has gone wrong, in words.
#[derive(Default)]
pub struct Faults(Vec<Fault>);

fn text_of(error: &Error) -> String {
    error.to_string().chars().take(MAX_FAULT_CHARS).collect()
}

impl Faults {
    /// It has happened now. What is told already is not told twice.
    pub fn add(&mut self, error: &Error, now: Instant) {
        self.keep(text_of(error), Some(now));
    }

    /// It is so from now on until [`Faults::end_lasting`], and nobody tells of it again.
    pub fn add_lasting(&mut self, error: &Error) {
        self.keep(text_of(error), None);
    }

    /// What was so from [`Faults::add_lasting`] on is over.
    pub fn end_lasting(&mut self, error: &Error) {
        let text = text_of(error);
        self.0.retain(|fault| fault.last.is_some() || fault.text != text);
    }

    /// It is so still, if it is told.
    pub fn renew(&mut self, error: &Error, now: Instant) {
        let text = text_of(error);
        if let Some(fault) = self.0.iter_mut().find(|fault| fault.text == text) {
            fault.last = fault.last.map(|_| now);
        }
    }

    /// Forgets what has not happened for long.
    pub fn forget(&mut self, now: Instant) {
        let is_over = |last: Instant| now.saturating_duration_since(last) >= TOLD;
        self.0.retain(|fault| !fault.last.is_some_and(is_over));
    }

    /// What is told, in the order in which it was told first.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|fault| fault.text.as_str())
    }

    fn keep(&mut self, text: String, last: Option<Instant>) {
        if let Some(fault) = self.0.iter_mut().find(|fault| fault.text == text) {
            // What lasts goes on to.
            fault.last = fault.last.and(last);
            return;
        }
        if self.0.len() == MAX_FAULTS {
            let oldest = (0..MAX_FAULTS).min_by_key(|at| {
                let last = self.0[*at].last;
                (last.is_none(), last)
            });
            oldest.map(|at| self.0.remove(at));
        }
        self.0.push(Fault { text, last });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn fault(n: usize) -> Error {
        Error::BadValue { what: format!("value {n}"), why: "x".repeat(2 * MAX_FAULT_CHARS) }
    }

    fn told(faults: &Faults) -> Vec<usize> {
        let number = |text: &str| text.split(['"', ' ', ':']).find_map(|word| word.parse().ok());
        faults.texts().map(|text| number(text).expect(text)).collect()
    }

    #[test]
    fn a_fault_is_forgotten_a_while_after_it_happened_last() {
        let (mut faults, begun) = (Faults::default(), Instant::now());
        faults.add(&fault(1), begun);
        faults.add(&fault(2), begun);
        faults.add_lasting(&fault(3));
        faults.add(&fault(1), begun + SECOND);
        faults.renew(&fault(4), begun + SECOND);
        assert_eq!(told(&faults), [1, 2, 3], "once each, and none is told by being renewed");
        assert!(faults.texts().all(|text| text.chars().count() == MAX_FAULT_CHARS));
        faults.forget(begun + TOLD - SECOND);
        assert_eq!(told(&faults), [1, 2, 3]);
        faults.forget(begun + TOLD);
        assert_eq!(told(&faults), [1, 3]);
        faults.renew(&fault(1), begun + TOLD);
        faults.renew(&fault(3), begun + TOLD);
        faults.forget(begun + 2 * TOLD - SECOND);
        assert_eq!(told(&faults), [1, 3]);
        faults.forget(begun + 2 * TOLD);
        assert_eq!(told(&faults), [3]);
        faults.add(&fault(2), begun + 2 * TOLD);
        faults.end_lasting(&fault(2));
        assert_eq!(told(&faults), [3, 2], "it did not last");
        faults.end_lasting(&fault(3));
        assert_eq!(told(&faults), [2]);
    }

    #[test]
    fn of_too_many_the_one_that_happened_longest_ago_goes() {
        let (mut faults, begun) = (Faults::default(), Instant::now());
        faults.add_lasting(&fault(0));
        for n in 1..MAX_FAULTS {
            faults.add(&fault(n), begun + SECOND);
        }
        faults.add(&fault(1), begun + 2 * SECOND);
        faults.add(&fault(2), begun + 2 * SECOND);
        faults.add(&fault(MAX_FAULTS), begun + 3 * SECOND);
        let left: Vec<usize> = (0..=MAX_FAULTS).filter(|n| *n != 3).collect();
        assert_eq!(told(&faults), left);
    }
}
