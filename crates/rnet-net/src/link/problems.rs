//! What has gone wrong, for the status of the link. It is forgotten a while after it happened last: whoever looks is told
//! of what is wrong, and not of what was.

use std::time::{Duration, Instant};

use rnet::Error;

/// Problems that are told.
const MAX_PROBLEMS: usize = 32;
/// For how long one is told after it happened last.
const SHOWN_FOR: Duration = Duration::from_secs(600);
/// Longest word of what went wrong, in characters: it may hold what another host has said.
const MAX_PROBLEM_CHARS: usize = 400;

struct Problem {
    text: String,
    /// When it happened last; `None` for what is so until somebody says that it is over.
    last: Option<Instant>,
}

/// What has gone wrong, in words.
#[derive(Default)]
pub struct Problems(Vec<Problem>);

fn text_of(error: &Error) -> String {
    error.to_string().chars().take(MAX_PROBLEM_CHARS).collect()
}

impl Problems {
    /// It has happened now. What is told already is not told twice.
    pub fn add(&mut self, error: &Error, now: Instant) {
        self.keep(text_of(error), Some(now));
    }

    /// It is so from now on until [`Problems::remove_persistent`], and nobody tells of it again.
    pub fn add_persistent(&mut self, error: &Error) {
        self.keep(text_of(error), None);
    }

    /// What was so from [`Problems::add_persistent`] on is over.
    pub fn remove_persistent(&mut self, error: &Error) {
        let text = text_of(error);
        self.0.retain(|problem| problem.last.is_some() || problem.text != text);
    }

    /// It is so still, if it is told.
    pub fn refresh(&mut self, error: &Error, now: Instant) {
        let text = text_of(error);
        if let Some(problem) = self.0.iter_mut().find(|problem| problem.text == text) {
            problem.last = problem.last.map(|_| now);
        }
    }

    /// Forgets what has not happened for long.
    pub fn expire(&mut self, now: Instant) {
        let is_over = |last: Instant| now.saturating_duration_since(last) >= SHOWN_FOR;
        self.0.retain(|problem| !problem.last.is_some_and(is_over));
    }

    /// What is told, in the order in which it was told first.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|problem| problem.text.as_str())
    }

    fn keep(&mut self, text: String, last: Option<Instant>) {
        if let Some(problem) = self.0.iter_mut().find(|problem| problem.text == text) {
            // What lasts goes on to.
            problem.last = problem.last.and(last);
            return;
        }
        if self.0.len() == MAX_PROBLEMS {
            let oldest = (0..MAX_PROBLEMS).min_by_key(|at| {
                let last = self.0[*at].last;
                (last.is_none(), last)
            });
            oldest.map(|at| self.0.remove(at));
        }
        self.0.push(Problem { text, last });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn problem(n: usize) -> Error {
        Error::BadValue { what: format!("value {n}"), why: "x".repeat(2 * MAX_PROBLEM_CHARS) }
    }

    fn told(problems: &Problems) -> Vec<usize> {
        let number = |text: &str| text.split(['"', ' ', ':']).find_map(|word| word.parse().ok());
        problems.texts().map(|text| number(text).expect(text)).collect()
    }

    #[test]
    fn a_problem_is_forgotten_a_while_after_it_happened_last() {
        let (mut problems, begun) = (Problems::default(), Instant::now());
        problems.add(&problem(1), begun);
        problems.add(&problem(2), begun);
        problems.add_persistent(&problem(3));
        problems.add(&problem(1), begun + SECOND);
        problems.refresh(&problem(4), begun + SECOND);
        assert_eq!(told(&problems), [1, 2, 3], "once each, and none is told by being renewed");
        assert!(problems.texts().all(|text| text.chars().count() == MAX_PROBLEM_CHARS));
        problems.expire(begun + SHOWN_FOR - SECOND);
        assert_eq!(told(&problems), [1, 2, 3]);
        problems.expire(begun + SHOWN_FOR);
        assert_eq!(told(&problems), [1, 3]);
        problems.refresh(&problem(1), begun + SHOWN_FOR);
        problems.refresh(&problem(3), begun + SHOWN_FOR);
        problems.expire(begun + 2 * SHOWN_FOR - SECOND);
        assert_eq!(told(&problems), [1, 3]);
        problems.expire(begun + 2 * SHOWN_FOR);
        assert_eq!(told(&problems), [3]);
        problems.add(&problem(2), begun + 2 * SHOWN_FOR);
        problems.remove_persistent(&problem(2));
        assert_eq!(told(&problems), [3, 2], "it did not last");
        problems.remove_persistent(&problem(3));
        assert_eq!(told(&problems), [2]);
    }

    #[test]
    fn of_too_many_the_one_that_happened_longest_ago_goes() {
        let (mut problems, begun) = (Problems::default(), Instant::now());
        problems.add_persistent(&problem(0));
        for n in 1..MAX_PROBLEMS {
            problems.add(&problem(n), begun + SECOND);
        }
        problems.add(&problem(1), begun + 2 * SECOND);
        problems.add(&problem(2), begun + 2 * SECOND);
        problems.add(&problem(MAX_PROBLEMS), begun + 3 * SECOND);
        let left: Vec<usize> = (0..=MAX_PROBLEMS).filter(|n| *n != 3).collect();
        assert_eq!(told(&problems), left);
    }
}
