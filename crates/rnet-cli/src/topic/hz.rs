//! `rnet topic hz`: the rate of a topic.
//!
//! Reckoned from the time stamps that publishers put on their messages, so it is the rate at
//! which they were sent, whatever the observer did meanwhile.

use std::collections::VecDeque;

use rnet::inspect::Heard;
use serde_json::json;

use super::listen::{Go, Listener, listen};
use crate::args::WatchArgs;
use crate::context::Context;
use crate::failure::Outcome;

const DEFAULT_WINDOW: u32 = 10_000;

pub fn run(context: &mut Context, args: WatchArgs) -> Outcome {
    let window = args.window.unwrap_or(DEFAULT_WINDOW) as usize;
    let mut hz = Hz { topic: args.topic.to_string(), window, wanted: args.count, ..Hz::default() };
    listen(context, args.topic.as_str(), false, args.timeout, &mut hz)
}

#[derive(Default)]
struct Hz {
    topic: String,
    window: usize,
    wanted: Option<u64>,
    /// When the messages of the window were sent, in ns.
    sent_ns: VecDeque<u64>,
    seen: u64,
    /// `seen` at the last report.
    reported: u64,
    reports: u64,
}

impl Listener for Hz {
    fn message(&mut self, _: &mut Context, heard: &Heard<'_>, _: &[u8]) -> Outcome<Go> {
        if self.sent_ns.len() > self.window {
            self.sent_ns.pop_front();
        }
        self.sent_ns.push_back(heard.stamp.sent_ns);
        self.seen += 1;
        Ok(Go::On)
    }

    fn second(&mut self, context: &mut Context) -> Outcome<Go> {
        if self.seen == self.reported {
            if self.seen > 0 {
                context.say(format_args!("no new messages"));
            }
            return Ok(Go::On);
        }
        self.report(context)?;
        Ok(if Some(self.reports) == self.wanted { Go::Enough } else { Go::On })
    }

    fn finish(&mut self, context: &mut Context) -> Outcome {
        if self.seen > self.reported { self.report(context) } else { Ok(()) }
    }

    fn satisfied(&self) -> bool {
        self.seen > 0
    }
}

impl Hz {
    fn report(&mut self, context: &mut Context) -> Outcome {
        self.reported = self.seen;
        let Some(spread) = Spread::of(self.sent_ns.iter().copied()) else { return Ok(()) };
        self.reports += 1;
        let Spread { rate_hz, min_s, max_s, std_dev_s, count } = spread;
        if context.json() {
            return context.json_line(&json!({
                "topic": self.topic,
                "rate_hz": rate_hz,
                "min_s": min_s,
                "max_s": max_s,
                "std_dev_s": std_dev_s,
                "window": count,
                "messages": self.seen,
            }));
        }
        context.line(format_args!("average rate: {rate_hz:.3}"))?;
        context.line(format_args!(
            "\tmin: {min_s:.6}s max: {max_s:.6}s std dev: {std_dev_s:.6}s window: {count}"
        ))
    }
}

/// How far apart points in time lie.
#[derive(Debug, PartialEq)]
struct Spread {
    rate_hz: f64,
    min_s: f64,
    max_s: f64,
    std_dev_s: f64,
    /// Intervals.
    count: usize,
}

impl Spread {
    /// `None` for fewer than two points, or if all are the same.
    fn of(times_ns: impl Iterator<Item = u64>) -> Option<Spread> {
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
        Some(Spread {
            rate_hz: 1.0 / mean,
            min_s: gaps.iter().copied().fold(f64::INFINITY, f64::min),
            max_s: gaps.iter().copied().fold(0.0, f64::max),
            std_dev_s: variance.sqrt(),
            count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn spreads() {
        assert_eq!(Spread::of([].into_iter()), None);
        assert_eq!(Spread::of([5].into_iter()), None);
        assert_eq!(Spread::of([5, 5].into_iter()), None);
        let even = Spread::of([3_000_000, 1_000_000, 2_000_000].into_iter()).unwrap();
        assert!((even.rate_hz - 1000.0).abs() < 1e-9 && even.std_dev_s < 1e-12);
        let uneven = Spread::of([0, 1_000_000_000, 4_000_000_000].into_iter()).unwrap();
        assert_eq!((uneven.rate_hz, uneven.min_s, uneven.max_s), (0.5, 1.0, 3.0));
        assert_eq!((uneven.std_dev_s, uneven.count), (1.0, 2));
    }
}
