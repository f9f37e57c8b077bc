//! Throughput, latency, wait modes and tracing: one sender, and readers of one topic.
//!
//! Cases alternate within each run, in reverse order in every second run, so that no case is always the
//! first.

use std::time::Duration;

use crate::worker::Order;
use rnet::Wait;
use serde_json::json;

use super::message::Body;
use super::options::{StreamOptions, ThroughputOptions};
use super::report::{self, Case, DeliveryCounts, Figure, LATENCIES, Table};
use super::roles::load::{TracerReport, cores};
use super::roles::robot::{Publish, Published, RobotJob, RobotReport, Source, Subscribe};
use super::worker::Role;
use super::worker_link::{COLLECT_PHASE, SEND_PHASE};
use super::workers::{NamedRole, Workers};
use super::{Bench, BenchHost, BenchReport, runs};
use rnet_format::units;
use rnet_format::{Failure, Outcome};

const TOPIC: &str = "/bench";
/// Start of a run whose messages are not timed, in s; at most a tenth of the run.
const WARM_UP_SECONDS: f64 = 0.1;

const THROUGHPUT: [Figure; 4] = [
    Figure::new("messages/s", "messages_per_s", report::count),
    Figure::new("bytes/s", "bytes_per_s", units::bytes),
    Figure::new("sender CPU", "sender_cores", report::percent).hidden_in_tables(),
    Figure::new("reader CPU", "reader_cores", report::percent),
];
const BEHIND: Figure = Figure::new("behind", "sender_behind_max_ns", report::latency);
const TRACED: Figure = Figure::new("traced", "traced_share", report::percent);

/// A measured case.
#[derive(Clone, Copy)]
struct Stream {
    len: usize,
    /// `None` sends as fast as the readers read.
    rate_hz: Option<f64>,
    readers: usize,
    wait: Wait,
    body: Body,
    reliable: bool,
    urgent: bool,
    seconds: Duration,
    busy_loops: usize,
    traced: bool,
}

/// The reports of the sender and the readers, the sender first, and the number of messages that the tracer
/// recorded.
struct StreamResult {
    reports: Vec<RobotReport>,
    records: u64,
}

pub fn throughput(host: &mut BenchHost<'_>, args: &ThroughputOptions) -> Outcome<BenchReport> {
    let (seconds, repeats) = args.run.or(1.0, 3);
    let (len, readers) = (args.size, usize::from(args.readers));
    let stream = Stream {
        len,
        rate_hz: None,
        readers,
        wait: args.wait,
        body: Body::untouched(args.untouched),
        reliable: !args.best_effort,
        urgent: false,
        seconds,
        busy_loops: 0,
        traced: false,
    };
    let promise = if args.best_effort { "best_effort" } else { "reliable" };
    let some = runs(repeats, seconds);
    let s = if readers == 1 { "" } else { "s" };
    let wait = json!(args.wait);
    let what = format!("{len} B, {promise}, 1 sender, {readers} reader{s} {wait}, {some}");
    let bench = Bench::begin(host, "throughput", what)?;
    let (mut all, mut delivery) = (Vec::new(), DeliveryCounts::default());
    for n in 0..repeats {
        let StreamResult { reports, .. } = stream.run(&bench, n)?;
        let (sender, readers) = reports.split_first().ok_or_else(no_report)?;
        // The rate of the slowest reader.
        let per_s = readers.iter().map(|reader| {
            let took_ns = reader.received[0].last_ns.saturating_sub(sender.start_ns).max(1);
            reader.received[0].tallies[0].received as f64 * 1e9 / took_ns as f64
        });
        let per_s = per_s.fold(f64::INFINITY, f64::min);
        all.push(vec![per_s, per_s * len as f64, sender.used.cores(), busiest(readers)]);
        readers.iter().for_each(|reader| delivery += delivery_counts(sender, reader));
    }
    let settings = json!({
        "size_bytes": len, "readers": readers, "wait": wait, "reliability": promise, "body": stream.body,
        "seconds": seconds.as_secs_f64(), "repeats": repeats,
    });
    let table = Table::of_runs("cases", THROUGHPUT.to_vec(), all);
    let verdict = delivery.verdict(args.best_effort);
    Ok(bench.report(settings, vec![table], Some(delivery), verdict))
}

fn no_report() -> Failure {
    Failure::Failed("the sender sent no report".to_owned())
}

fn busiest(readers: &[RobotReport]) -> f64 {
    readers.iter().map(|reader| reader.used.cores()).fold(0.0, f64::max)
}

fn delivery_counts(sender: &RobotReport, reader: &RobotReport) -> DeliveryCounts {
    DeliveryCounts::of(&reader.received[0], &[sender.published[0].sent])
}

/// The comparisons of `latency`, `wait` and `trace`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    Nothing,
    /// Wait modes relative to the last one, on idle cores and next to one busy loop per core.
    Waits,
    /// A traced topic relative to an untraced one.
    Tracing,
}

pub fn latency(
    host: &mut BenchHost<'_>,
    args: &StreamOptions,
    compare: Compare,
) -> Outcome<BenchReport> {
    let (name, rates, waits, run) = match compare {
        Compare::Nothing => ("latency", &[10_000.0][..], &[Wait::Adaptive][..], (2.0, 3)),
        Compare::Waits => {
            let rates = &[100.0, 1000.0, 10_000.0][..];
            ("wait", rates, &[Wait::Adaptive, Wait::Block][..], (3.0, 5))
        }
        Compare::Tracing => ("trace", &[1000.0][..], &[Wait::Adaptive][..], (3.0, 5)),
    };
    let (seconds, repeats) = args.run.or(run.0, run.1);
    let rates = if args.rate.is_empty() { rates } else { &args.rate };
    let waits = if args.wait.is_empty() { waits } else { &args.wait };
    let loads = if compare == Compare::Waits { vec![0, cores().len()] } else { vec![0] };
    let traced: &[bool] = if compare == Compare::Tracing { &[false, true] } else { &[false] };
    let (mut streams, mut cases) = (Vec::new(), Vec::new());
    for &busy_loops in &loads {
        for &rate in rates {
            for &wait in waits {
                for &traced in traced {
                    streams.push(Stream {
                        len: args.size,
                        rate_hz: Some(rate),
                        readers: 1,
                        wait,
                        body: Body::Whole,
                        reliable: true,
                        urgent: args.urgent,
                        seconds,
                        busy_loops,
                        traced,
                    });
                    let labels = vec![
                        ("loops", json!(busy_loops)),
                        ("rate_hz", json!(rate)),
                        ("wait", json!(wait)),
                        ("traced", json!(traced)),
                    ];
                    cases.push(Case { labels, runs: Vec::new() });
                }
            }
        }
    }
    let lane = if args.urgent { "urgent" } else { "bulk" };
    let some = runs(repeats, seconds);
    let turns = if cases.len() > 1 { " in turns" } else { "" };
    let at = format!("{} B at {rates:?} Hz", args.size);
    let (waits_shown, size) = (json!(waits), args.size);
    let what = format!("{at}, reliable, {lane} lane, reader {waits_shown}, {some}{turns}");
    let bench = Bench::begin(host, name, what)?;
    let mut delivery = DeliveryCounts::default();
    for n in 0..repeats {
        for at in case_order(cases.len(), n) {
            let StreamResult { reports, records } = streams[at].run(&bench, n)?;
            let [sender, reader] = &reports[..] else { return Err(no_report()) };
            let mut figures = report::latencies(&reader.received[0].latencies).to_vec();
            let Published { sent, behind_max_ns } = sender.published[0];
            figures.extend([behind_max_ns as f64, sender.used.cores(), reader.used.cores()]);
            if compare == Compare::Tracing {
                figures.push(records as f64 / (sent as f64).max(1.0));
            }
            cases[at].runs.push(figures);
            delivery += delivery_counts(sender, reader);
        }
    }
    let figures = LATENCIES.into_iter().chain([BEHIND, THROUGHPUT[2], THROUGHPUT[3]]);
    let figures = figures.chain((compare == Compare::Tracing).then_some(TRACED));
    let mut table = Table { name: "cases", figures: figures.collect(), cases };
    let turns = match compare {
        Compare::Nothing => 0,
        Compare::Waits => waits.len(),
        Compare::Tracing => traced.len(),
    };
    if turns > 0 {
        // The last wait mode of the same rate and load; for tracing, the untraced topic.
        let first = |case: usize| case / turns * turns;
        let last = if compare == Compare::Waits { turns - 1 } else { 0 };
        for (name, key, at) in RATIOS {
            let figure = Figure::new(name, key, |ratio| format!("{ratio:.2}"));
            table.add_ratios(figure, at, |case| first(case) + last);
        }
    }
    let settings = json!({
        "rates_hz": rates, "size_bytes": size, "waits": waits, "lane": lane, "reliability": "reliable",
        "seconds": seconds.as_secs_f64(), "repeats": repeats,
    });
    let verdict = delivery.verdict(false);
    Ok(bench.report(settings, vec![table], Some(delivery), verdict))
}

/// The compared figures, by index.
const RATIOS: [(&str, &str, usize); 3] = [
    ("p50 ratio", "p50_ratio", 0),
    ("p99.9 ratio", "p999_ratio", 3),
    ("CPU ratio", "reader_cores_ratio", 7),
];

/// The order of the cases in a run.
fn case_order(cases: usize, run: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cases).collect();
    if !run.is_multiple_of(2) {
        order.reverse();
    }
    order
}

impl Stream {
    fn roles(&self) -> Vec<NamedRole> {
        let rate_hz = self.rate_hz.unwrap_or(f64::INFINITY);
        let job = |publishes, subscribes| {
            Role::Robot(RobotJob {
                publishes,
                subscribes,
                seconds: self.seconds,
                body: self.body,
                reliable: self.reliable,
                urgent: self.urgent,
                wait: self.wait,
            })
        };
        let publish = Publish {
            topic: TOPIC.to_owned(),
            index: 0,
            len: self.len,
            period_ns: 1e9 / rate_hz,
            shift_ns: 0.0,
            subscribers: self.readers,
        };
        let warm_up = (self.seconds.as_secs_f64() / 10.0).min(WARM_UP_SECONDS);
        let reader = |i: usize| {
            let source = Source { len: self.len, late_ns: u64::MAX, too_late_ns: u64::MAX };
            let timed_from = self.rate_hz.map(|rate_hz| (rate_hz * warm_up) as u64);
            let topic = TOPIC.to_owned();
            let subscribe = Subscribe { topic, sources: vec![source], timed_from };
            (format!("reader {i}"), job(Vec::new(), vec![subscribe]))
        };
        let sender = ("sender".to_owned(), job(vec![publish], Vec::new()));
        std::iter::once(sender).chain((1..=self.readers).map(reader)).collect()
    }

    fn run(&self, bench: &Bench, n: usize) -> Outcome<StreamResult> {
        let mut roles = self.roles();
        let streams = roles.len();
        if self.traced {
            roles.push(("tracer".to_owned(), Role::Tracer { topic: TOPIC.to_owned() }));
        }
        // They match on idle cores.
        let mut workers = bench.start_workers(n, roles)?;
        let busy = |core| (format!("loop {core}"), Role::Busy { core });
        workers.add(false, (0..self.busy_loops).map(busy).collect())?;
        // The sender last.
        workers.order((0..workers.len()).rev(), Order::phase(SEND_PHASE))?;
        let reports = collect(&mut workers, streams, self.seconds)?;
        let mut records = 0;
        workers.order(streams..workers.len(), Order::phase(COLLECT_PHASE))?;
        if self.traced {
            let report: TracerReport = workers.report(streams, self.seconds)?;
            records = report.records;
            if report.lost > 0 || records == 0 {
                let what = format!(
                    "the tracer has {records} records and lost {}: this run is not valid for tracing",
                    report.lost
                );
                return Err(Failure::Failed(what));
            }
        }
        workers.stop_all()?;
        Ok(StreamResult { reports, records })
    }
}

/// The reports of the first workers, which are robots, after everything is sent and read.
pub fn collect(
    workers: &mut Workers,
    robots: usize,
    seconds: Duration,
) -> Outcome<Vec<RobotReport>> {
    workers.wait_until_sent(robots, seconds)?;
    workers.order(0..robots, Order::phase(COLLECT_PHASE))?;
    (0..robots).map(|number| workers.report(number, seconds)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_order_alternates() {
        assert_eq!((case_order(3, 0), case_order(3, 1)), (vec![0, 1, 2], vec![2, 1, 0]));
    }
}
