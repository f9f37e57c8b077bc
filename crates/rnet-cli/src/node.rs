//! `rnet node …`.

pub mod args;
mod control;
mod logs;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rnet::NodeEvent;
use rnet::inspect::{
    NodeInfo, NodeMeta, PublisherInfo, RemoteNode, Snapshot, SubscriptionInfo, is_internal,
};
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::snapshot::{check_host, not_found, take_snapshot};
use crate::{domain, param, signal, table};
use args::{NodeCommand, NodeListArgs};
use rnet_format::text::escape_controls;
use rnet_monitor::link::{host_of, own_host};
use rnet_monitor::type_name;

/// How long a watch sleeps at most: a signal that arrives just before it falls asleep does not wake it.
const WATCH_SLEEP: Duration = Duration::from_secs(1);

pub fn run(context: &mut Context, command: NodeCommand) -> Outcome {
    match command {
        NodeCommand::List(args) if args.watch => watch(context, args),
        NodeCommand::List(args) => list(context, args),
        NodeCommand::Info { any_node, all } => info(context, &any_node, all),
        NodeCommand::Kill { node } => control::kill(context, &node),
        NodeCommand::Stop { node } => control::stop(context, &node),
        NodeCommand::Restart { node } => control::restart(context, &node),
        NodeCommand::Logs(args) => logs::run(context, &args),
    }
}

fn unix_now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn uptime(meta: &NodeMeta) -> Duration {
    Duration::from_nanos(rnet::boot_ns().saturating_sub(meta.started_boot_ns))
}

/// A node as JSON, including the computed uptime.
fn document(node: &NodeInfo) -> Outcome<Value> {
    let mut value = serde_json::to_value(node).map_err(std::io::Error::from)?;
    value["uptime_s"] = uptime(&node.meta).as_secs_f64().into();
    Ok(value)
}

fn list(context: &mut Context, args: NodeListArgs) -> Outcome {
    let (domain, mut snapshot) = take_snapshot(context)?;
    if snapshot.nodes.is_empty() {
        domain::report_none_found(context, "nodes")?;
    }
    let (own, others) = (own_host(&snapshot), !snapshot.remote.is_empty());
    if let Some(host) = &args.host {
        let is_there = |node: &RemoteNode| host_of(&node.node).0 == Some(host.as_str());
        check_host(&snapshot, &own, host)?;
        snapshot.nodes.retain(|_| *host == own);
        snapshot.remote.retain(is_there);
    }
    if context.json() {
        let nodes = snapshot.nodes.iter().map(document).collect::<Outcome<Vec<_>>>()?;
        let remote = &snapshot.remote;
        return context.document(
            &json!({"domain": domain.id(), "host": own, "nodes": nodes, "remote": remote}),
        );
    }
    if args.verbose {
        let rows = snapshot.nodes.iter().map(|node| {
            let meta = &node.meta;
            vec![
                meta.name.clone(),
                meta.pid.to_string(),
                table::uptime(uptime(meta)),
                meta.language.clone(),
                meta.version.clone(),
                meta.program.clone(),
                own.clone(),
            ]
        });
        // Nothing more is known about the nodes of other hosts.
        let remote = snapshot.remote.iter().map(|node| {
            let mut row = vec!["-".to_owned(); 7];
            let (host, name) = host_of(&node.node);
            row[0] = name.to_owned();
            row[6] = host.unwrap_or("-").to_owned();
            row
        });
        let mut titles = vec!["NODE", "PID ", "UPTIME", "LANGUAGE", "VERSION", "PROGRAM"];
        let mut rows: Vec<_> = rows.chain(remote).collect();
        // If all nodes are on one host, its name is omitted.
        match others {
            false => rows.iter_mut().for_each(|row| row.truncate(titles.len())),
            true => titles.push("HOST"),
        }
        return table::print(context, &titles, &rows);
    }
    for node in &snapshot.nodes {
        context.line(format_args!("{}", node.meta.name))?;
    }
    for remote in &snapshot.remote {
        context.line(format_args!("{}", remote.node))?;
    }
    Ok(())
}

fn watch(context: &mut Context, args: NodeListArgs) -> Outcome {
    let mut watcher = context.domain()?.watch_nodes()?;
    let deadline = args.timeout.and_then(|t| Instant::now().checked_add(t));
    let mut first = true;
    loop {
        let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
        for event in watcher.wait(WATCH_SLEEP.min(left.unwrap_or(WATCH_SLEEP)))? {
            let (word, node) = match &event {
                NodeEvent::Joined(node) if first => ("present", node),
                NodeEvent::Joined(node) => ("joined", node),
                NodeEvent::Left(node) => ("left", node),
                NodeEvent::Died(node) => ("died", node),
                _ => continue,
            };
            if context.json() {
                let at = unix_now().as_nanos() as u64;
                context.json_line(&json!({"event": word, "node": node, "unix_ns": at}))?;
            } else {
                context.line(format_args!("{word:<7} {node}"))?;
            }
        }
        first = false;
        context.flush()?;
        if signal::stop_requested() {
            return Err(Failure::Interrupted);
        }
        if deadline.is_some_and(|end| Instant::now() >= end) {
            return Ok(());
        }
    }
}

fn info(context: &mut Context, name: &str, all: bool) -> Outcome {
    let (domain, mut snapshot) = take_snapshot(context)?;
    if !all {
        snapshot.publishers.retain(|p| !is_internal(&p.topic));
        snapshot.subscriptions.retain(|s| !is_internal(&s.topic));
        for node in &mut snapshot.nodes {
            node.publishes.retain(|topic| !is_internal(topic));
            node.subscribes.retain(|topic| !is_internal(topic));
        }
    }
    if let Some(node) = snapshot.remote.iter().find(|node| node.node == name) {
        return info_of_remote(context, &snapshot, node);
    }
    let Some(node) = snapshot.node(name) else {
        let names = snapshot.nodes.iter().map(|n| n.meta.name.as_str());
        let names = names.chain(snapshot.remote.iter().map(|node| node.node.as_str()));
        return Err(not_found("node", domain.id(), name, names));
    };
    // An endpoint's id begins with its node's incarnation, but the name is sufficient: a domain has no two
    // nodes with the same name.
    let publishers = snapshot.publishers.iter().filter(|p| p.node == node.meta.name);
    let subscribers = snapshot.subscriptions.iter().filter(|s| s.node == node.meta.name);
    let params = param::of_node(context, &node.meta.name).unwrap_or_else(|failure| {
        let why = failure.to_string();
        context.note(&format!("cannot read the parameters: {why}"));
        Vec::new()
    });
    if context.json() {
        let mut value = document(node)?;
        value["publishers"] = json!(publishers.collect::<Vec<_>>());
        value["subscribers"] = json!(subscribers.collect::<Vec<_>>());
        value["parameters"] =
            params.iter().map(|(node, name, info)| param::document(node, name, info)).collect();
        return context.document(&value);
    }
    let meta = &node.meta;
    context.heading(&meta.name)?;
    let up = table::uptime(uptime(meta));
    let place = if meta.is_in_our_pid_namespace() { "" } else { " in another container" };
    let process = format!("pid {}{place}, user {}, up {up}", meta.pid, meta.uid);
    let language = format!("{}, robot-net {}", meta.language, meta.version);
    for (word, what) in [("Process", &process), ("Program", &meta.program), ("Language", &language)]
    {
        context.line(format_args!("  {word}: {what}"))?;
    }
    endpoint_rows(context, subscribers, publishers)?;
    section(context, "Parameters", params.iter().map(|of| param::row(of)[1..].to_vec()).collect())
}

/// What is known about a node of another host: its topics that cross to this host.
fn info_of_remote(context: &mut Context, snapshot: &Snapshot, node: &RemoteNode) -> Outcome {
    let (host, name) = host_of(&node.node);
    let host = host.unwrap_or("-");
    let publishers = snapshot.publishers.iter().filter(|p| p.node == node.node);
    let subscribers = snapshot.subscriptions.iter().filter(|s| s.node == node.node);
    if context.json() {
        let mut value = serde_json::to_value(node).map_err(std::io::Error::from)?;
        value["host"] = host.into();
        value["publishers"] = json!(publishers.collect::<Vec<_>>());
        value["subscribers"] = json!(subscribers.collect::<Vec<_>>());
        return context.document(&value);
    }
    context.heading(&escape_controls(&node.node))?;
    let (host, name) = (escape_controls(host), escape_controls(name));
    context.line(format_args!(
        "  Host: {host}; run rnet node info {name} there to show its process"
    ))?;
    endpoint_rows(context, subscribers, publishers)
}

/// Topics and types, in the order of ROS 2.
fn endpoint_rows<'a>(
    context: &mut Context,
    subscribers: impl Iterator<Item = &'a SubscriptionInfo>,
    publishers: impl Iterator<Item = &'a PublisherInfo>,
) -> Outcome {
    let subscribers = subscribers.map(|s| vec![s.topic.clone(), type_name(&s.type_desc).into()]);
    let publishers = publishers.map(|p| vec![p.topic.clone(), type_name(&p.type_desc).into()]);
    section(context, "Subscribers", subscribers.collect())?;
    section(context, "Publishers", publishers.collect())
}

/// Prints a section of the description, unless it is empty.
fn section(context: &mut Context, title: &str, rows: Vec<Vec<String>>) -> Outcome {
    if rows.is_empty() {
        return Ok(());
    }
    context.heading(&format!("  {title}:"))?;
    table::lines(&rows, table::MAX_COLUMNS - 4, context.on_terminal())
        .iter()
        .try_for_each(|line| context.line(format_args!("    {line}")))
}
