//! `rnet status`: whether a domain is healthy, for people, service managers and probes.

use std::time::Duration;

use clap::Args;
use rnet::NodeName;
use rnet::inspect::Domain;
use rnet_monitor::link::report_missing_program;
use rnet_monitor::{DomainSnapshot, Figures, Finding, Findings, Level, problems};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::shared_args::interval;
use crate::signal;

#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Nodes that must be running; a missing one is a problem
    #[arg(value_name = "NODE")]
    pub nodes: Vec<NodeName>,
    /// Seconds over which losses and missed deadlines are counted
    #[arg(long = "over", value_name = "S", default_value = "1", value_parser = interval)]
    pub over: Duration,
}

pub fn run(context: &mut Context, args: &StatusArgs) -> Outcome {
    let mut domain = context.domain()?;
    let before = DomainSnapshot::new(&mut domain)?;
    signal::sleep(args.over)?;
    let now = DomainSnapshot::new(&mut domain)?;
    let figures = Figures::new(&before, &now);
    let problems = problems(&before, &now, &figures);
    let figures = figures.without_internal();
    let missing = args.nodes.iter().map(|node| node.as_str()).filter(|wanted| {
        !figures.nodes.iter().any(|node| node.node == *wanted && node.state != "ended")
    });
    let mut found: Vec<Finding> = missing.map(missing_node).collect();
    let mut link = Findings::default();
    // A file in the working directory is only a guess, and a probe must not restart what works.
    let by_variable = ["RNET_NETWORK", "RNET_LISTEN", "RNET_CONNECT", "RNET_CONFIG"]
        .into_iter()
        .any(|name| std::env::var_os(name).is_some());
    if let (None, true, Err(why)) = (&now.link, by_variable, rnet::link::find_program(None)) {
        report_missing_program(&mut link, why);
    }
    // Notes alone do not count: a probe restarts what it watches.
    found.extend(problems.into_iter().chain(link.0).filter(|f| f.level == Level::Problem));
    let was_launched = now.launched.iter().any(|record| record.keeper.is_of_this_boot());
    print(context, &domain, &figures, &found, was_launched)?;
    if found.is_empty() { Ok(()) } else { Err(Failure::AlreadyReported) }
}

fn missing_node(node: &str) -> Finding {
    Finding {
        level: Level::Problem,
        check: "node",
        what: format!("node {node} is not running"),
        advice: Some("start it; see rnet node list for the nodes of the domain".to_owned()),
    }
}

fn print(
    context: &mut Context,
    domain: &Domain,
    figures: &Figures,
    found: &[Finding],
    was_launched: bool,
) -> Outcome {
    let is_down = figures.nodes.is_empty() && was_launched;
    let (nodes, topics, hosts) = (figures.nodes.len(), figures.topics.len(), figures.hosts.len());
    if context.json() {
        return context.document(&json!({
            "domain": domain.id(),
            "ok": found.is_empty(),
            "nodes": nodes,
            "topics": topics,
            "hosts": hosts,
            "problems": found,
        }));
    }
    let of = |count: usize, what: &str| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {what}{plural}")
    };
    let (nodes, topics) = (of(nodes, "node"), of(topics, "topic"));
    let hosts = if hosts > 0 { format!(", {}", of(hosts, "other host")) } else { String::new() };
    context.line(format_args!("domain {}: {nodes}, {topics}{hosts}", domain.id()))?;
    context.findings(found)?;
    match found.is_empty() {
        true if is_down => context.line(format_args!(
            "all is well: all nodes started by rnet launch were stopped or have exited"
        )),
        true => context.line(format_args!("all is well")),
        false => Ok(()),
    }
}
