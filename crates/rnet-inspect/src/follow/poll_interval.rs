//! The poll interval of an observer of many topics, which publishers do not wake.
//!
//! docs/design/observers.md has the table.

use std::time::{Duration, Instant};

/// The longest interval: each wake-up costs as much as about 20 messages.
const MAX_INTERVAL: Duration = Duration::from_millis(5);
/// The longest interval in the first second of a new publisher, whose send rate is unknown.
const NEW_PUBLISHER_INTERVAL: Duration = Duration::from_millis(2);
const NEW_PUBLISHER_TIME: Duration = Duration::from_secs(1);
/// The interval is shorter if more than this share of a log would be unread at its end.
const MAX_FILL: f32 = 1.0 / 16.0;
/// The shortest interval, and the number of polls between two large messages of a publisher: without readers,
/// the memory of one is reused for the next.
const MIN_INTERVAL: Duration = Duration::from_micros(100);
const POLLS_PER_LARGE: u32 = 4;

/// The inputs that determine the interval.
pub struct PollInterval {
    last: Duration,
    /// The largest unread share of a log after the last interval.
    fill: f32,
    /// The shortest time between two large messages of a publisher, since the last scan and before it.
    large_every: [Option<Duration>; 2],
    /// When the last new publisher was found.
    joined: Option<Instant>,
}

impl Default for PollInterval {
    fn default() -> PollInterval {
        PollInterval { last: MIN_INTERVAL, fill: 0.0, large_every: [None; 2], joined: None }
    }
}

impl PollInterval {
    /// A message was found in a log with this unread share.
    pub fn message_found(&mut self, fill: f32) {
        self.fill = self.fill.max(fill);
    }

    /// A large message was found, this long after the previous one.
    pub fn large_message_found(&mut self, every: Option<Duration>) {
        let shortest = &mut self.large_every[0];
        *shortest = (*shortest).into_iter().chain(every).min();
    }

    /// A new publisher was found.
    pub fn publisher_found(&mut self) {
        self.joined = Some(Instant::now());
    }

    /// The domain was scanned.
    pub fn domain_scanned(&mut self) {
        self.large_every = [None, self.large_every[0]];
    }

    /// The next interval: shorter if large messages follow each other closely or logs fill fast, and at most
    /// twice the last one.
    pub fn next(&mut self) -> Duration {
        let is_new = self.joined.is_some_and(|at| at.elapsed() < NEW_PUBLISHER_TIME);
        let longest = if is_new { NEW_PUBLISHER_INTERVAL } else { MAX_INTERVAL };
        let by_fill = self.last.mul_f32((MAX_FILL / std::mem::take(&mut self.fill)).min(2.0));
        let large_every = self.large_every.iter().flatten().min();
        let by_large = large_every.map_or(longest, |every| *every / POLLS_PER_LARGE);
        self.last = by_fill.min(by_large).clamp(MIN_INTERVAL, longest);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_net_is_looked_at_rarely_and_a_log_that_fills_often() {
        let mut pause = PollInterval::default();
        let doubled: Vec<Duration> = (0..8).map(|_| pause.next()).collect();
        assert!(doubled.is_sorted() && doubled[0] == 2 * MIN_INTERVAL, "{doubled:?}");
        assert_eq!(doubled[7], MAX_INTERVAL);
        // Half a log in 5 ms: one eighth of that time for one sixteenth of the log.
        pause.message_found(0.25);
        pause.message_found(0.5);
        assert_eq!(pause.next(), MAX_INTERVAL / 8);
        // All of it, and more.
        (0..8).for_each(|_| {
            pause.message_found(1.0);
            pause.next();
        });
        assert_eq!(pause.next(), 2 * MIN_INTERVAL);
    }

    #[test]
    fn large_messages_are_looked_for_four_times_from_one_to_the_next() {
        let mut pause = PollInterval { last: MAX_INTERVAL, ..PollInterval::default() };
        pause.large_message_found(None);
        assert_eq!(pause.next(), MAX_INTERVAL);
        pause.large_message_found(Some(Duration::from_millis(8)));
        pause.large_message_found(Some(Duration::from_millis(12)));
        assert_eq!(pause.next(), Duration::from_millis(2));
        // It counts until the scan after the next.
        pause.domain_scanned();
        assert_eq!(pause.next(), Duration::from_millis(2));
        pause.domain_scanned();
        assert!(pause.next() > Duration::from_millis(2));
    }

    #[test]
    fn a_publisher_that_is_new_is_looked_at_more_often() {
        let mut pause = PollInterval { last: MAX_INTERVAL, ..PollInterval::default() };
        pause.publisher_found();
        assert_eq!(pause.next(), NEW_PUBLISHER_INTERVAL);
        pause.joined = Instant::now().checked_sub(NEW_PUBLISHER_TIME);
        assert_eq!(pause.next(), 2 * NEW_PUBLISHER_INTERVAL);
    }
}
