//! The cost of idle nodes, the time that nodes take to join and match, and the time to detect a death.
//!
//! Each node has one publisher and one subscriber, and node *n* subscribes to node *n + 1*. Nodes of a large
//! domain share processes, because as many processes would measure the machine and not robot-net. For
//! `death`, one process after the other joins, blocks all watchers, and is killed with SIGKILL. The clock
//! starts just before the kill. With `--settle 0` a process is killed as soon as it has met its peers, when
//! it is a few milliseconds old; with `--apart` it is in its own pid namespace, as in another container.

use std::time::Duration;

use crate::worker::Order;
use serde_json::json;

use super::figure::{Latencies, RunSpread};
use super::options::{DeathOptions, IdleOptions, NodesOptions};
use super::report::{self, Case, Figure, LATENCIES, Table};
use super::roles::death::{DETECTION_METHODS, DetectionTimes};
use super::roles::nodes::{EndReport, JoinReport, MatchReport, NodesJob, WAIT_LIMIT, topic};
use super::worker::Role;
use super::worker_link::{COLLECT_PHASE, SEND_PHASE};
use super::workers::{Workers, check_pid_namespaces};
use super::{Bench, BenchHost, BenchReport, report::latency};
use rnet_format::units;
use rnet_format::{Failure, Outcome};

const IDLE_FIGURES: [Figure; 4] = [
    Figure::new("CPU", "cores", |share| format!("{:.4} %", share * 100.0)),
    Figure::new("wake-ups/s", "wakeups_per_s", |n| format!("{n:.2}")),
    Figure::new("memory", "rss_bytes", units::bytes),
    Figure::new("the node", "node_rss_bytes", units::bytes),
];
const JOIN: Figure = Figure::new("join", "join_ns", latency);
const SMALL_TOPIC: Figure = Figure::new("small topic", "topic_bytes", units::bytes);
const NODES_FIGURES: [Figure; 5] = [
    Figure::new("open", "open_ns", latency),
    Figure::new("met", "met_ns", latency),
    Figure::new("one more", "join_ns", latency),
    Figure::new("noticed", "noticed_ns", latency),
    Figure::new("fds", "descriptors", report::count),
];
const DEATHS: Figure = Figure::new("count", "count", report::count);
const FASTEST: Figure = Figure::new("min", "min_ns", latency);

pub fn idle(host: &mut BenchHost<'_>, args: &IdleOptions) -> Outcome<BenchReport> {
    let (nodes, seconds) = (usize::from(args.nodes), args.seconds.as_secs_f64());
    let what = format!("{nodes} nodes, each with a publisher and a callback, for {seconds} s");
    let bench = Bench::begin(host, "idle", what)?;
    let job = |i| NodesJob { first: i, count: 1, all: nodes, callbacks: true, killed: 0 };
    let roles = (0..nodes).map(|i| (format!("idle {i}"), Role::Nodes(job(i))));
    let mut workers = bench.start_workers(0, roles.collect())?;
    let met = collect_match_reports(&mut workers)?;
    workers.run_for(args.seconds)?;
    workers.order(0..nodes, Order::phase(COLLECT_PHASE))?;
    let mut idle = Vec::with_capacity(nodes);
    for (number, met) in met.iter().enumerate() {
        let EndReport { used, .. } = workers.report(number, Duration::ZERO)?;
        let bytes = [used.rss_bytes, met.nodes_rss_bytes].map(|bytes| bytes as f64);
        idle.push(vec![used.cores(), used.wakeups_per_s(), bytes[0], bytes[1]]);
    }
    let JoinReport { join_ns, topic_bytes } = collect_join_report(&mut workers, nodes)?;
    workers.stop_all()?;
    let joins = join_ns.iter().map(|ns| vec![*ns as f64, topic_bytes as f64]).collect();
    let settings = json!({ "nodes": nodes, "seconds": seconds });
    let tables = vec![
        Table::of_runs("nodes", IDLE_FIGURES.to_vec(), idle),
        Table::of_runs("joins", vec![JOIN, SMALL_TOPIC], joins),
    ];
    Ok(bench.report(settings, tables, None, Ok(())))
}

/// Makes the nodes of all workers join, and waits until each pair is matched.
fn collect_match_reports(workers: &mut Workers) -> Outcome<Vec<MatchReport>> {
    let count = workers.len();
    workers.order(0..count, Order::phase(SEND_PHASE))?;
    (0..count).map(|number| workers.report(number, WAIT_LIMIT)).collect()
}

/// Makes one more node join.
fn collect_join_report(workers: &mut Workers, nodes: usize) -> Outcome<JoinReport> {
    let number = workers.len();
    workers.add(false, vec![("joining".to_owned(), Role::Joiner { topic: topic(0, nodes) })])?;
    workers.order([number], Order::phase(SEND_PHASE))?;
    workers.report(number, WAIT_LIMIT)
}

pub fn nodes(host: &mut BenchHost<'_>, args: &NodesOptions) -> Outcome<BenchReport> {
    let processes = usize::from(args.processes);
    let what = format!("domains of {:?} nodes, in at most {processes} processes", args.nodes);
    let bench = Bench::begin(host, "nodes", what)?;
    let mut cases = Vec::new();
    for (run, nodes) in args.nodes.iter().enumerate() {
        cases.push(one_domain(&bench, run, usize::from(*nodes), processes)?);
    }
    let settings = json!({ "nodes": args.nodes, "processes": processes });
    let table = Table { name: "cases", figures: NODES_FIGURES.to_vec(), cases };
    Ok(bench.report(settings, vec![table], None, Ok(())))
}

/// Measures a domain with this many nodes, and kills the last of its processes.
fn one_domain(bench: &Bench, run: usize, all: usize, processes: usize) -> Outcome<Case> {
    let processes = processes.min(all);
    let first = |process: usize| process * all / processes;
    let count = |process: usize| first(process + 1) - first(process);
    let victim = processes - 1;
    let killed = count(victim);
    let role = |n: usize| {
        let job = NodesJob { first: first(n), count: count(n), all, callbacks: false, killed };
        (format!("nodes {n}"), Role::Nodes(job))
    };
    let mut workers = bench.start_workers(run, (0..processes).map(role).collect())?;
    let began_ns = rnet::now_ns();
    let met = collect_match_reports(&mut workers)?;
    let most = |of: fn(&MatchReport) -> u64| met.iter().map(of).max().unwrap_or(0);
    let since = |from_ns: u64, ns: u64| ns.saturating_sub(from_ns) as f64;
    let JoinReport { join_ns, .. } = collect_join_report(&mut workers, all)?;
    let join = RunSpread::of(join_ns.iter().map(|&ns| ns as f64));
    let killed_ns = workers.kill(victim)?;
    workers.order(0..victim, Order::phase(COLLECT_PHASE))?;
    let mut noticed_ns = 0;
    for number in 0..victim {
        let end: EndReport = workers.report(number, WAIT_LIMIT)?;
        noticed_ns = noticed_ns.max(end.noticed_ns);
    }
    workers.run_for(Duration::ZERO)?;
    workers.stop_all()?;
    let labels = [("nodes", all), ("processes", processes), ("killed", killed)];
    let figures = vec![
        // From the order to join until the last process had opened all its nodes, and until the last pair was
        // matched.
        since(began_ns, most(|met| met.open_ns)),
        since(began_ns, most(|met| met.met_ns)),
        join.map_or(f64::NAN, |join| join.median),
        // From the kill until the last of the other processes knew of all dead nodes.
        since(killed_ns, noticed_ns),
        most(|met| met.descriptors as u64) as f64,
    ];
    let labels = labels.map(|(name, count)| (name, json!(count))).to_vec();
    Ok(Case { labels, runs: vec![figures] })
}

pub fn death(host: &mut BenchHost<'_>, args: &DeathOptions) -> Outcome<BenchReport> {
    let (kills, watchers) = (args.kills, usize::from(args.watchers));
    let place = if args.apart { "in their own pid namespaces" } else { "next to the watchers" };
    let settle = latency(args.settle.as_nanos() as f64);
    let what =
        format!("{kills} processes {place}, killed {settle} after they met {watchers} watchers");
    if args.apart {
        check_pid_namespaces()?;
    }
    let bench = Bench::begin(host, "death", what)?;
    let watcher = |n| (format!("watcher {n}"), Role::Watcher { kills });
    let mut workers = bench.start_workers(0, (0..watchers).map(watcher).collect())?;
    let mut passed: [Vec<u64>; DETECTION_METHODS.len()] = Default::default();
    for n in 0..kills {
        let victim = workers.len();
        workers.add(args.apart, vec![(format!("victim {n}"), Role::Victim { watchers })])?;
        workers.order(0..watchers, Order::phase(SEND_PHASE))?;
        for number in 0..watchers {
            // All of them are blocked.
            workers.report::<()>(number, Duration::ZERO)?;
        }
        workers.run_for(args.settle)?;
        let killed_ns = workers.kill(victim)?;
        for number in 0..watchers {
            let noticed: DetectionTimes = workers.report(number, Duration::ZERO)?;
            for (passed, ns) in passed.iter_mut().zip(noticed) {
                passed.push(ns.saturating_sub(killed_ns));
            }
        }
    }
    workers.stop_all()?;
    let case = |(way, all): (&&str, &Vec<u64>)| {
        let mut latencies = Latencies::default();
        all.iter().for_each(|ns| latencies.record(*ns));
        let first = [all.len() as f64, all.iter().min().map_or(f64::NAN, |ns| *ns as f64)];
        let run = [&first, &report::latencies(&latencies)[..]].concat();
        Case { labels: vec![("noticed by", json!(way))], runs: vec![run] }
    };
    let cases = DETECTION_METHODS.iter().zip(&passed).map(case).collect();
    let figures = [&[DEATHS, FASTEST], &LATENCIES[..]].concat();
    let settings = json!({
        "kills": kills, "watchers": watchers, "settle_s": args.settle.as_secs_f64(), "apart": args.apart,
    });
    let table = Table { name: "cases", figures, cases };
    let verdict = check_limit(args.limit, &passed);
    Ok(bench.report(settings, vec![table], None, verdict))
}

/// Checks that the slowest detection came within the limit.
fn check_limit(limit_ms: Option<u32>, passed: &[Vec<u64>]) -> Outcome {
    let Some(limit_ms) = limit_ms else { return Ok(()) };
    let worst = |(way, all): (&&'static str, &Vec<u64>)| Some((*all.iter().max()?, *way));
    match DETECTION_METHODS.iter().zip(passed).filter_map(worst).max() {
        Some((ns, way)) if ns > u64::from(limit_ms) * 1_000_000 => {
            let took = units::latency(ns);
            Err(Failure::Failed(format!(
                "a death was detected too late: {way} took {took}, but the limit is {limit_ms} ms"
            )))
        }
        _ => Ok(()),
    }
}
