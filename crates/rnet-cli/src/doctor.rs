//! `rnet doctor`: why does A not hear B?
//!
//! Looks at a domain from outside and says in words what is wrong and what to do about it:
//! - this file: the question, the answer, and the order of the checks;
//! - `place`: the directory, the machine's limits, other domains, nodes that died;
//! - `deployed`: what removes the directory, and what keeps containers apart;
//! - `network`: the link, and why another host is not reached;
//! - `realtime`: what the machine lacks for low latency (`--realtime`).
//!
//! Who publishes what to whom, and why it does not arrive, is found by `rnet_monitor::matching`; what else a robot may suffer
//! from (clocks, the launch, disks), by `rnet_monitor::health`.
//! Looking changes nothing in the domain, except that nodes whose process has died are swept up,
//! as every node does that sees them.

mod deployment;
mod host_checks;
mod network;
mod realtime;

use rnet::TopicName;
use rnet::inspect::{Domain, Location, Snapshot};
use rnet_launch::{Record, RunFolder};
use rnet_monitor::{
    DomainSnapshot, Figures, Finding, Findings, Level, commands, health, link, matching, problems,
    recorders,
};

use crate::args::DoctorArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};

pub fn run(context: &mut Context, args: DoctorArgs) -> Outcome {
    if args.realtime {
        return realtime::run(context);
    }
    let location = context.location()?;
    let Findings(findings) = diagnose(&location, &args);
    let problems = findings.iter().filter(|f| f.level == Level::Problem).count();
    let (id, path) = (location.id(), location.path());
    if context.json() {
        context.document(&serde_json::json!({
            "domain": id,
            "path": path,
            "findings": findings,
            "problems": problems,
        }))?;
    } else {
        context.heading(&format!("domain {id} at {}", path.display()))?;
        context.findings(&findings)?;
        match problems {
            0 => context.line(format_args!("all is well"))?,
            1 => context.line(format_args!("1 problem"))?,
            n => context.line(format_args!("{n} problems"))?,
        }
    }
    if problems == 0 { Ok(()) } else { Err(Failure::AlreadyReported) }
}

/// Examines a domain. What goes wrong is a finding.
fn diagnose(location: &Location, args: &DoctorArgs) -> Findings {
    let mut findings = Findings::default();
    host_checks::machine(&mut findings);
    let usable = host_checks::directory(&mut findings, location);
    deployment::directory_removed(&mut findings, location);
    if !usable {
        return findings;
    }
    // Before the first look, which sweeps them up.
    let dead = host_checks::dead_nodes(&mut findings, location);
    let snapshots = location.domain().and_then(|mut domain| take_two_snapshots(&mut domain));
    let snapshots = snapshots.map_err(|error| {
        let advice = "if no node is running, remove it; otherwise use another RNET_DIR";
        findings.problem("directory", error.to_string(), advice);
    });
    let none = Snapshot::default();
    let snapshot = snapshots.as_ref().map_or(&none, |(_, now)| &now.snapshot);
    let topic = args.topic.as_ref().map(TopicName::as_str);
    let mut status = link::last_status(snapshot);
    if let Some(name) = &args.host {
        let host = link::Host { name, is_own: *name == link::own_host(snapshot) };
        network::limit_to_host(&mut findings, &mut status, host);
        network::network(&mut findings, location, status.as_ref());
        status.iter().for_each(|status| health::clocks(&mut findings, status));
        matching::check_topics(&mut findings, snapshot, topic, Some(host));
        return findings;
    }
    let nodes = snapshot.nodes.len();
    host_checks::foreign_leftovers(&mut findings, location);
    host_checks::capacity(&mut findings, location.path(), nodes);
    host_checks::black_box(&mut findings, location.path(), snapshot);
    deployment::directory_risks(&mut findings, location.path(), nodes);
    host_checks::versions(&mut findings, snapshot);
    let others = host_checks::other_domains(&mut findings, location, nodes);
    network::network(&mut findings, location, status.as_ref());
    status.iter().for_each(|status| health::clocks(&mut findings, status));
    if let Ok(folder) = RunFolder::of_domain(location.path(), &|name| std::env::var_os(name)) {
        let records = Record::all(&folder);
        health::launched(&mut findings, &records);
        health::black_box(&mut findings, snapshot, !records.is_empty());
        health::disk(&mut findings, "durable state and logs", folder.path());
    }
    recorders::check(&mut findings, location.path());
    if let Ok(here) = std::env::current_dir() {
        health::disk(&mut findings, "recordings in this directory", &here);
    }
    if let Some((a, b)) = args.to.as_ref().zip(args.from.as_ref()) {
        let known = matching::DoctorInput { snapshot, dead: &dead, others: &others };
        matching::check_two_nodes(&mut findings, &known, a, b, topic);
    } else {
        matching::check_topics(&mut findings, snapshot, topic, None);
    }
    if let Ok((before, now)) = &snapshots {
        // What status, top and the dashboard go by: none of them knows of a problem that is not here. Whoever asks about
        // a topic or two nodes is told of the nodes.
        let is_narrow = topic.is_some() || args.to.is_some();
        let is_asked = |check| !is_narrow || ["unreadable", "stopped"].contains(&check);
        let found = problems(before, now, &Figures::new(before, now));
        let is_new = |found: &Finding| !findings.0.iter().any(|known| known.what == found.what);
        // That no node has joined yet stands with the directory.
        let is_relevant = |found: &Finding| found.check != "domain" && is_asked(found.check);
        let new = found.into_iter().filter(|found| is_relevant(found) && is_new(found));
        let new: Vec<Finding> = new.collect();
        findings.0.extend(new);
    }
    for unread in &snapshot.unread {
        findings.note("type", unread.clone());
    }
    findings
}

/// Two looks, the later one with a snapshot in which pairs have had the time to find each other, and receivers of commands
/// that to speak. Exceptions, losses and missed deadlines are problems if they occur between the two.
///
/// Between the announcement of an endpoint and its match lie a few milliseconds, as between the opening of a receiver
/// and its first word; a pair that fits is only suspicious if it is still apart after many times that.
fn take_two_snapshots(domain: &mut Domain) -> rnet::Result<(DomainSnapshot, DomainSnapshot)> {
    const MAX_SNAPSHOTS: u32 = 10;
    const RETRY_INTERVAL: std::time::Duration = std::time::Duration::from_millis(50);
    const MEASURED_INTERVAL: std::time::Duration = std::time::Duration::from_millis(500);
    let before = DomainSnapshot::new(domain)?;
    std::thread::sleep(MEASURED_INTERVAL);
    let mut now = DomainSnapshot::new(domain)?;
    for _ in 0..MAX_SNAPSHOTS {
        if matching::unmatched_pairs(&now.snapshot).is_empty()
            && commands::silent_receivers(&now.snapshot).is_empty()
        {
            break;
        }
        std::thread::sleep(RETRY_INTERVAL);
        now = DomainSnapshot::new(domain)?;
    }
    Ok((before, now))
}
