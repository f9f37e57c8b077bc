//! Why does node A not receive from node B?
//!
//! Examines a domain from outside and reports what is wrong, with advice:
//! - this file: the question, the answer, and the order of the checks;
//! - `host_checks`: the directory, the machine's limits, other domains, dead nodes;
//! - `deployment`: what removes the directory, and what isolates containers;
//! - `network`: the link, and why another host is not reachable;
//! - `realtime`: what the machine lacks for low latency (`--realtime`).
//!
//! `matching` finds why published messages do not arrive; `health` checks clocks, the launch and disks.
//! Observing changes nothing in the domain, except that nodes of dead processes are removed, as every node
//! does.

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

/// Limits the examination to a part of the domain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Question<'a> {
    /// Only this topic.
    pub topic: Option<&'a str>,
    /// Only this host.
    pub host: Option<&'a str>,
    /// Why the first node does not receive from the second.
    pub nodes: Option<(&'a str, &'a str)>,
}

/// Examines a domain. Errors are reported as findings.
#[must_use]
pub fn diagnose(location: &Location, question: &Question<'_>) -> Findings {
    let mut findings = Findings::default();
    host_checks::machine(&mut findings);
    let usable = host_checks::directory(&mut findings, location);
    deployment::directory_removed(&mut findings, location);
    if !usable {
        return findings;
    }
    // Before the first snapshot, which removes them.
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
        // The problems that status, top and the dashboard show, so that all of them are listed here too. For a
        // question about a topic or two nodes, only those of nodes.
        let is_narrow = topic.is_some() || question.nodes.is_some();
        let is_asked = |check| !is_narrow || ["unreadable", "stopped"].contains(&check);
        let found = problems(before, now, &Figures::new(before, now));
        let is_new = |found: &Finding| !findings.0.iter().any(|known| known.what == found.what);
        // The check of the directory already reports that no node has joined.
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

/// Takes two snapshots. Exceptions, losses and missed deadlines are problems if they occur between the two.
///
/// Endpoints need a few milliseconds to match, and receivers of commands to send their first message. The later
/// snapshot is repeated until they have done so, at most `MAX_SNAPSHOTS` times.
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
