//! `rnet topic bw`: how many bytes per second a topic carries.

use std::collections::VecDeque;

use rnet::inspect::Heard;
use serde_json::json;

use super::listen::{Go, Listener, listen};
use crate::args::WatchArgs;
use crate::context::Context;
use crate::failure::Outcome;
use crate::table;

const DEFAULT_WINDOW: u32 = 100;

pub fn run(context: &mut Context, args: WatchArgs) -> Outcome {
    let mut bw = Bw {
        topic: args.topic.to_string(),
        window: args.window.unwrap_or(DEFAULT_WINDOW) as usize,
        wanted: args.count,
        last: VecDeque::new(),
        seen: 0,
        reported: 0,
        reports: 0,
    };
    listen(context, args.topic.as_str(), false, args.timeout, &mut bw)
}

struct Bw {
    topic: String,
    window: usize,
    wanted: Option<u64>,
    /// When the messages of the window were sent (ns) and how long they are (bytes).
    last: VecDeque<(u64, usize)>,
    seen: u64,
    reported: u64,
    reports: u64,
}

impl Listener for Bw {
    fn message(&mut self, _: &mut Context, heard: &Heard<'_>, bytes: &[u8]) -> Outcome<Go> {
        if self.last.len() >= self.window {
            self.last.pop_front();
        }
        self.last.push_back((heard.stamp.sent_ns, bytes.len()));
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

impl Bw {
    fn report(&mut self, context: &mut Context) -> Outcome {
        self.reported = self.seen;
        let count = self.last.len();
        let Some(first_ns) = self.last.iter().map(|(at, _)| *at).min() else { return Ok(()) };
        // To now and not to the last message: a topic that went quiet carries less and less.
        let span_s = rnet::now_ns().saturating_sub(first_ns) as f64 / 1e9;
        let lens = || self.last.iter().map(|(_, len)| *len);
        let total: usize = lens().sum();
        let (min, max) = (lens().min().unwrap_or(0), lens().max().unwrap_or(0));
        let (mean, rate) = (total as f64 / count as f64, total as f64 / span_s.max(1e-9));
        self.reports += 1;
        if context.json() {
            return context.json_line(&json!({
                "topic": self.topic,
                "bytes_per_s": rate,
                "window": count,
                "mean_bytes": mean,
                "min_bytes": min,
                "max_bytes": max,
                "messages": self.seen,
            }));
        }
        context.line(format_args!("{}/s from {count} messages", table::bytes(rate)))?;
        context.line(format_args!(
            "\tMessage size mean: {} min: {} max: {}",
            table::bytes(mean),
            table::bytes(min as f64),
            table::bytes(max as f64)
        ))
    }
}
