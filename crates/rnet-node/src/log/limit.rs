//! Rate limits of log lines, per source location and per node.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::LogLevel;

/// Lines of one location per second, and burst.
pub(super) const MAX_LINES_PER_S_PER_LOCATION: u32 = 100;
/// Lines of a node per second, and burst.
pub(super) const MAX_LINES_PER_S_PER_NODE: u32 = 1_000;
/// Locations with a separate limit. New locations replace silent ones.
const MAX_LOCATIONS: usize = 1_024;
/// Replaces the file name if there are too many locations.
const OTHERS: &str = "other places";
/// How often suppressed lines are reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SourceLocation {
    pub file: String,
    pub line: u32,
}

/// Lines of a location suppressed since its last report.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SuppressedLines {
    pub location: SourceLocation,
    pub level: LogLevel,
    pub count: u64,
}

/// Token bucket, refilled with time.
#[derive(Debug)]
struct TokenBucket {
    tokens: f64,
    filled: Instant,
}

impl TokenBucket {
    fn new(per_s: u32, now: Instant) -> TokenBucket {
        TokenBucket { tokens: f64::from(per_s), filled: now }
    }

    fn fill(&mut self, per_s: u32, now: Instant) {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + passed * f64::from(per_s)).min(f64::from(per_s));
        self.filled = now;
    }
}

#[derive(Debug)]
struct LocationCount {
    bucket: TokenBucket,
    suppressed_count: u64,
    level: LogLevel,
}

/// The rate limiter of a node.
#[derive(Debug)]
pub(super) struct Limiter {
    node: TokenBucket,
    locations: HashMap<SourceLocation, LocationCount>,
    /// When suppressed lines are reported, if any.
    report_at: Option<Instant>,
}

impl Limiter {
    pub fn new(now: Instant) -> Limiter {
        Limiter {
            node: TokenBucket::new(MAX_LINES_PER_S_PER_NODE, now),
            locations: HashMap::new(),
            report_at: None,
        }
    }

    /// Whether a line may be logged.
    pub fn admit(&mut self, location: &SourceLocation, level: LogLevel, now: Instant) -> bool {
        self.node.fill(MAX_LINES_PER_S_PER_NODE, now);
        if !self.locations.contains_key(location) && self.locations.len() >= MAX_LOCATIONS - 1 {
            self.forget_silent(now);
        }
        // If all locations are busy, unknown ones share one.
        let is_one_more =
            !self.locations.contains_key(location) && self.locations.len() >= MAX_LOCATIONS - 1;
        let location = if is_one_more {
            SourceLocation { file: OTHERS.to_owned(), line: 0 }
        } else {
            location.clone()
        };
        let new = || LocationCount {
            bucket: TokenBucket::new(MAX_LINES_PER_S_PER_LOCATION, now),
            suppressed_count: 0,
            level,
        };
        let count = self.locations.entry(location).or_insert_with(new);
        count.bucket.fill(MAX_LINES_PER_S_PER_LOCATION, now);
        if count.bucket.tokens >= 1.0 && self.node.tokens >= 1.0 {
            count.bucket.tokens -= 1.0;
            self.node.tokens -= 1.0;
            return true;
        }
        count.suppressed_count += 1;
        count.level = level;
        self.report_at.get_or_insert(now + REPORT_INTERVAL);
        false
    }

    /// The suppressed lines, once a report is due.
    pub fn take_due(&mut self, now: Instant) -> Vec<SuppressedLines> {
        match self.report_at {
            Some(at) if now >= at => self.take_all(),
            _ => Vec::new(),
        }
    }

    /// All suppressed lines that were not reported.
    pub fn take_all(&mut self) -> Vec<SuppressedLines> {
        if self.report_at.take().is_none() {
            return Vec::new();
        }
        let held = self.locations.iter_mut().filter(|(_, count)| count.suppressed_count > 0);
        let held = held.map(|(location, count)| SuppressedLines {
            location: location.clone(),
            level: count.level,
            count: std::mem::take(&mut count.suppressed_count),
        });
        held.collect()
    }

    fn forget_silent(&mut self, now: Instant) {
        self.locations.retain(|_, count| {
            count.bucket.fill(MAX_LINES_PER_S_PER_LOCATION, now);
            count.suppressed_count > 0
                || count.bucket.tokens < f64::from(MAX_LINES_PER_S_PER_LOCATION)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(line: u32) -> SourceLocation {
        SourceLocation { file: "arm.rs".to_owned(), line }
    }

    fn admitted(limiter: &mut Limiter, location: &SourceLocation, lines: u32, now: Instant) -> u32 {
        (0..lines).map(|_| u32::from(limiter.admit(location, LogLevel::Info, now))).sum()
    }

    #[test]
    fn location_may_write_burst_of_100_lines_and_100_per_second() {
        let begun = Instant::now();
        let mut limiter = Limiter::new(begun);
        assert_eq!(admitted(&mut limiter, &location(1), 150, begun), 100);
        assert_eq!(admitted(&mut limiter, &location(2), 10, begun), 10);
        let later = begun + Duration::from_millis(500);
        assert_eq!(admitted(&mut limiter, &location(1), 80, later), 50);
        let held =
            |count| vec![SuppressedLines { location: location(1), level: LogLevel::Info, count }];
        assert_eq!(limiter.take_due(later), vec![]);
        assert_eq!(limiter.take_due(begun + REPORT_INTERVAL), held(80));
        assert_eq!(limiter.take_due(begun + 2 * REPORT_INTERVAL), vec![]);
        assert_eq!(admitted(&mut limiter, &location(1), 101, begun + 9 * REPORT_INTERVAL), 100);
        assert_eq!(limiter.take_all(), held(1));
    }

    #[test]
    fn locations_of_node_share_1000_lines_per_second() {
        let begun = Instant::now();
        let mut limiter = Limiter::new(begun);
        let all: u32 = (0..20).map(|at| admitted(&mut limiter, &location(at), 100, begun)).sum();
        assert_eq!(all, MAX_LINES_PER_S_PER_NODE);
        assert_eq!(limiter.take_all().iter().map(|held| held.count).sum::<u64>(), 1_000);
    }

    #[test]
    fn locations_are_bounded_and_replace_silent_ones() {
        let begun = Instant::now();
        let mut limiter = Limiter::new(begun);
        for at in 0..5_000 {
            limiter.admit(&location(at), LogLevel::Info, begun);
        }
        assert_eq!(limiter.locations.len(), MAX_LOCATIONS);
        let held = limiter.take_all();
        assert_eq!(
            held.iter().map(|held| held.count).sum::<u64>(),
            5_000 - 1_000,
            "each line is counted"
        );
        assert!(held.iter().any(|held| held.location.file == OTHERS));
        for at in 0..100 {
            assert!(!limiter.admit(&location(at), LogLevel::Info, begun));
        }
        let later = begun + Duration::from_secs(2);
        limiter.admit(&location(9_000), LogLevel::Info, later);
        let held = limiter.locations.values().filter(|count| count.suppressed_count > 0).count();
        assert_eq!((limiter.locations.len(), held), (101, 100), "unreported lines are kept");
    }
}
