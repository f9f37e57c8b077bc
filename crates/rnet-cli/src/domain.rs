//! `rnet domain …`, and which other domains there are beside the one that was asked for.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rnet::inspect::Location;
use rnet::{DomainId, NodeName};
use serde_json::{Value, json};

use crate::args::DomainCommand;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::style::NOTE;
use crate::table;

pub fn run(context: &mut Context, command: DomainCommand) -> Outcome {
    let location = context.location_that_exists()?;
    match command {
        DomainCommand::List => list(context, &location),
        DomainCommand::Clean => clean(context, &location),
    }
}

/// The directory of a domain, as its name says whose it is. It was not looked into.
pub struct Standing {
    pub path: PathBuf,
    pub id: DomainId,
    /// Number of the group that shares the domain.
    pub group: Option<String>,
    /// Number of the user whose domain it is, if no group shares it.
    pub user: Option<u32>,
    /// Who has made the directory; `None` if that is gone by now.
    pub owner: Option<u32>,
}

/// The nodes of a domain, by name.
pub struct Nodes {
    pub living: Vec<NodeName>,
    pub dead: Vec<NodeName>,
}

/// The directories of all domains beside this one, and its own.
pub fn standing(location: &Location) -> Vec<Standing> {
    let entries = std::fs::read_dir(location.base()).into_iter().flatten().flatten();
    let mut all: Vec<Standing> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (who, id) = name.strip_prefix("rnet-")?.split_once('-')?;
            let group = who.strip_prefix('g').map(str::to_owned);
            let user = if group.is_some() { None } else { Some(who.parse().ok()?) };
            let owner = std::fs::symlink_metadata(entry.path()).ok().map(|meta| meta.uid());
            let (path, id) = (entry.path(), DomainId::new(id).ok()?);
            Some(Standing { path, id, group, user, owner })
        })
        .collect();
    all.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    all
}

impl Standing {
    /// How it is named on the command line, where `location` is what is named now.
    pub fn options(&self, location: &Location) -> String {
        match &self.group {
            Some(group) => format!("--domain {} --group {group}", self.id),
            None if location.group().is_some() => {
                format!("--domain {} without --group and RNET_GROUP", self.id)
            }
            None => format!("--domain {}", self.id),
        }
    }

    /// Who is there. Nothing is swept up.
    ///
    /// # Errors
    /// Why it cannot be told: it is another user's, say.
    pub fn nodes(&self, location: &Location) -> Outcome<Nodes> {
        let other = location.sibling(self.id.clone(), self.group.clone())?;
        if let Some(user) = self.user
            && other.path() != self.path
        {
            return Err(Failure::Failed(format!("it is of user {user}")));
        }
        other.exists()?;
        Ok(Nodes { living: other.living_nodes(), dead: other.dead_nodes() })
    }

    fn whose(&self) -> String {
        match (&self.group, self.user) {
            (Some(group), _) => format!("group {group}"),
            (None, user) => format!("user {}", user.unwrap_or_default()),
        }
    }
}

/// Says on stderr where nothing was found, and which other domains have nodes.
pub fn tell_none(context: &Context, what: &str) -> Outcome {
    let location = context.location()?;
    let place = |id, path: &std::path::Path| format!("domain {id} ({})", path.display());
    context.say(format_args!("no {what} in {}", place(location.id(), location.path())));
    for other in standing(&location).iter().filter(|other| other.path != location.path()) {
        // What cannot be looked into is for `rnet domain list` to tell.
        let living = other.nodes(&location).map_or(0, |nodes| nodes.living.len());
        if living > 0 {
            let s = if living == 1 { "" } else { "s" };
            context.say(format_args!(
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
    for domain in standing(location) {
        let nodes = domain.nodes(location);
        if let Err(failure) = &nodes {
            let (path, why) = (domain.path.display(), failure.message());
            context.say(format_args!("{NOTE}rnet:{NOTE:#} cannot look into {path}: {why}"));
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
            let count = |of: fn(&Nodes) -> &Vec<NodeName>| {
                nodes.as_ref().map_or_else(|| "-".to_owned(), |nodes| of(nodes).len().to_string())
            };
            rows.push(vec![
                domain.id.to_string(),
                domain.whose(),
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
        context.say(format_args!("no domain in {}", location.base().display()));
    }
    table::print(context, &["DOMAIN", "OWNER", "NODES ", "DEAD ", "DIRECTORY"], &rows)
}

fn clean(context: &mut Context, location: &Location) -> Outcome {
    let removed = location.clean()?;
    let left = location.left_overs();
    if context.json() {
        context.document(&json!({"domain": location.id(), "removed": removed, "left": left}))?;
    } else if removed.is_empty() {
        context.line(format_args!("no dead node has left anything in domain {}", location.id()))?;
    } else {
        let names: Vec<&str> = removed.iter().map(NodeName::as_str).collect();
        context.line(format_args!("removed what dead nodes left: {}", names.join(", ")))?;
    }
    match left.first() {
        None => Ok(()),
        Some(path) => Err(Failure::Failed(format!(
            "{} cannot be removed by this user: sudo rm -r {0}",
            path.display()
        ))),
    }
}
