//! `rnet domain …`.

use std::path::PathBuf;

use clap::Subcommand;
use rnet::NodeName;
use rnet::inspect::Location;
use rnet_monitor::domains::{
    DomainNodes, foreign_inaccessible_files, foreign_leftovers, list_domain_dirs,
};
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::table;

#[derive(Debug, Subcommand)]
pub enum DomainCommand {
    /// List the domains in the domain directory (--dir) with their number of nodes
    List,
    /// Remove what dead nodes left in the domain; keeps living nodes and the shared state
    Clean,
}

pub fn run(context: &mut Context, command: DomainCommand) -> Outcome {
    let location = context.existing_location()?;
    match command {
        DomainCommand::List => list(context, &location),
        DomainCommand::Clean => clean(context, &location),
    }
}

/// Reports on stderr that nothing was found in the domain, and which other domains have nodes.
pub fn report_none_found(context: &Context, what: &str) -> Outcome {
    let location = context.location()?;
    let place = |id, path: &std::path::Path| format!("domain {id} ({})", path.display());
    context.eprintln(format_args!("no {what} in {}", place(location.id(), location.path())));
    for other in list_domain_dirs(&location).iter().filter(|other| other.path != location.path()) {
        // `rnet domain list` reports domains that cannot be inspected.
        let living = other.nodes(&location).map_or(0, |nodes| nodes.living.len());
        if living > 0 {
            let s = if living == 1 { "" } else { "s" };
            context.eprintln(format_args!(
                "{} has {living} node{s}: {}",
                place(&other.id, &other.path),
                other.options(&location)
            ));
        }
    }
    Ok(())
}

fn list(context: &mut Context, location: &Location) -> Outcome {
    let mut rows = Vec::new();
    let mut documents: Vec<Value> = Vec::new();
    for domain in list_domain_dirs(location) {
        let nodes = domain.nodes(location);
        if let Err(why) = &nodes {
            let path = domain.path.display();
            context.note(&format!("cannot inspect {path}: {why}"));
        }
        let nodes = nodes.ok();
        if context.json() {
            documents.push(json!({
                "domain": domain.id,
                "path": domain.path,
                "user": domain.user,
                "group": domain.group,
                "nodes": nodes.as_ref().map(|nodes| &nodes.living),
                "dead": nodes.as_ref().map(|nodes| &nodes.dead),
            }));
        } else {
            let count = |of: fn(&DomainNodes) -> &Vec<NodeName>| {
                nodes.as_ref().map_or_else(|| "-".to_owned(), |nodes| of(nodes).len().to_string())
            };
            rows.push(vec![
                domain.id.to_string(),
                domain.owner_name(),
                count(|nodes| &nodes.living),
                count(|nodes| &nodes.dead),
                domain.path.display().to_string(),
            ]);
        }
    }
    if context.json() {
        return context.document(&json!({"dir": location.base(), "domains": documents}));
    }
    if rows.is_empty() {
        context.eprintln(format_args!("no domain in {}", location.base().display()));
    }
    table::print(context, &["DOMAIN", "OWNER", "NODES ", "DEAD ", "DIRECTORY"], &rows)
}

fn clean(context: &mut Context, location: &Location) -> Outcome {
    let mut removed = location.clean()?;
    if !location.leftover_folders().is_empty() {
        // This also removes a node that died meanwhile.
        removed.extend(location.clean()?);
    }
    let (dead, barred) = (foreign_leftovers(location), foreign_inaccessible_files(location));
    let left: Vec<&PathBuf> = dead.iter().chain(&barred).map(|left| &left.path).collect();
    if context.json() {
        context.document(&json!({"domain": location.id(), "removed": removed, "left": left}))?;
    } else if removed.is_empty() {
        context.line(format_args!(
            "nothing to clean in domain {}: dead nodes left nothing behind",
            location.id()
        ))?;
    } else {
        let names: Vec<&str> = removed.iter().map(NodeName::as_str).collect();
        context.line(format_args!("removed the leftovers of dead nodes: {}", names.join(", ")))?;
    }
    for left in barred {
        context.note(&format!("{}; {}", left.what, left.advice));
    }
    match dead.into_iter().next() {
        None => Ok(()),
        Some(left) => Err(Failure::Failed(format!("{}; {}", left.what, left.advice))),
    }
}
