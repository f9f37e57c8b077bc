//! `rnet domain …`, and which other domains there are beside the one that was asked for.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use clap::Subcommand;
use rnet::inspect::Location;
use rnet::{DomainId, NodeName};
use rustix::process::geteuid;
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

/// The directory of a domain, as its name says whose it is. It was not looked into.
pub struct DomainDir {
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
pub struct DomainNodes {
    pub living: Vec<NodeName>,
    pub dead: Vec<NodeName>,
}

/// The directories of all domains beside this one, and its own.
pub fn list_domain_dirs(location: &Location) -> Vec<DomainDir> {
    let entries = std::fs::read_dir(location.base()).into_iter().flatten().flatten();
    let mut all: Vec<DomainDir> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (who, id) = name.strip_prefix("rnet-")?.split_once('-')?;
            let group = who.strip_prefix('g').map(str::to_owned);
            let user = if group.is_some() { None } else { Some(who.parse().ok()?) };
            let owner = std::fs::symlink_metadata(entry.path()).ok().map(|meta| meta.uid());
            let (path, id) = (entry.path(), DomainId::new(id).ok()?);
            Some(DomainDir { path, id, group, user, owner })
        })
        .collect();
    all.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    all
}

impl DomainDir {
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
    pub fn nodes(&self, location: &Location) -> Outcome<DomainNodes> {
        let other = location.sibling(self.id.clone(), self.group.clone())?;
        if let Some(user) = self.user
            && other.path() != self.path
        {
            return Err(Failure::Failed(format!("it belongs to user {user}")));
        }
        other.exists()?;
        Ok(DomainNodes { living: other.living_nodes(), dead: other.dead_nodes() })
    }

    fn owner_name(&self) -> String {
        match (&self.group, self.user) {
            (Some(group), _) => format!("group {group}"),
            (None, user) => format!("user {}", user.unwrap_or_default()),
        }
    }
}

/// Says on stderr where nothing was found, and which other domains have nodes.
pub fn report_none_found(context: &Context, what: &str) -> Outcome {
    let location = context.location()?;
    let place = |id, path: &std::path::Path| format!("domain {id} ({})", path.display());
    context.eprintln(format_args!("no {what} in {}", place(location.id(), location.path())));
    for other in list_domain_dirs(&location).iter().filter(|other| other.path != location.path()) {
        // What cannot be looked into is for `rnet domain list` to tell.
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
        if let Err(failure) = &nodes {
            let (path, why) = (domain.path.display(), failure.message());
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
        // A node that died meanwhile is swept, too.
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

/// Something of another user that this one cannot sweep.
#[derive(Debug)]
pub struct ForeignLeftover {
    pub path: PathBuf,
    pub what: String,
    pub advice: String,
}

/// What is left of dead nodes though somebody has looked: another user's, whose umask closes it to us.
pub fn foreign_leftovers(location: &Location) -> Vec<ForeignLeftover> {
    owned_by_others(location.leftover_folders(), geteuid().as_raw(), |path, owner, me| {
        ForeignLeftover {
            what: format!(
                "{} was left by a node of user {owner}, and user {me} cannot remove it; other nodes are not affected",
                path.display()
            ),
            advice: format!("remove it: sudo rm -r {}", path.display()),
            path,
        }
    })
}

/// Files of names that only another user can open. Their node may live, so they must not be removed.
pub fn foreign_inaccessible_files(location: &Location) -> Vec<ForeignLeftover> {
    owned_by_others(location.inaccessible_names(), geteuid().as_raw(), |path, owner, me| {
        ForeignLeftover {
            what: format!(
                "{} belongs to user {owner}, and user {me} cannot open it to check whether its node is alive",
                path.display()
            ),
            advice: format!("as user {owner}, run: rnet domain clean"),
            path,
        }
    })
}

/// Our own is swept by and by, and what has gone meanwhile needs nobody.
fn owned_by_others(
    paths: Vec<PathBuf>,
    me: u32,
    describe: impl Fn(PathBuf, u32, u32) -> ForeignLeftover,
) -> Vec<ForeignLeftover> {
    let other = |path: PathBuf| {
        let owner = std::fs::symlink_metadata(&path).ok()?.uid();
        (owner != me).then(|| describe(path, owner, me))
    };
    paths.into_iter().filter_map(other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_existing_files_of_other_users_are_reported() {
        let path = PathBuf::from("/proc/self/status");
        let me = geteuid().as_raw();
        let found = |me| {
            let paths = vec![path.clone(), "/proc/none".into()];
            let owners = |path, owner, me| ForeignLeftover {
                path,
                what: format!("{owner} {me}"),
                advice: String::new(),
            };
            owned_by_others(paths, me, owners)
        };
        assert!(found(me).is_empty());
        let [left] = &found(me + 1)[..] else { panic!() };
        assert_eq!((&left.path, left.what.as_str()), (&path, &*format!("{me} {}", me + 1)));
    }
}
