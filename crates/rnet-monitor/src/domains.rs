//! The domains in a directory, and leftovers of other users in them.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rnet::inspect::Location;
use rnet::{DomainId, NodeName};
use rustix::process::geteuid;

/// The directory of a domain. User and group are taken from its name; its content was not read.
pub struct DomainDir {
    /// Its path.
    pub path: PathBuf,
    /// The domain.
    pub id: DomainId,
    /// Number of the group that shares the domain.
    pub group: Option<String>,
    /// Number of the user who owns the domain, if no group shares it.
    pub user: Option<u32>,
    /// Owner of the directory; `None` if it no longer exists.
    pub owner: Option<u32>,
}

/// The nodes of a domain, by name.
pub struct DomainNodes {
    /// Nodes whose process is alive.
    pub living: Vec<NodeName>,
    /// Dead nodes that were not removed yet.
    pub dead: Vec<NodeName>,
}

/// The directories of all domains in the same base directory, including this one.
#[must_use]
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
    /// The command-line options that select it, relative to `location`.
    #[must_use]
    pub fn options(&self, location: &Location) -> String {
        match &self.group {
            Some(group) => format!("--domain {} --group {group}", self.id),
            None if location.group().is_some() => {
                format!("--domain {} without --group and RNET_GROUP", self.id)
            }
            None => format!("--domain {}", self.id),
        }
    }

    /// The nodes of the domain. Dead ones are not removed.
    ///
    /// # Errors
    /// Why the directory cannot be read, for example because it belongs to another user.
    pub fn nodes(&self, location: &Location) -> Result<DomainNodes, String> {
        let other = location.sibling(self.id.clone(), self.group.clone());
        let other = other.map_err(|e| e.to_string())?;
        if let Some(user) = self.user
            && other.path() != self.path
        {
            return Err(format!("it belongs to user {user}"));
        }
        other.exists().map_err(|e| e.to_string())?;
        Ok(DomainNodes { living: other.living_nodes(), dead: other.dead_nodes() })
    }

    /// The owner of the domain as text.
    #[must_use]
    pub fn owner_name(&self) -> String {
        match (&self.group, self.user) {
            (Some(group), _) => format!("group {group}"),
            (None, user) => format!("user {}", user.unwrap_or_default()),
        }
    }
}

/// A leftover of another user that this user cannot remove.
#[derive(Debug)]
pub struct ForeignLeftover {
    /// The file or folder.
    pub path: PathBuf,
    /// What it is.
    pub what: String,
    /// How to remove it.
    pub advice: String,
}

/// Leftovers of other users' dead nodes that this user cannot remove because of their umask.
#[must_use]
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

/// Name files that only another user can open. Their node may be alive, so they must not be removed.
#[must_use]
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

/// Skips files of this user, which are removed anyway, and files that no longer exist.
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
