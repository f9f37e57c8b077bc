//! `rnet bench death`: how soon the end of a process is noticed by those whom it concerns.
//!
//! One process after the other joins, holds everybody back, and is killed with SIGKILL. The clock runs from
//! just before the kill. With `--settle 0` a process is killed as soon as it has met its peers, when it is a
//! few milliseconds old; with `--apart` it is in a pid namespace of its own, as in another container.

use std::time::Duration;

use rnet_bench::worker::Order;
use serde::Serialize;
use serde_json::json;

use super::args::DeathArgs;
use super::crew::{Crew, can_be_apart};
use super::figure::{Latencies, Percentiles};
use super::job::GO;
use super::roles::Role;
use super::roles::death::{Noticed, VictimJob, WatcherJob};
use super::{Bench, as_latency};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::table;

/// One way in which a death is noticed.
#[derive(Debug, Serialize)]
struct Way {
    way: &'static str,
    min_ns: u64,
    #[serde(flatten)]
    percentiles: Percentiles,
}

impl Way {
    fn of(way: &'static str, deaths: &[(u64, Noticed)], at: fn(&Noticed) -> u64) -> Way {
        let passed =
            deaths.iter().map(|(killed_ns, noticed)| at(noticed).saturating_sub(*killed_ns));
        let mut latencies = Latencies::default();
        passed.clone().for_each(|ns| latencies.record(ns));
        Way { way, min_ns: passed.min().unwrap_or(0), percentiles: latencies.percentiles() }
    }

    fn cells(&self) -> Vec<String> {
        let p = &self.percentiles;
        let figures = [self.min_ns, p.p50_ns, p.p90_ns, p.p99_ns, p.max_ns];
        let mut cells = vec![self.way.to_owned(), p.count.to_string()];
        cells.extend(figures.map(table::latency));
        cells
    }
}

pub fn run(context: &mut Context, args: &DeathArgs) -> Outcome {
    let (kills, watchers) = (args.kills, usize::from(args.watchers));
    let place = if args.apart { "in pid namespaces of their own" } else { "beside the watchers" };
    let settle = as_latency(args.settle.as_nanos() as f64);
    let what = format_args!(
        "{kills} processes {place}, killed {settle} after they met {watchers} watchers"
    );
    if args.apart {
        can_be_apart()?;
    }
    let bench = Bench::begin(context, "death", what)?;
    let watcher = |n| (format!("watcher {n}"), Role::Watcher(WatcherJob { kills }));
    let mut crew = Crew::start(&bench.place, 0, (0..watchers).map(watcher).collect())?;
    let mut deaths: Vec<(u64, Noticed)> = Vec::with_capacity(kills as usize * watchers);
    for n in 0..kills {
        let job = VictimJob { watchers: args.watchers };
        let victim = crew.len();
        crew.add_in(args.apart, vec![(format!("victim {n}"), Role::Victim(job))])?;
        crew.order(0..watchers, Order::phase(GO))?;
        for number in 0..watchers {
            // Held back, every one of them.
            crew.report::<()>(number, Duration::ZERO)?;
        }
        crew.watch(args.settle)?;
        let killed_ns = crew.kill(victim)?;
        for number in 0..watchers {
            deaths.push((killed_ns, crew.report(number, Duration::ZERO)?));
        }
    }
    crew.dismiss()?;
    let ways = [
        Way::of("receive: PeerLost", &deaths, |n| n.peer_lost_ns),
        Way::of("on_match: Lost", &deaths, |n| n.match_event_ns),
        Way::of("on_node: Died", &deaths, |n| n.node_event_ns),
        Way::of("held send goes on", &deaths, |n| n.freed_ns),
    ];
    if context.json() {
        let settings = json!({
            "kills": kills,
            "watchers": watchers,
            "settle_s": args.settle.as_secs_f64(),
            "apart": args.apart,
        });
        bench.document(context, settings, json!({ "ways": ways }))?;
        return within(args, &ways);
    }
    let titles = ["NOTICED BY", "COUNT ", "MIN ", "P50 ", "P90 ", "P99 ", "MAX "];
    table::print(context, &titles, &ways.iter().map(Way::cells).collect::<Vec<_>>())?;
    within(args, &ways)
}

/// Whether the slowest notice came within the limit that was set.
fn within(args: &DeathArgs, ways: &[Way]) -> Outcome {
    let Some(limit) = args.limit else { return Ok(()) };
    let slowest = ways.iter().max_by_key(|way| way.percentiles.max_ns);
    let late = slowest.filter(|way| way.percentiles.max_ns > u64::from(limit) * 1_000_000);
    late.map_or(Ok(()), |way| {
        let took = table::latency(way.percentiles.max_ns);
        Err(Failure::Failed(format!(
            "a death was noticed too late: {} took {took}, the limit is {limit} ms",
            way.way
        )))
    })
}
