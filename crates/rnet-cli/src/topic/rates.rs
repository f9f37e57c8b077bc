//! `rnet topic hz` and `bw`: report every second on a window of the last messages.
//!
//! A rate is computed from the publishers' time stamps, so it is the send rate, regardless of the observer's
//! own timing.

use std::collections::VecDeque;

use rnet::inspect::{Follower, ObservedMessage};
use rnet_monitor::rates::{BandwidthStats, IntervalStats};
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
    /// Send time in ns, and length in bytes, of each message.
    last: VecDeque<(u64, usize)>,
    /// Total number of messages.
    seen: u64,
}

/// Prints a report on a window; returns whether there was anything to print.
type Report = fn(&mut Context, &Window) -> Outcome<bool>;

struct RateListener {
    window: Window,
    capacity: usize,
    report: Report,
    max_reports: Option<u64>,
    /// The value of `seen` at the last report.
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
            // The missing publisher was already reported.
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
    // The number of intervals.
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

pub fn bw(context: &mut Context, args: RateArgs) -> Outcome {
    let window = args.window.unwrap_or(DEFAULT_BW_WINDOW) as usize;
    run(context, &args, window, report_bw)
}

fn report_bw(context: &mut Context, window: &Window) -> Outcome<bool> {
    let now_ns = rnet::now_ns();
    let Some(stats) = BandwidthStats::of(&window.last, now_ns) else { return Ok(false) };
    let BandwidthStats { bytes_per_s, mean, min, max, count } = stats;
    if context.json() {
        context.json_line(&json!({
            "topic": window.topic,
            "bytes_per_s": bytes_per_s,
            "window": count,
            "mean_bytes": mean,
            "min_bytes": min,
            "max_bytes": max,
            "messages": window.seen,
        }))?;
        return Ok(true);
    }
    context.line(format_args!("{}/s from {count} messages", table::bytes(bytes_per_s)))?;
    context.line(format_args!(
        "\tMessage size mean: {} min: {} max: {}",
        table::bytes(mean),
        table::bytes(min as f64),
        table::bytes(max as f64)
    ))?;
    Ok(true)
}
