//! `rnet bench idle`: what nodes cost that have nothing to say.

use std::time::Duration;

use rnet_bench::worker::Order;
use serde_json::json;

use super::args::IdleArgs;
use super::crew::Crew;
use super::job::{COLLECT, GO};
use super::roles::Role;
use super::roles::idle::{IdleJob, IdleReport, JoinReport, JoinerJob};
use super::usage::Used;
use super::{Bench, Spread, as_bytes, as_latency, as_percent, row, spread};
use crate::context::Context;
use crate::failure::Outcome;

/// How often a node joins, to find out how long it takes.
const JOINS: u32 = 21;

pub fn run(context: &mut Context, args: &IdleArgs) -> Outcome {
    let (nodes, seconds) = (usize::from(args.nodes), args.seconds.as_secs_f64());
    let what = format_args!("{nodes} nodes, each with a publisher and a callback, for {seconds} s");
    let bench = Bench::begin(context, "idle", what)?;
    let topic = |i: usize| format!("/idle/topic_{}", i % nodes);
    let posts = (0..nodes).map(|i| {
        let job = IdleJob { publishes: topic(i), subscribes: topic(i + 1) };
        (format!("idle {i}"), Role::Idle(job))
    });
    let mut crew = Crew::start(&bench.place, 0, posts.collect())?;
    crew.order(0..nodes, Order::phase(GO))?;
    crew.watch(args.seconds)?;
    crew.order(0..nodes, Order::phase(COLLECT))?;
    let mut idle: Vec<IdleReport> = Vec::with_capacity(nodes);
    for number in 0..nodes {
        idle.push(crew.report(number, Duration::ZERO)?);
    }
    let joiner = Role::Joiner(JoinerJob { topic: topic(0), times: JOINS });
    crew.add(vec![("joining".to_owned(), joiner)])?;
    crew.order([nodes], Order::phase(GO))?;
    let join: JoinReport = crew.report(nodes, Duration::ZERO)?;
    crew.dismiss()?;

    let cores = spread(&idle, |r| r.used.cores());
    let all_cores: f64 = idle.iter().map(|r| r.used.cores()).sum();
    let wakeups = spread(&idle, |r| Used::wakeups_per_s(&r.used));
    let rss = spread(&idle, |r| r.used.rss_bytes as f64);
    let node_rss = spread(&idle, |r| r.node_rss_bytes as f64);
    let join_ns = Spread::of(join.join_ns.iter().map(|&ns| ns as f64));
    if context.json() {
        let settings = json!({ "nodes": nodes, "seconds": seconds });
        let result = json!({
            "cores": cores,
            "all_cores": all_cores,
            "wakeups_per_s": wakeups,
            "rss_bytes": rss,
            "node_rss_bytes": node_rss,
            "join_ns": join_ns,
            "small_topic": {
                "used_bytes": join.topic_used_bytes,
                "reserved_bytes": join.topic_reserved_bytes,
            },
            "nodes": idle,
        });
        return bench.document(context, settings, result);
    }
    let share = |v: f64| format!("{:.4} %", v * 100.0);
    let all = as_percent(all_cores);
    row(context, "CPU", format_args!("{} of a core each, {all} all", cores.show(share)))?;
    let per_s = |v: f64| format!("{v:.2}");
    row(context, "wake-ups/s", format_args!("{} each", wakeups.show(per_s)))?;
    let (rss, node_rss) = (rss.show(as_bytes), node_rss.show(as_bytes));
    row(context, "memory", format_args!("{rss} RSS each; of it the node {node_rss}"))?;
    let topic = as_bytes(join.topic_used_bytes as f64);
    row(context, "small topic", format_args!("{topic} of shared memory, with one subscriber"))?;
    let join = join_ns.show(as_latency);
    row(context, "join", format_args!("{join} until a new node's subscriber is served"))
}
