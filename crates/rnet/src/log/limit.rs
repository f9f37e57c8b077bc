//! How many lines one place in a program, and one node, may write.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::LogLevel;

/// Lines of one place per second, and at once.
pub(super) const LINES_PER_S_OF_A_PLACE: u32 = 100;
/// Lines of a node per second, and at once.
pub(super) const LINES_PER_S_OF_A_NODE: u32 = 1_000;
/// Places that are told apart. Those that have been silent make room for others.
const MAX_PLACES: usize = 1_024;
/// Named in place of a file where there are more places than are told apart.
const OTHERS: &str = "other places";
/// How often lines that were held back are reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub file: String,
    pub line: u32,
}

/// Lines of a place that were held back since it was reported last.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HeldBack {
    pub place: Place,
    pub level: LogLevel,
    pub count: u64,
}

/// Tokens that come back with time.
#[derive(Debug)]
struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn new(per_s: u32, now: Instant) -> Bucket {
        Bucket { tokens: f64::from(per_s), filled: now }
    }

    fn fill(&mut self, per_s: u32, now: Instant) {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + passed * f64::from(per_s)).min(f64::from(per_s));
        self.filled = now;
    }
}

#[derive(Debug)]
struct Count {
    bucket: Bucket,
    held_back: u64,
    level: LogLevel,
}

/// The counts of a node.
#[derive(Debug)]
pub(super) struct Limiter {
    node: Bucket,
    places: HashMap<Place, Count>,
    /// When lines that were held back are reported, if there are any.
    report_at: Option<Instant>,
}

impl Limiter {
    pub fn new(now: Instant) -> Limiter {
        Limiter {
            node: Bucket::new(LINES_PER_S_OF_A_NODE, now),
            places: HashMap::new(),
            report_at: None,
        }
    }

    /// Whether a line may go out.
    pub fn admit(&mut self, place: &Place, level: LogLevel, now: Instant) -> bool {
        self.node.fill(LINES_PER_S_OF_A_NODE, now);
        if !self.places.contains_key(place) && self.places.len() >= MAX_PLACES - 1 {
            self.forget_silent(now);
        }
        // Where all are busy, those that are not known share one.
        let is_one_more = !self.places.contains_key(place) && self.places.len() >= MAX_PLACES - 1;
        let place =
            if is_one_more { Place { file: OTHERS.to_owned(), line: 0 } } else { place.clone() };
        let new =
            || Count { bucket: Bucket::new(LINES_PER_S_OF_A_PLACE, now), held_back: 0, level };
        let count = self.places.entry(place).or_insert_with(new);
        count.bucket.fill(LINES_PER_S_OF_A_PLACE, now);
        if count.bucket.tokens >= 1.0 && self.node.tokens >= 1.0 {
            count.bucket.tokens -= 1.0;
            self.node.tokens -= 1.0;
            return true;
        }
        count.held_back += 1;
        count.level = level;
        self.report_at.get_or_insert(now + REPORT_INTERVAL);
        false
    }

    /// What was held back, once a report is due.
    pub fn due(&mut self, now: Instant) -> Vec<HeldBack> {
        match self.report_at {
            Some(at) if now >= at => self.all(),
            _ => Vec::new(),
        }
    }

    /// All that was held back and not reported.
    pub fn all(&mut self) -> Vec<HeldBack> {
        if self.report_at.take().is_none() {
            return Vec::new();
        }
        let held = self.places.iter_mut().filter(|(_, count)| count.held_back > 0);
        let held = held.map(|(place, count)| HeldBack {
            place: place.clone(),
            level: count.level,
            count: std::mem::take(&mut count.held_back),
        });
        held.collect()
    }

    fn forget_silent(&mut self, now: Instant) {
        self.places.retain(|_, count| {
            count.bucket.fill(LINES_PER_S_OF_A_PLACE, now);
            count.held_back > 0 || count.bucket.tokens < f64::from(LINES_PER_S_OF_A_PLACE)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: u32) -> Place {
        Place { file: "arm.rs".to_owned(), line }
    }

    fn admitted(limiter: &mut Limiter, place: &Place, lines: u32, now: Instant) -> u32 {
        (0..lines).map(|_| u32::from(limiter.admit(place, LogLevel::Info, now))).sum()
    }

    #[test]
    fn a_place_may_write_a_hundred_lines_at_once_and_a_hundred_in_each_second() {
        let begun = Instant::now();
        let mut limiter = Limiter::new(begun);
        assert_eq!(admitted(&mut limiter, &place(1), 150, begun), 100);
        assert_eq!(admitted(&mut limiter, &place(2), 10, begun), 10);
        let later = begun + Duration::from_millis(500);
        assert_eq!(admitted(&mut limiter, &place(1), 80, later), 50);
        let held = |count| vec![HeldBack { place: place(1), level: LogLevel::Info, count }];
        assert_eq!(limiter.due(later), vec![]);
        assert_eq!(limiter.due(begun + REPORT_INTERVAL), held(80));
        assert_eq!(limiter.due(begun + 2 * REPORT_INTERVAL), vec![]);
        assert_eq!(admitted(&mut limiter, &place(1), 101, begun + 9 * REPORT_INTERVAL), 100);
        assert_eq!(limiter.all(), held(1));
    }

    #[test]
    fn all_places_of_a_node_share_a_thousand() {
        let begun = Instant::now();
        let mut limiter = Limiter::new(begun);
        let all: u32 = (0..20).map(|at| admitted(&mut limiter, &place(at), 100, begun)).sum();
        assert_eq!(all, LINES_PER_S_OF_A_NODE);
        assert_eq!(limiter.all().iter().map(|held| held.count).sum::<u64>(), 1_000);
    }

    #[test]
    fn places_are_bounded_and_silent_ones_make_room() {
        let begun = Instant::now();
        let mut limiter = Limiter::new(begun);
        for at in 0..5_000 {
            limiter.admit(&place(at), LogLevel::Info, begun);
        }
        assert_eq!(limiter.places.len(), MAX_PLACES);
        let held = limiter.all();
        assert_eq!(
            held.iter().map(|held| held.count).sum::<u64>(),
            5_000 - 1_000,
            "each is counted"
        );
        assert!(held.iter().any(|held| held.place.file == OTHERS));
        for at in 0..100 {
            assert!(!limiter.admit(&place(at), LogLevel::Info, begun));
        }
        let later = begun + Duration::from_secs(2);
        limiter.admit(&place(9_000), LogLevel::Info, later);
        let held = limiter.places.values().filter(|count| count.held_back > 0).count();
        assert_eq!((limiter.places.len(), held), (101, 100), "what is not reported is kept");
    }
}
