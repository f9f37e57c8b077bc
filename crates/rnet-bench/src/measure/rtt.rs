//! Round-trip time: a request and its reply, size by size.

use crate::worker::Order;
use serde_json::json;

use super::message::Body;
use super::options::RttOptions;
use super::report::{self, Case, DeliveryCounts, Figure, LATENCIES, Table};
use super::roles::echo::{EchoJob, SizeReport};
use super::worker::Role;
use super::worker_link::{COLLECT_PHASE, SEND_PHASE};
use super::{Bench, BenchHost, BenchReport, runs};
use rnet_format::Outcome;

const TRIPS: Figure = Figure::new("trips", "round_trips", report::count);

pub fn run(host: &mut BenchHost<'_>, args: &RttOptions) -> Outcome<BenchReport> {
    let (seconds, repeats) = args.run.or(0.5, 3);
    let body = Body::untouched(args.untouched);
    let (wait, some) = (json!(args.wait), runs(repeats, seconds));
    let touch = if args.untouched { "long ones untouched" } else { "written and read in full" };
    let what = format!("reliable, both sides {wait}, {touch}, {some} for each size");
    let bench = Bench::begin(host, "rtt", what)?;
    let case = |len: &usize| Case { labels: vec![("size_bytes", json!(len))], runs: Vec::new() };
    let mut cases: Vec<Case> = args.size.iter().map(case).collect();
    let mut delivery = DeliveryCounts::default();
    for n in 0..repeats {
        let job = EchoJob { sizes: args.size.clone(), seconds, wait: args.wait, body };
        let roles = vec![
            ("asking".to_owned(), Role::Pinger(job.clone())),
            ("answering".to_owned(), Role::Echo(job)),
        ];
        let mut workers = bench.start_workers(n, roles)?;
        workers.order([1, 0], Order::phase(SEND_PHASE))?;
        let time = seconds.saturating_mul(args.size.len() as u32);
        // A reply that never arrives ends the run with an error.
        let reports: Vec<SizeReport> = workers.report(0, time)?;
        workers.order([1], Order::phase(COLLECT_PHASE))?;
        workers.report::<()>(1, time)?;
        workers.stop_all()?;
        for (case, report) in cases.iter_mut().zip(reports) {
            let SizeReport { sent, received, latencies } = report;
            let trips = latencies.percentiles().count as f64;
            case.runs.push([&[trips], &report::latencies(&latencies)[..]].concat());
            let corrupt = sent - received;
            delivery +=
                DeliveryCounts { expected: sent, received, corrupt, ..DeliveryCounts::default() };
        }
    }
    let [p50, others @ ..] = LATENCIES;
    let figures = [&[TRIPS, p50.with_range()], &others[..]].concat();
    let settings = json!({
        "size_bytes": args.size, "wait": wait, "body": body, "reliability": "reliable",
        "seconds": seconds.as_secs_f64(), "repeats": repeats,
    });
    let table = Table { name: "cases", figures, cases };
    let verdict = delivery.verdict(false);
    Ok(bench.report(settings, vec![table], Some(delivery), verdict))
}
