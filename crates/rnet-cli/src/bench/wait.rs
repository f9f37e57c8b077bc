//! `rnet bench wait`: the ways of waiting side by side, on idle cores and beside one busy loop per
//! core.
//!
//! The ways take turns within each repetition, and a ratio is computed within a repetition before the
//! median is taken, so that what else happens on the machine meets all of them alike.

use rnet::Wait;
use rnet_bench::worker::Order;
use serde::Serialize;
use serde_json::json;

use super::args::{WaitArg, WaitArgs};
use super::crew::Crew;
use super::figure::{PercentileSpread, Percentiles};
use super::job::{COLLECT, GO};
use super::latency::{Run, Stream};
use super::roles::Role;
use super::roles::busy::{self, BusyJob};
use super::{Bench, Fate, Spread, as_latency, as_percent, row, runs, spread};
use crate::context::Context;
use crate::failure::Outcome;
use crate::table;

/// One way of waiting, at one rate and beside one load.
#[derive(Debug, Serialize)]
struct Case {
    rate_hz: f64,
    busy_loops: usize,
    wait: &'static str,
    latency: PercentileSpread,
    reader_cores: Spread,
    sender_behind_max_ns: Spread,
    /// By the latency of the last way, of the same repetition.
    ratio: Ratios,
    runs: Vec<Run>,
}

#[derive(Debug, Serialize)]
struct Ratios {
    p50: Spread,
    p999: Spread,
}

pub fn run(context: &mut Context, args: &WaitArgs) -> Outcome {
    let (cores, size) = (busy::cores().len(), args.size);
    let lane = if args.urgent { "urgent" } else { "bulk" };
    let some = runs(args.repeats, args.seconds);
    let what = format_args!("{size} B, reliable, {lane} lane, {some} in turns");
    let bench = Bench::begin(context, "wait", what)?;
    let mut all: Vec<Vec<Run>> = Vec::new();
    for n in 0..args.repeats {
        let mut at = 0;
        for busy_loops in [0, cores] {
            for &rate_hz in &args.rate {
                for way in order(args.wait.len(), n) {
                    let stream = Stream {
                        rate_hz,
                        len: size,
                        wait: Wait::from(args.wait[way]),
                        urgent: args.urgent,
                        seconds: args.seconds,
                    };
                    all.resize_with(all.len().max(at + args.wait.len()), Vec::new);
                    all[at + way].push(one(&bench, n, busy_loops, stream)?);
                }
                at += args.wait.len();
            }
        }
    }
    let cases = cases(args, cores, all);
    let fate = Fate::sum(cases.iter().flat_map(|case| &case.runs).map(|run| run.fate));
    if context.json() {
        let settings = json!({
            "rates_hz": args.rate,
            "size_bytes": size,
            "waits": args.wait.iter().map(|way| way.name()).collect::<Vec<_>>(),
            "lane": lane,
            "reliability": "reliable",
            "seconds": args.seconds.as_secs_f64(),
            "repeats": args.repeats,
        });
        bench.document(context, settings, json!({ "cases": cases, "fate": fate }))?;
    } else {
        show(context, &cases)?;
        row(context, "messages", format_args!("{}", fate.show()))?;
    }
    fate.verdict(false)
}

/// In which order a repetition takes the ways: there and back, so that none is always the first.
fn order(ways: usize, repetition: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..ways).collect();
    if !repetition.is_multiple_of(2) {
        order.reverse();
    }
    order
}

fn one(bench: &Bench, n: u32, busy_loops: usize, stream: Stream) -> Outcome<Run> {
    // They meet on quiet cores.
    let mut crew = Crew::start(&bench.place, n, stream.posts())?;
    let loops = (0..busy_loops).map(|core| (format!("loop {core}"), Role::Busy(BusyJob { core })));
    crew.add(loops.collect())?;
    crew.order(2..crew.len(), Order::phase(GO))?;
    let run = stream.run(&mut crew, 0)?;
    crew.order(2..crew.len(), Order::phase(COLLECT))?;
    crew.dismiss()?;
    Ok(run)
}

fn cases(args: &WaitArgs, cores: usize, all: Vec<Vec<Run>>) -> Vec<Case> {
    let ways = args.wait.len();
    let of = |run: &Run, figure: fn(&Percentiles) -> u64| figure(&run.latency).max(1) as f64;
    let ratios: Vec<Ratios> = (0..all.len())
        .map(|at| {
            let last = &all[at / ways * ways + ways - 1];
            let ratio = |figure: fn(&Percentiles) -> u64| {
                let pairs = all[at].iter().zip(last);
                Spread::of(pairs.map(|(run, last)| of(run, figure) / of(last, figure)))
            };
            Ratios { p50: ratio(|p| p.p50_ns), p999: ratio(|p| p.p999_ns) }
        })
        .collect();
    let case = |(at, (runs, ratio)): (usize, (Vec<Run>, Ratios))| Case {
        rate_hz: args.rate[at / ways % args.rate.len()],
        busy_loops: if at / ways < args.rate.len() { 0 } else { cores },
        wait: WaitArg::name(args.wait[at % ways]),
        latency: PercentileSpread::of(&runs.iter().map(|r| r.latency).collect::<Vec<_>>()),
        reader_cores: spread(&runs, |r| r.reader_cores),
        sender_behind_max_ns: spread(&runs, |r| r.sender_behind_max_ns as f64),
        ratio,
        runs,
    };
    all.into_iter().zip(ratios).enumerate().map(case).collect()
}

fn show(context: &mut Context, cases: &[Case]) -> Outcome {
    let titles = [
        "LOOPS ",
        "HZ ",
        "WAIT",
        "P50 ",
        "P99 ",
        "P99.9 ",
        "MAX ",
        "CPU ",
        "P50 RATIO ",
        "P99.9 RATIO",
        "SENDER BEHIND ",
    ];
    let ratio = |spread: Spread| spread.show(|ratio| format!("{ratio:.2}"));
    let rows: Vec<Vec<String>> = cases
        .iter()
        .map(|case| {
            let latency = &case.latency;
            let figures = [latency.p50_ns, latency.p99_ns, latency.p999_ns, latency.max_ns];
            let mut cells =
                vec![case.busy_loops.to_string(), case.rate_hz.to_string(), case.wait.to_owned()];
            cells.extend(figures.map(|spread| as_latency(spread.median)));
            cells.push(as_percent(case.reader_cores.median));
            cells.push(format!("{:.2}", case.ratio.p50.median));
            cells.push(ratio(case.ratio.p999));
            cells.push(as_latency(case.sender_behind_max_ns.median));
            cells
        })
        .collect();
    table::print(context, &titles, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_way_of_waiting_is_always_the_first() {
        assert_eq!((order(3, 0), order(3, 1)), (vec![0, 1, 2], vec![2, 1, 0]));
    }
}
