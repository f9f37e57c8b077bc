//! `rnet bench trace`: what a topic pays while it is traced.
//!
//! Runs with and without a tracer take turns, and a ratio is computed within a repetition before the median is taken, so
//! that what else happens on the machine meets both alike.

use rnet_bench::worker::Order;
use serde::Serialize;
use serde_json::json;

use super::args::TraceArgs;
use super::crew::Crew;
use super::figure::{PercentileSpread, Percentiles};
use super::job::COLLECT;
use super::latency::{Run, Stream};
use super::roles::Role;
use super::roles::tracer::TracerReport;
use super::{Bench, Fate, Spread, as_latency, as_percent, row, runs, spread};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::table;

/// What is measured, in turn.
const TRACED: [bool; 2] = [false, true];

/// A run, and how many messages it has records of.
#[derive(Debug, Serialize)]
struct TracedRun {
    #[serde(flatten)]
    run: Run,
    records: u64,
}

#[derive(Debug, Serialize)]
struct Case {
    traced: bool,
    latency: PercentileSpread,
    sender_cores: Spread,
    reader_cores: Spread,
    /// Of all messages.
    traced_share: f64,
    runs: Vec<TracedRun>,
}

/// Traced by untraced, of the same repetition.
#[derive(Debug, Serialize)]
struct Ratios {
    p50: Spread,
    p99: Spread,
    reader_cores: Spread,
}

pub fn run(context: &mut Context, args: &TraceArgs) -> Outcome {
    let TraceArgs { rate, size, repeats, seconds, .. } = args;
    let wait = args.wait.name();
    let lane = if args.urgent { "urgent" } else { "bulk" };
    let some = runs(*repeats, *seconds);
    let what = format_args!(
        "{size} B at {rate} Hz, reliable, {lane} lane, reader {wait}, {some} in turns, traced and not"
    );
    let bench = Bench::begin(context, "trace", what)?;
    let stream = Stream {
        rate_hz: *rate,
        len: *size,
        wait: args.wait.into(),
        urgent: args.urgent,
        seconds: *seconds,
    };
    let mut found = TRACED.map(|_| Vec::new());
    for n in 0..*repeats {
        // There and back, so that none is always the first.
        for at in if n % 2 == 0 { [0, 1] } else { [1, 0] } {
            found[at].push(one(&bench, n, stream, TRACED[at])?);
        }
    }
    let ratios = ratios(&found);
    let cases = TRACED.into_iter().zip(found).map(|(traced, runs)| case(traced, runs));
    let cases: Vec<Case> = cases.collect();
    let fate = Fate::sum(cases.iter().flat_map(|case| &case.runs).map(|run| run.run.fate));
    if context.json() {
        let settings = json!({
            "rate_hz": rate,
            "size_bytes": size,
            "wait": wait,
            "lane": lane,
            "reliability": "reliable",
            "seconds": seconds.as_secs_f64(),
            "repeats": repeats,
        });
        let result = json!({"cases": cases, "ratio": ratios, "fate": fate});
        bench.document(context, settings, result)?;
    } else {
        show(context, &cases, &ratios)?;
        row(context, "messages", format_args!("{}", fate.show()))?;
    }
    fate.verdict(false)
}

fn one(bench: &Bench, n: u32, stream: Stream, traced: bool) -> Outcome<TracedRun> {
    let mut posts = stream.posts();
    let tracer = posts.len();
    if traced {
        posts.push(("tracer".to_owned(), Role::Tracer));
    }
    let mut crew = Crew::start(&bench.place, n, posts)?;
    if traced {
        crew.order([tracer], Order::phase(super::job::GO))?;
    }
    let run = stream.run(&mut crew, 0)?;
    let mut records = 0;
    if traced {
        crew.order([tracer], Order::phase(COLLECT))?;
        let report: TracerReport = crew.report(tracer, stream.seconds)?;
        records = report.records;
        if report.lost > 0 || records == 0 {
            let what = format!(
                "the tracer has {records} records of {} messages, and lost {}: this run says nothing of tracing",
                run.sent, report.lost
            );
            return Err(Failure::Failed(what));
        }
    }
    crew.dismiss()?;
    Ok(TracedRun { run, records })
}

fn ratios([off, on]: &[Vec<TracedRun>; 2]) -> Ratios {
    let ratio = |figure: fn(&Run) -> f64| {
        let pairs = on.iter().zip(off);
        Spread::of(pairs.map(|(on, off)| figure(&on.run) / figure(&off.run).max(f64::MIN_POSITIVE)))
    };
    Ratios {
        p50: ratio(|run| run.latency.p50_ns as f64),
        p99: ratio(|run| run.latency.p99_ns as f64),
        reader_cores: ratio(|run| run.reader_cores),
    }
}

fn case(traced: bool, runs: Vec<TracedRun>) -> Case {
    let latencies: Vec<Percentiles> = runs.iter().map(|r| r.run.latency).collect();
    let of = |count: fn(&TracedRun) -> u64| runs.iter().map(count).sum::<u64>() as f64;
    Case {
        traced,
        latency: PercentileSpread::of(&latencies),
        sender_cores: spread(&runs, |r| r.run.sender_cores),
        reader_cores: spread(&runs, |r| r.run.reader_cores),
        traced_share: of(|r| r.records) / of(|r| r.run.sent).max(1.0),
        runs,
    }
}

fn show(context: &mut Context, cases: &[Case], ratios: &Ratios) -> Outcome {
    let rows: Vec<Vec<String>> = cases
        .iter()
        .map(|case| {
            let latency = &case.latency;
            let word = if case.traced { "on" } else { "off" };
            let mut cells = vec![word.to_owned(), as_percent(case.traced_share)];
            let figures = [latency.p50_ns, latency.p99_ns, latency.p999_ns];
            cells.extend(figures.map(|spread| spread.show(as_latency)));
            cells.push(case.sender_cores.show(as_percent));
            cells.push(case.reader_cores.show(as_percent));
            cells
        })
        .collect();
    let titles = ["TRACE", "TRACED ", "P50 ", "P99 ", "P99.9 ", "SENDER CPU ", "READER CPU "];
    table::print(context, &titles, &rows)?;
    let ratio = |spread: Spread| spread.show(|ratio| format!("{ratio:.3}"));
    row(context, "p50", format_args!("on / off {}", ratio(ratios.p50)))?;
    row(context, "p99", format_args!("on / off {}", ratio(ratios.p99)))?;
    row(context, "reader CPU", format_args!("on / off {}", ratio(ratios.reader_cores)))
}
