//! `rnet doctor`: why does A not hear B?
//!
//! Looks at a domain from outside and says in words what is wrong and what to do about it:
//! - this file: the question, the answer, and the order of the checks;
//! - `place`: the directory, the machine's limits, other domains, nodes that died;
//! - `deployed`: what removes the directory, and what keeps containers apart;
//! - `network`: the link, and why another host is not reached;
//! - `realtime`: what the machine lacks for low latency (`--realtime`).
//!
//! Who publishes what to whom, and why it does not arrive, is found by `rnet_monitor::talk`; what else a robot may suffer
//! from (clocks, the launch, disks), by `rnet_monitor::health`.
//! Looking changes nothing in the domain, except that nodes whose process has died are swept up,
//! as every node does that sees them.

mod deployed;
mod network;
mod place;
mod realtime;

use rnet::TopicName;
use rnet::inspect::{Domain, Location, Snapshot};
use rnet_launch::{Record, RunFolder};
use rnet_monitor::{
    Figures, Finding, Findings, Level, Look, commands, health, link, problems, recorders, talk,
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
    if problems == 0 { Ok(()) } else { Err(Failure::Told) }
}

/// Examines a domain. What goes wrong is a finding.
fn diagnose(location: &Location, args: &DoctorArgs) -> Findings {
    let mut findings = Findings::default();
    place::machine(&mut findings);
    let usable = place::directory(&mut findings, location);
    deployed::removed(&mut findings, location);
    if !usable {
        return findings;
    }
    // Before the first look, which sweeps them up.
    let dead = place::left_over(&mut findings, location);
    let looks = location.domain().and_then(|mut domain| look(&mut domain));
    let looks = looks.map_err(|error| {
        let advice = "if no node is running, remove it; otherwise use another RNET_DIR";
        findings.problem("directory", error.to_string(), advice);
    });
    let none = Snapshot::default();
    let snapshot = looks.as_ref().map_or(&none, |(_, now)| &now.snapshot);
    let topic = args.topic.as_ref().map(TopicName::as_str);
    let mut status = link::last(snapshot);
    if let Some(name) = &args.host {
        let host = link::Host { name, is_own: *name == link::own_host(snapshot) };
        network::only(&mut findings, &mut status, host);
        network::network(&mut findings, location, status.as_ref());
        status.iter().for_each(|status| health::clocks(&mut findings, status));
        talk::everything(&mut findings, snapshot, topic, Some(host));
        return findings;
    }
    let nodes = snapshot.nodes.len();
    place::unswept(&mut findings, location);
    place::room(&mut findings, location.path(), nodes);
    place::black_box(&mut findings, location.path(), snapshot);
    deployed::place(&mut findings, location.path(), nodes);
    place::versions(&mut findings, snapshot);
    let others = place::neighbours(&mut findings, location, nodes);
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
        let known = talk::Known { snapshot, dead: &dead, others: &others };
        talk::two_nodes(&mut findings, &known, a, b, topic);
    } else {
        talk::everything(&mut findings, snapshot, topic, None);
    }
    if let Ok((before, now)) = &looks {
        // What status, top and the dashboard go by: none of them knows of a problem that is not here. Whoever asks about
        // a topic or two nodes is told of the nodes.
        let is_narrow = topic.is_some() || args.to.is_some();
        let is_asked = |check| !is_narrow || ["unreadable", "stopped"].contains(&check);
        let found = problems(before, now, &Figures::new(before, now));
        let is_new = |found: &Finding| !findings.0.iter().any(|known| known.what == found.what);
        // That no node has joined yet stands with the directory.
        let is_told = |found: &Finding| found.check != "domain" && is_asked(found.check);
        let new = found.into_iter().filter(|found| is_told(found) && is_new(found));
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
fn look(domain: &mut Domain) -> rnet::Result<(Look, Look)> {
    const LOOKS: u32 = 10;
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);
    const OVER: std::time::Duration = std::time::Duration::from_millis(500);
    let before = Look::new(domain)?;
    std::thread::sleep(OVER);
    let mut now = Look::new(domain)?;
    for _ in 0..LOOKS {
        if talk::apart(&now.snapshot).is_empty() && commands::silent(&now.snapshot).is_empty() {
            break;
        }
        std::thread::sleep(PAUSE);
        now = Look::new(domain)?;
    }
    Ok((before, now))
}
