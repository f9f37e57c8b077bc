//! `rnet bench throughput`: one sender, some readers, as fast as it goes.

use rnet_bench::worker::Order;
use serde::Serialize;
use serde_json::json;

use super::args::ThroughputArgs;
use super::crew::Crew;
use super::job::{COLLECT, GO};
use super::message::Body;
use super::roles::Role;
use super::roles::stream::{ReaderJob, ReaderReport, SenderJob, SenderReport};
use super::usage::Used;
use super::{Bench, Fate, Spread, as_bytes, as_count, as_percent, row, runs, spread};
use crate::context::Context;
use crate::failure::Outcome;

/// What one run found.
#[derive(Debug, Serialize)]
struct Run {
    sent: u64,
    /// Messages per second, of each reader.
    readers_per_s: Vec<f64>,
    /// Of all readers together.
    fate: Fate,
    /// Cores kept busy.
    sender_cores: f64,
    readers_cores: Vec<f64>,
}

impl Run {
    /// What the slowest reader got.
    fn per_s(&self) -> f64 {
        self.readers_per_s.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

pub fn run(context: &mut Context, args: &ThroughputArgs) -> Outcome {
    let ThroughputArgs { size, readers, .. } = args;
    let promise = if args.best_effort { "best_effort" } else { "reliable" };
    let wait = args.wait.name();
    let some = runs(args.repeats.repeats, args.seconds);
    let plural = if *readers == 1 { "reader" } else { "readers" };
    let what = format_args!("{size} B, {promise}, 1 sender, {readers} {plural} {wait}, {some}");
    let bench = Bench::begin(context, "throughput", what)?;
    let all =
        (0..args.repeats.repeats).map(|n| one(&bench, n, args)).collect::<Outcome<Vec<_>>>()?;
    let per_s = spread(&all, Run::per_s);
    let per_byte = Spread {
        median: per_s.median * *size as f64,
        min: per_s.min * *size as f64,
        max: per_s.max * *size as f64,
    };
    let sender = spread(&all, |r| r.sender_cores);
    let reader = spread(&all, |r| r.readers_cores.iter().copied().fold(0.0, f64::max));
    let fate = Fate::sum(all.iter().map(|r| r.fate));
    if context.json() {
        let settings = json!({
            "size_bytes": size,
            "readers": readers,
            "wait": wait,
            "reliability": promise,
            "body": Body::untouched(args.untouched),
            "seconds": args.seconds.as_secs_f64(),
            "repeats": args.repeats.repeats,
        });
        let result = json!({
            "messages_per_s": per_s,
            "bytes_per_s": per_byte,
            "sender_cores": sender,
            "reader_cores": reader,
            "fate": fate,
            "runs": all,
        });
        bench.document(context, settings, result)?;
    } else {
        let each = if *readers > 1 { " (the slowest reader)" } else { "" };
        row(context, "messages/s", format_args!("{}{each}", per_s.show(as_count)))?;
        row(context, "bytes/s", format_args!("{}", per_byte.show(as_bytes)))?;
        let (sender, reader) = (sender.show(as_percent), reader.show(as_percent));
        row(context, "CPU", format_args!("sender {sender}, reader {reader}"))?;
        row(context, "messages", format_args!("{}", fate.show()))?;
    }
    fate.verdict(args.best_effort)
}

fn one(bench: &Bench, n: u32, args: &ThroughputArgs) -> Outcome<Run> {
    let (reliable, body) = (!args.best_effort, Body::untouched(args.untouched));
    let readers = usize::from(args.readers);
    let sender = SenderJob {
        len: args.size,
        readers,
        seconds: args.seconds,
        rate_hz: None,
        reliable,
        urgent: false,
        body,
    };
    let mut posts = vec![("sender".to_owned(), Role::Sender(sender))];
    posts.extend((1..=readers).map(|i| {
        let wait = args.wait.into();
        let job = ReaderJob { len: args.size, wait, reliable, body, latency_after: None };
        (format!("reader {i}"), Role::Reader(job))
    }));
    let mut crew = Crew::start(&bench.place, n, posts)?;
    crew.order((0..=readers).rev(), Order::phase(GO))?;
    let sent: SenderReport = crew.report(0, args.seconds)?;
    crew.order(1..=readers, Order::phase(COLLECT))?;
    let mut run = Run {
        sent: sent.sent,
        readers_per_s: Vec::new(),
        fate: Fate::default(),
        sender_cores: sent.used.cores(),
        readers_cores: Vec::new(),
    };
    for number in 1..=readers {
        let read: ReaderReport = crew.report(number, args.seconds)?;
        let took_ns = read.last_ns.saturating_sub(sent.start_ns).max(1);
        run.readers_per_s.push(read.tally.received as f64 * 1e9 / took_ns as f64);
        run.readers_cores.push(Used::cores(&read.used));
        run.fate.add(fate(&sent, &read));
    }
    crew.dismiss()?;
    Ok(run)
}

/// What became of the sender's messages at one reader.
pub fn fate(sent: &SenderReport, read: &ReaderReport) -> Fate {
    Fate {
        expected: sent.sent,
        received: read.tally.received,
        lost: read.tally.lost(sent.sent),
        counted_lost: read.counted_lost,
        out_of_order: read.tally.out_of_order,
        corrupt: read.tally.corrupt,
    }
}
