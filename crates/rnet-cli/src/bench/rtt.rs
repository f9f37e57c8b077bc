//! `rnet bench rtt`: a request and its answer, size by size.

use rnet_bench::worker::Order;
use serde::Serialize;
use serde_json::json;

use super::args::RttArgs;
use super::crew::Crew;
use super::figure::{PercentileSpread, Percentiles};
use super::job::{COLLECT, GO};
use super::message::Body;
use super::roles::Role;
use super::roles::echo::{EchoJob, PingerJob, SizeReport};
use super::{Bench, Fate, as_latency, row, runs};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::table;

/// What all runs found for one size.
#[derive(Debug, Serialize)]
struct Size {
    size_bytes: usize,
    round_trips: u64,
    latency: PercentileSpread,
    fate: Fate,
    runs: Vec<Percentiles>,
}

pub fn run(context: &mut Context, args: &RttArgs) -> Outcome {
    let body = Body::untouched(args.untouched);
    let wait = args.wait.name();
    let some = runs(args.repeats.repeats, args.seconds);
    let touch = if args.untouched { "long ones untouched" } else { "written and read in full" };
    let what = format_args!("reliable, both sides {wait}, {touch}, {some} for each size");
    let bench = Bench::begin(context, "rtt", what)?;
    let mut sizes: Vec<Size> = args.size.iter().map(|&len| Size::new(len)).collect();
    for n in 0..args.repeats.repeats {
        for (size, report) in sizes.iter_mut().zip(one(&bench, n, args, body)?) {
            size.add(&report);
        }
    }
    for size in &mut sizes {
        size.latency = PercentileSpread::of(&size.runs);
    }
    let fate = Fate::sum(sizes.iter().map(|size| size.fate));
    if context.json() {
        let settings = json!({
            "size_bytes": args.size,
            "wait": wait,
            "body": body,
            "reliability": "reliable",
            "seconds": args.seconds.as_secs_f64(),
            "repeats": args.repeats.repeats,
        });
        bench.document(context, settings, json!({ "sizes": sizes, "fate": fate }))?;
    } else {
        let rows: Vec<Vec<String>> = sizes.iter().map(Size::cells).collect();
        let titles =
            ["SIZE ", "TRIPS ", "P50 ", "[LEAST - MOST]", "P90 ", "P99 ", "P99.9 ", "MAX "];
        table::print(context, &titles, &rows)?;
        row(context, "messages", format_args!("{}", fate.show()))?;
    }
    fate.verdict(false)
}

impl Size {
    fn new(size_bytes: usize) -> Size {
        let (fate, latency) = (Fate::default(), PercentileSpread::default());
        Size { size_bytes, round_trips: 0, latency, fate, runs: Vec::new() }
    }

    fn add(&mut self, report: &SizeReport) {
        let percentiles = report.latencies.percentiles();
        self.round_trips += percentiles.count;
        self.runs.push(percentiles);
        self.fate.add(Fate {
            expected: report.sent,
            received: report.received,
            corrupt: report.corrupt,
            // An answer that does not come at all ends the run with an error.
            ..Fate::default()
        });
    }

    fn cells(&self) -> Vec<String> {
        let of = &self.latency;
        vec![
            self.size_bytes.to_string(),
            self.round_trips.to_string(),
            as_latency(of.p50_ns.median),
            format!("[{} - {}]", as_latency(of.p50_ns.min), as_latency(of.p50_ns.max)),
            as_latency(of.p90_ns.median),
            as_latency(of.p99_ns.median),
            as_latency(of.p999_ns.median),
            as_latency(of.max_ns.max),
        ]
    }
}

fn one(bench: &Bench, n: u32, args: &RttArgs, body: Body) -> Outcome<Vec<SizeReport>> {
    let wait = args.wait.into();
    let pinger = PingerJob { sizes: args.size.clone(), seconds: args.seconds, wait, body };
    let posts = vec![
        ("asking".to_owned(), Role::Pinger(pinger)),
        ("answering".to_owned(), Role::Echo(EchoJob { wait, body })),
    ];
    let mut crew = Crew::start(&bench.place, n, posts)?;
    crew.order([1, 0], Order::phase(GO))?;
    let time = args.seconds.saturating_mul(args.size.len() as u32);
    let reports: Vec<SizeReport> = crew.report(0, time)?;
    crew.order([1], Order::phase(COLLECT))?;
    let answered: u64 = crew.report(1, time)?;
    crew.dismiss()?;
    let asked: u64 = reports.iter().map(|r| r.sent).sum();
    if asked != answered {
        let text = format!("{asked} requests were sent and {answered} were answered");
        return Err(Failure::Failed(text));
    }
    Ok(reports)
}
