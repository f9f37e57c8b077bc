//! Snapshots of a domain, and errors about unknown names.

use rnet::inspect::{Domain, Snapshot};
use rnet_format::suggestions::did_you_mean;
use rnet_monitor::link::host_of;

use crate::context::Context;
use crate::failure::{Failure, Outcome};

/// The domain and a snapshot of it. Problems of single nodes go to stderr; the rest of the data is valid.
pub fn take_snapshot(context: &Context) -> Outcome<(Domain, Snapshot)> {
    let mut domain = context.domain()?;
    let snapshot = domain.snapshot()?;
    for problem in snapshot.problems.iter().chain(&snapshot.unread) {
        context.note(&problem.to_string());
    }
    Ok((domain, snapshot))
}

/// As [`take_snapshot`], for a topic that exists.
///
/// # Errors
/// The topic does not exist; suggests one with a similar name.
pub fn snapshot_with_topic(context: &Context, topic: &str) -> Outcome<(Domain, Snapshot)> {
    let (domain, snapshot) = take_snapshot(context)?;
    match snapshot.topics().contains(&topic) {
        true => Ok((domain, snapshot)),
        false => Err(not_found("topic", domain.id(), topic, snapshot.topics().into_iter())),
    }
}

/// The error for a missing object, with a similar name as a suggestion.
pub fn not_found<'a>(
    what: &str,
    domain: &str,
    name: &str,
    names: impl Iterator<Item = &'a str>,
) -> Failure {
    let hint = did_you_mean(name, names)
        .unwrap_or_else(|| format!("see rnet {what} list, and rnet domain list for other domains"));
    Failure::Failed(format!("{what} {name} not found in domain {domain}; {hint}"))
}

/// Rejects an unknown host.
pub fn check_host(snapshot: &Snapshot, own: &str, host: &str) -> Outcome {
    let known = || snapshot.remote.iter().filter_map(|node| host_of(&node.node).0).chain([own]);
    if known().any(|known| known == host) {
        return Ok(());
    }
    let hint = did_you_mean(host, known()).unwrap_or_else(|| "see rnet link status".to_owned());
    Err(Failure::Failed(format!("host {host} is not known; {hint}")))
}
