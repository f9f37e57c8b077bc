//! `rnet topic hz`: the rate of a topic.
//!
//! Reckoned from the time stamps that publishers put on their messages, so it is the rate at
//! which they were sent, whatever the observer did meanwhile.

use serde_json::json;

use super::rates::{self, Window};
use crate::args::WatchArgs;
use crate::context::Context;
use crate::failure::Outcome;

const DEFAULT_WINDOW: u32 = 10_000;

pub fn run(context: &mut Context, args: WatchArgs) -> Outcome {
    let window = args.window.unwrap_or(DEFAULT_WINDOW) as usize;
    // So many intervals.
    rates::run(context, &args, window + 1, report)
}

fn report(context: &mut Context, window: &Window) -> Outcome<bool> {
    let Some(spread) = Spread::of(window.last.iter().map(|(sent_ns, _)| *sent_ns)) else {
        return Ok(false);
    };
    let Spread { rate_hz, min_s, max_s, std_dev_s, count } = spread;
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
