//! Rates of the last messages of a topic.

use std::collections::VecDeque;

/// How far apart points in time lie.
#[derive(Debug, PartialEq)]
pub struct IntervalStats {
    /// Intervals per second.
    pub rate_hz: f64,
    /// Shortest interval.
    pub min_s: f64,
    /// Longest interval.
    pub max_s: f64,
    /// Standard deviation of the intervals.
    pub std_dev_s: f64,
    /// Intervals.
    pub count: usize,
}

impl IntervalStats {
    /// `None` for fewer than two points, or if all are the same.
    pub fn of(times_ns: impl Iterator<Item = u64>) -> Option<IntervalStats> {
        let mut times: Vec<u64> = times_ns.collect();
        // Order holds per publisher only.
        times.sort_unstable();
        let span_ns = times.last()? - times.first()?;
        let count = times.len() - 1;
        if count == 0 || span_ns == 0 {
            return None;
        }
        let gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e9).collect();
        let mean = span_ns as f64 / 1e9 / count as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / count as f64;
        Some(IntervalStats {
            rate_hz: 1.0 / mean,
            min_s: gaps.iter().copied().fold(f64::INFINITY, f64::min),
            max_s: gaps.iter().copied().fold(0.0, f64::max),
            std_dev_s: variance.sqrt(),
            count,
        })
    }
}

/// What the messages of a window take.
pub struct BandwidthStats {
    /// Bytes per second, until now.
    pub bytes_per_s: f64,
    /// Mean length of a message.
    pub mean: f64,
    /// Shortest message.
    pub min: usize,
    /// Longest message.
    pub max: usize,
    /// Messages of the window.
    pub count: usize,
}

impl BandwidthStats {
    /// Of the times of sending, in ns, and the lengths of messages; `None` without messages.
    pub fn of(window: &VecDeque<(u64, usize)>, now_ns: u64) -> Option<BandwidthStats> {
        let first_ns = window.iter().map(|(at, _)| *at).min()?;
        // To now and not to the last message: a topic that went quiet carries less and less.
        let span_s = now_ns.saturating_sub(first_ns) as f64 / 1e9;
        let lens = || window.iter().map(|(_, len)| *len);
        let (count, total) = (window.len(), lens().sum::<usize>() as f64);
        let (min, max) = (lens().min().unwrap_or(0), lens().max().unwrap_or(0));
        let bytes_per_s = total / span_s.max(1e-9);
        Some(BandwidthStats { bytes_per_s, mean: total / count as f64, min, max, count })
    }
}

#[cfg(test)]
mod tests {
    use super::IntervalStats;

    #[test]
    fn spreads() {
        assert_eq!(IntervalStats::of([].into_iter()), None);
        assert_eq!(IntervalStats::of([5].into_iter()), None);
        assert_eq!(IntervalStats::of([5, 5].into_iter()), None);
        let even = IntervalStats::of([3_000_000, 1_000_000, 2_000_000].into_iter()).unwrap();
        assert!((even.rate_hz - 1000.0).abs() < 1e-9 && even.std_dev_s < 1e-12);
        let uneven = IntervalStats::of([0, 1_000_000_000, 4_000_000_000].into_iter()).unwrap();
        assert_eq!((uneven.rate_hz, uneven.min_s, uneven.max_s), (0.5, 1.0, 3.0));
        assert_eq!((uneven.std_dev_s, uneven.count), (1.0, 2));
    }
}
