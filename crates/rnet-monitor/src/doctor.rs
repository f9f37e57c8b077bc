//! Why does A not hear B?
//!
//! Looks at a domain from outside and says in words what is wrong and what to do about it:
//! - this file: the question, the answer, and the order of the checks;
//! - `host_checks`: the directory, the machine's limits, other domains, nodes that died;
//! - `deployment`: what removes the directory, and what keeps containers apart;
//! - `network`: the link, and why another host is not reached;
//! - `realtime`: what the machine lacks for low latency (`--realtime`).
//!
//! Who publishes what to whom, and why it does not arrive, is found by `matching`; what else a robot may suffer
//! from (clocks, the launch, disks), by `health`.
//! Looking changes nothing in the domain, except that nodes whose process has died are swept up,
//! as every node does that sees them.

mod deployment;
mod host_checks;
mod network;
pub mod realtime;

use crate::{
    DomainSnapshot, Figures, Finding, Findings, commands, health, link, matching, problems,
    recorders,
};
use rnet::inspect::{Domain, Location, Snapshot};
use rnet_launch::{Record, RunFolder};

/// What a user asks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Question<'a> {
    /// About this topic.
    pub topic: Option<&'a str>,
    /// About another host.
    pub host: Option<&'a str>,
    /// Why the first node does not hear the second.
    pub nodes: Option<(&'a str, &'a str)>,
}

/// Examines a domain. What goes wrong is a finding.
pub fn diagnose(location: &Location, question: &Question<'_>) -> Findings {
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
    let topic = question.topic;
    let mut status = link::last_status(snapshot);
    if let Some(name) = question.host {
        let host = link::Host { name, is_own: name == link::own_host(snapshot) };
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
    if let Some((a, b)) = question.nodes {
        let known = matching::DoctorInput { snapshot, dead: &dead, others: &others };
        matching::check_two_nodes(&mut findings, &known, a, b, topic);
    } else {
        matching::check_topics(&mut findings, snapshot, topic, None);
    }
    if let Ok((before, now)) = &snapshots {
        // What status, top and the dashboard go by: none of them knows of a problem that is not here. Whoever asks about
        // a topic or two nodes is told of the nodes.
        let is_narrow = topic.is_some() || question.nodes.is_some();
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
