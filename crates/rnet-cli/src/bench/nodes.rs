//! `rnet bench nodes`: how long it takes many nodes to join, to meet, and to notice that a process with some
//! of them was killed.
//!
//! Each node has one publisher and one subscriber, and node *n* hears node *n + 1*, so that most pairs are of
//! two processes. Nodes share processes, as many processes would measure the machine and not robot-net.

use std::time::Duration;

use rnet_bench::worker::Order;
use serde::Serialize;
use serde_json::json;

use super::args::NodesArgs;
use super::crew::Crew;
use super::job::{COLLECT, GO};
use super::roles::Role;
use super::roles::idle::{JoinReport, JoinerJob};
use super::roles::nodes::{DeathReport, MetReport, NodesJob, WAIT_LIMIT, topic};
use super::{Bench, Spread, as_latency};
use crate::context::Context;
use crate::failure::Outcome;
use crate::table;

/// How often a node more joins.
const JOINS: u32 = 11;

/// What one number of nodes took.
#[derive(Debug, Serialize)]
struct Figures {
    nodes: usize,
    processes: usize,
    /// From the order to join until the last process had all its nodes and endpoints open.
    open_ns: u64,
    /// From the same order until the last pair had met.
    met_ns: u64,
    /// Until a node more that joins is served by one that is there.
    join_ns: Spread,
    /// Nodes that were killed, all of one process.
    killed: usize,
    /// From the kill until the last of the other processes knew of all of them.
    noticed_ns: u64,
    /// Descriptors that the process with the most had open.
    descriptors: usize,
}

impl Figures {
    fn cells(&self) -> Vec<String> {
        let ns = |ns: u64| table::latency(ns);
        vec![
            self.nodes.to_string(),
            self.processes.to_string(),
            ns(self.open_ns),
            ns(self.met_ns),
            as_latency(self.join_ns.median),
            self.killed.to_string(),
            ns(self.noticed_ns),
            self.descriptors.to_string(),
        ]
    }
}

pub fn run(context: &mut Context, args: &NodesArgs) -> Outcome {
    let processes = usize::from(args.processes);
    let what = format_args!("domains of {:?} nodes, in at most {processes} processes", args.nodes);
    let bench = Bench::begin(context, "nodes", what)?;
    let measure = |(run, nodes): (usize, &u16)| one(&bench, run as u32, *nodes, processes);
    let figures = args.nodes.iter().enumerate().map(measure).collect::<Outcome<Vec<_>>>()?;
    if context.json() {
        let settings = json!({ "nodes": args.nodes, "processes": processes });
        return bench.document(context, settings, json!({ "domains": figures }));
    }
    let titles =
        ["NODES ", "PROCESSES ", "OPEN ", "MET ", "ONE MORE ", "KILLED ", "NOTICED ", "FDS "];
    table::print(context, &titles, &figures.iter().map(Figures::cells).collect::<Vec<_>>())
}

/// Measures a domain of so many nodes.
fn one(bench: &Bench, run: u32, nodes: u16, processes: usize) -> Outcome<Figures> {
    let all = usize::from(nodes);
    let processes = processes.min(all);
    let first = |process: usize| process * all / processes;
    let count = |process: usize| first(process + 1) - first(process);
    let victim = processes - 1;
    let killed = count(victim);
    let post = |n: usize| {
        let job = NodesJob { first: first(n), count: count(n), all, killed };
        (format!("nodes {n}"), Role::Nodes(job))
    };
    let mut crew = Crew::start(&bench.place, run, (0..processes).map(post).collect())?;
    let began_ns = rnet::now_ns();
    crew.order(0..processes, Order::phase(GO))?;
    let (mut open_ns, mut met_ns, mut descriptors) = (0, 0, 0);
    for number in 0..processes {
        let met: MetReport = crew.report(number, WAIT_LIMIT)?;
        open_ns = open_ns.max(met.open_ns.saturating_sub(began_ns));
        met_ns = met_ns.max(met.met_ns.saturating_sub(began_ns));
        descriptors = descriptors.max(met.descriptors);
    }
    let joiner = Role::Joiner(JoinerJob { topic: topic(0, all), times: JOINS });
    crew.add(vec![("joining".to_owned(), joiner)])?;
    crew.order([processes], Order::phase(GO))?;
    let join: JoinReport = crew.report(processes, WAIT_LIMIT)?;
    let join_ns = Spread::of(join.join_ns.iter().map(|&ns| ns as f64));
    let killed_ns = crew.kill(victim)?;
    crew.order(0..victim, Order::phase(COLLECT))?;
    let mut noticed_ns = 0;
    for number in 0..victim {
        let death: DeathReport = crew.report(number, WAIT_LIMIT)?;
        noticed_ns = noticed_ns.max(death.noticed_ns.saturating_sub(killed_ns));
    }
    crew.watch(Duration::ZERO)?;
    crew.dismiss()?;
    Ok(Figures { nodes: all, processes, open_ns, met_ns, join_ns, killed, noticed_ns, descriptors })
}
