//! `rnet bench latency`: one sender at a fixed rate, one reader.

use std::time::Duration;

use rnet::Wait;
use rnet_bench::worker::Order;
use serde::Serialize;
use serde_json::json;

use super::args::LatencyArgs;
use super::crew::{Crew, Post};
use super::figure::{PercentileSpread, Percentiles};
use super::job::{COLLECT, GO};
use super::message::Body;
use super::roles::Role;
use super::roles::stream::{ReaderJob, ReaderReport, SenderJob, SenderReport};
use super::throughput::fate;
use super::{Bench, Fate, as_latency, as_percent, latency_rows, row, runs, spread};
use crate::context::Context;
use crate::failure::Outcome;

/// Messages of the first so many seconds are not timed, but at most every tenth.
const WARM_UP_SECONDS: f64 = 0.1;

/// What one run found.
#[derive(Debug, Serialize)]
pub struct Run {
    pub sent: u64,
    pub latency: Percentiles,
    pub fate: Fate,
    /// How late a message left at worst.
    pub sender_behind_max_ns: u64,
    /// Cores kept busy.
    pub sender_cores: f64,
    pub reader_cores: f64,
}

pub fn run(context: &mut Context, args: &LatencyArgs) -> Outcome {
    let LatencyArgs { size, rate, .. } = args;
    let wait = args.wait.name();
    let lane = if args.urgent { "urgent" } else { "bulk" };
    let some = runs(args.repeats.repeats, args.seconds);
    let what = format_args!("{size} B at {rate} Hz, reliable, {lane} lane, reader {wait}, {some}");
    let bench = Bench::begin(context, "latency", what)?;
    let all =
        (0..args.repeats.repeats).map(|n| one(&bench, n, args)).collect::<Outcome<Vec<_>>>()?;
    let latencies: Vec<Percentiles> = all.iter().map(|r| r.latency).collect();
    let latency = PercentileSpread::of(&latencies);
    let sender = spread(&all, |r| r.sender_cores);
    let reader = spread(&all, |r| r.reader_cores);
    let behind = spread(&all, |r| r.sender_behind_max_ns as f64);
    let fate = Fate::sum(all.iter().map(|r| r.fate));
    if context.json() {
        let settings = json!({
            "rate_hz": rate,
            "size_bytes": size,
            "wait": wait,
            "lane": lane,
            "reliability": "reliable",
            "seconds": args.seconds.as_secs_f64(),
            "repeats": args.repeats.repeats,
        });
        let result = json!({
            "latency": latency,
            "sender_behind_max_ns": behind,
            "sender_cores": sender,
            "reader_cores": reader,
            "fate": fate,
            "runs": all,
        });
        bench.document(context, settings, result)?;
    } else {
        latency_rows(context, &latency)?;
        let (sender, reader) = (sender.show(as_percent), reader.show(as_percent));
        row(context, "CPU", format_args!("sender {sender}, reader {reader}"))?;
        row(context, "behind", format_args!("{} at worst", behind.show(as_latency)))?;
        row(context, "messages", format_args!("{}", fate.show()))?;
    }
    fate.verdict(false)
}

fn one(bench: &Bench, n: u32, args: &LatencyArgs) -> Outcome<Run> {
    let stream = Stream {
        rate_hz: args.rate,
        len: args.size,
        wait: args.wait.into(),
        urgent: args.urgent,
        seconds: args.seconds,
    };
    let mut crew = Crew::start(&bench.place, n, stream.posts())?;
    let run = stream.run(&mut crew, 0)?;
    crew.dismiss()?;
    Ok(run)
}

/// One sender at a fixed rate, and one reader.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub rate_hz: f64,
    pub len: usize,
    pub wait: Wait,
    pub urgent: bool,
    pub seconds: Duration,
}

impl Stream {
    /// The sender and the reader.
    pub fn posts(&self) -> Vec<Post> {
        let sender = SenderJob {
            len: self.len,
            readers: 1,
            seconds: self.seconds,
            rate_hz: Some(self.rate_hz),
            reliable: true,
            urgent: self.urgent,
            body: Body::Whole,
        };
        let warm_up = (self.seconds.as_secs_f64() / 10.0).min(WARM_UP_SECONDS);
        let reader = ReaderJob {
            len: self.len,
            wait: self.wait,
            reliable: true,
            body: Body::Whole,
            latency_after: Some((self.rate_hz * warm_up) as u64),
        };
        vec![
            ("sender".to_owned(), Role::Sender(sender)),
            ("reader".to_owned(), Role::Reader(reader)),
        ]
    }

    /// Has them run; they are `first` and the next of the crew.
    pub fn run(&self, crew: &mut Crew, first: usize) -> Outcome<Run> {
        let (sender, reader) = (first, first + 1);
        crew.order([reader, sender], Order::phase(GO))?;
        let sent: SenderReport = crew.report(sender, self.seconds)?;
        crew.order([reader], Order::phase(COLLECT))?;
        let read: ReaderReport = crew.report(reader, self.seconds)?;
        Ok(Run {
            sent: sent.sent,
            latency: read.latencies.percentiles(),
            fate: fate(&sent, &read),
            sender_behind_max_ns: sent.behind_max_ns,
            sender_cores: sent.used.cores(),
            reader_cores: read.used.cores(),
        })
    }
}
