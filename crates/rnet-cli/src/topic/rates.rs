//! `rnet topic hz` and `bw`: a window of the last messages, and a report on it each second.
//!
//! A rate is computed from the time stamps that publishers put on their messages, so it is the rate at which they were
//! sent, whatever the observer did meanwhile.

use std::collections::VecDeque;

use rnet::inspect::{Follower, ObservedMessage};
use serde_json::json;

use super::args::RateArgs;
use super::listen::{Flow, Listener, SilenceReporter, listen};
use crate::context::Context;
use crate::failure::Outcome;
use crate::table;

const DEFAULT_HZ_WINDOW: u32 = 10_000;
const DEFAULT_BW_WINDOW: u32 = 100;

/// The last messages of a topic.
struct Window {
    topic: String,
    /// When each was sent, in ns, and its length in bytes.
    last: VecDeque<(u64, usize)>,
    /// Messages so far.
    seen: u64,
}

/// Prints what there is to say of a window; whether there was anything.
type Report = fn(&mut Context, &Window) -> Outcome<bool>;

struct RateListener {
    window: Window,
    capacity: usize,
    report: Report,
    max_reports: Option<u64>,
    /// `seen` at the last report.
    reported: u64,
    reports: u64,
    silence: SilenceReporter,
}

/// Reports on the last `capacity` messages until there is enough.
fn run(context: &mut Context, args: &RateArgs, capacity: usize, report: Report) -> Outcome {
    let window = Window { topic: args.topic.to_string(), last: VecDeque::new(), seen: 0 };
    let max_reports = args.count;
    let silence = SilenceReporter::default();
    let mut rates =
        RateListener { window, capacity, report, max_reports, reported: 0, reports: 0, silence };
    listen(context, args.topic.as_str(), false, args.timeout, &mut rates)
}

impl RateListener {
    fn report(&mut self, context: &mut Context) -> Outcome {
        self.reported = self.window.seen;
        self.reports += u64::from((self.report)(context, &self.window)?);
        Ok(())
    }
}

impl Listener for RateListener {
    fn on_message(
        &mut self,
        _: &mut Context,
        heard: &ObservedMessage<'_>,
        bytes: &[u8],
    ) -> Outcome<Flow> {
        if self.window.last.len() >= self.capacity {
            self.window.last.pop_front();
        }
        self.window.last.push_back((heard.stamp.sent_ns, bytes.len()));
        self.window.seen += 1;
        Ok(Flow::Continue)
    }

    fn on_second(&mut self, context: &mut Context, follow: &Follower) -> Outcome<Flow> {
        if self.window.seen == self.reported {
            // That nobody is there yet was said.
            if self.window.seen > 0 || follow.publisher_count() > 0 {
                self.silence.report(context, follow.publishers());
            }
            return Ok(Flow::Continue);
        }
        self.silence.reset();
        self.report(context)?;
        Ok(if Some(self.reports) == self.max_reports { Flow::Stop } else { Flow::Continue })
    }

    fn on_finish(&mut self, context: &mut Context) -> Outcome {
        if self.window.seen > self.reported { self.report(context) } else { Ok(()) }
    }

    fn is_satisfied(&self) -> bool {
        self.window.seen > 0
    }
}

pub fn hz(context: &mut Context, args: RateArgs) -> Outcome {
    let window = args.window.unwrap_or(DEFAULT_HZ_WINDOW) as usize;
    // So many intervals.
    run(context, &args, window + 1, report_hz)
}

fn report_hz(context: &mut Context, window: &Window) -> Outcome<bool> {
    let Some(spread) = IntervalStats::of(window.last.iter().map(|(sent_ns, _)| *sent_ns)) else {
        return Ok(false);
    };
    let IntervalStats { rate_hz, min_s, max_s, std_dev_s, count } = spread;
    if context.json() {
        context.json_line(&json!({
            "topic": window.topic,
            "rate_hz": rate_hz,
            "min_s": min_s,
            "max_s": max_s,
            "std_dev_s": std_dev_s,
            "window": count,
            "messages": window.seen,
        }))?;
        return Ok(true);
    }
    context.line(format_args!("average rate: {rate_hz:.3}"))?;
    context.line(format_args!(
        "\tmin: {min_s:.6}s max: {max_s:.6}s std dev: {std_dev_s:.6}s window: {count}"
    ))?;
    Ok(true)
}

/// How far apart points in time lie.
#[derive(Debug, PartialEq)]
struct IntervalStats {
    rate_hz: f64,
    min_s: f64,
    max_s: f64,
    std_dev_s: f64,
    /// Intervals.
    count: usize,
}

impl IntervalStats {
    /// `None` for fewer than two points, or if all are the same.
    fn of(times_ns: impl Iterator<Item = u64>) -> Option<IntervalStats> {
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

pub fn bw(context: &mut Context, args: RateArgs) -> Outcome {
    let window = args.window.unwrap_or(DEFAULT_BW_WINDOW) as usize;
    run(context, &args, window, report_bw)
}

fn report_bw(context: &mut Context, window: &Window) -> Outcome<bool> {
    let count = window.last.len();
    let Some(first_ns) = window.last.iter().map(|(at, _)| *at).min() else { return Ok(false) };
    // To now and not to the last message: a topic that went quiet carries less and less.
    let span_s = rnet::now_ns().saturating_sub(first_ns) as f64 / 1e9;
    let lens = || window.last.iter().map(|(_, len)| *len);
    let total: usize = lens().sum();
    let (min, max) = (lens().min().unwrap_or(0), lens().max().unwrap_or(0));
    let (mean, rate) = (total as f64 / count as f64, total as f64 / span_s.max(1e-9));
    if context.json() {
        context.json_line(&json!({
            "topic": window.topic,
            "bytes_per_s": rate,
            "window": count,
            "mean_bytes": mean,
            "min_bytes": min,
            "max_bytes": max,
            "messages": window.seen,
        }))?;
        return Ok(true);
    }
    context.line(format_args!("{}/s from {count} messages", table::bytes(rate)))?;
    context.line(format_args!(
        "\tMessage size mean: {} min: {} max: {}",
        table::bytes(mean),
        table::bytes(min as f64),
        table::bytes(max as f64)
    ))?;
    Ok(true)
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
