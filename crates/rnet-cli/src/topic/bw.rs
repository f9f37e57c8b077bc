//! `rnet topic bw`: how many bytes per second a topic carries.

use serde_json::json;

use super::rates::{self, Window};
use crate::args::WatchArgs;
use crate::context::Context;
use crate::failure::Outcome;
use crate::table;

const DEFAULT_WINDOW: u32 = 100;

pub fn run(context: &mut Context, args: WatchArgs) -> Outcome {
    let window = args.window.unwrap_or(DEFAULT_WINDOW) as usize;
    rates::run(context, &args, window, report)
}

fn report(context: &mut Context, window: &Window) -> Outcome<bool> {
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
