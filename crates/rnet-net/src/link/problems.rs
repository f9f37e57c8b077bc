//! The latest problems, for the status of the link. A problem is removed a while after its last occurrence:
//! the status reports current problems.

use std::time::{Duration, Instant};

use rnet::Error;

/// The most problems that are reported.
const MAX_PROBLEMS: usize = 32;
/// How long a problem is reported after its last occurrence.
const SHOWN_FOR: Duration = Duration::from_secs(600);
/// Longest text of a problem, in characters: it may contain text of another host.
const MAX_PROBLEM_CHARS: usize = 400;

struct Problem {
    text: String,
    /// Its last occurrence; `None` for a persistent problem.
    last: Option<Instant>,
}

/// The problems, as text.
#[derive(Default)]
pub struct Problems(Vec<Problem>);

fn text_of(error: &Error) -> String {
    error.to_string().chars().take(MAX_PROBLEM_CHARS).collect()
}

impl Problems {
    /// Adds a problem that occurred now. A known problem is not reported twice.
    pub fn add(&mut self, error: &Error, now: Instant) {
        self.keep(text_of(error), Some(now));
    }

    /// The same for a text. Returns whether the problem is new.
    pub fn add_text(&mut self, text: String, now: Instant) -> bool {
        self.keep(text.chars().take(MAX_PROBLEM_CHARS).collect(), Some(now))
    }

    /// Adds a problem that persists until [`Problems::remove_persistent`].
    pub fn add_persistent(&mut self, error: &Error) {
        self.keep(text_of(error), None);
    }

    /// Removes a problem added by [`Problems::add_persistent`].
    pub fn remove_persistent(&mut self, error: &Error) {
        let text = text_of(error);
        self.0.retain(|problem| problem.last.is_some() || problem.text != text);
    }

    /// Records that a known problem still exists.
    pub fn refresh(&mut self, error: &Error, now: Instant) {
        let text = text_of(error);
        if let Some(problem) = self.0.iter_mut().find(|problem| problem.text == text) {
            problem.last = problem.last.map(|_| now);
        }
    }

    /// Removes problems that have not occurred for long.
    pub fn expire(&mut self, now: Instant) {
        let is_over = |last: Instant| now.saturating_duration_since(last) >= SHOWN_FOR;
        self.0.retain(|problem| !problem.last.is_some_and(is_over));
    }

    /// The texts, in the order of their first report.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|problem| problem.text.as_str())
    }

    /// Returns whether the problem is new.
    fn keep(&mut self, text: String, last: Option<Instant>) -> bool {
        if let Some(problem) = self.0.iter_mut().find(|problem| problem.text == text) {
            // A persistent problem stays persistent.
            problem.last = problem.last.and(last);
            return false;
        }
        if self.0.len() == MAX_PROBLEMS {
            let oldest = (0..MAX_PROBLEMS).min_by_key(|at| {
                let last = self.0[*at].last;
                (last.is_none(), last)
            });
            oldest.map(|at| self.0.remove(at));
        }
        self.0.push(Problem { text, last });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn problem(n: usize) -> Error {
        Error::BadValue { what: format!("value {n}"), why: "x".repeat(2 * MAX_PROBLEM_CHARS) }
    }

    fn reported(problems: &Problems) -> Vec<usize> {
        let number = |text: &str| text.split(['"', ' ', ':']).find_map(|word| word.parse().ok());
        problems.texts().map(|text| number(text).expect(text)).collect()
    }

    #[test]
    fn problem_expires_after_its_last_occurrence() {
        let (mut problems, begun) = (Problems::default(), Instant::now());
        problems.add(&problem(1), begun);
        problems.add(&problem(2), begun);
        problems.add_persistent(&problem(3));
        problems.add(&problem(1), begun + SECOND);
        problems.refresh(&problem(4), begun + SECOND);
        assert_eq!(reported(&problems), [1, 2, 3], "each once, and a refresh adds none");
        assert!(problems.texts().all(|text| text.chars().count() == MAX_PROBLEM_CHARS));
        problems.expire(begun + SHOWN_FOR - SECOND);
        assert_eq!(reported(&problems), [1, 2, 3]);
        problems.expire(begun + SHOWN_FOR);
        assert_eq!(reported(&problems), [1, 3]);
        problems.refresh(&problem(1), begun + SHOWN_FOR);
        problems.refresh(&problem(3), begun + SHOWN_FOR);
        problems.expire(begun + 2 * SHOWN_FOR - SECOND);
        assert_eq!(reported(&problems), [1, 3]);
        problems.expire(begun + 2 * SHOWN_FOR);
        assert_eq!(reported(&problems), [3]);
        problems.add(&problem(2), begun + 2 * SHOWN_FOR);
        problems.remove_persistent(&problem(2));
        assert_eq!(reported(&problems), [3, 2], "refreshing an expired problem has no effect");
        problems.remove_persistent(&problem(3));
        assert_eq!(reported(&problems), [2]);
    }

    #[test]
    fn oldest_problem_is_dropped_at_the_limit() {
        let (mut problems, begun) = (Problems::default(), Instant::now());
        problems.add_persistent(&problem(0));
        for n in 1..MAX_PROBLEMS {
            problems.add(&problem(n), begun + SECOND);
        }
        problems.add(&problem(1), begun + 2 * SECOND);
        problems.add(&problem(2), begun + 2 * SECOND);
        problems.add(&problem(MAX_PROBLEMS), begun + 3 * SECOND);
        let left: Vec<usize> = (0..=MAX_PROBLEMS).filter(|n| *n != 3).collect();
        assert_eq!(reported(&problems), left);
    }
}
