//! The location of a domain, and what exists there, before the domain is opened.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rnet_core::{DomainId, Error, NodeName, Result};
use rnet_shm::domain::death_notes;
use rnet_shm::domain::directory::{DEFAULT_BASE, DomainConfig, DomainDir};
use rnet_shm::domain::host_id::host_id;
use rnet_shm::domain::node::{PeerNode, StopRequest};
use rnet_shm::domain::role::Role;
use rnet_shm::domain::{dead_node_leftovers, presence, restored_files};
use rustix::fs::Access;

use super::Domain;

/// The directory of a domain, which need not exist. Only [`Location::domain`] and [`Location::clean`] change
/// it: an inspection removes the files of dead nodes.
#[derive(Clone, Debug)]
pub struct Location {
    config: DomainConfig,
    path: PathBuf,
}

impl Location {
    /// The location of the domain that the arguments, or else the environment, name.
    ///
    /// # Errors
    /// `BadName`, `NoPermission` for a group that is not this user's.
    pub fn new(
        domain: Option<&str>,
        dir: Option<PathBuf>,
        group: Option<String>,
    ) -> Result<Location> {
        Location::of_config(rnet_node::settings::domain_config(domain, dir, group)?)
    }

    fn of_config(config: DomainConfig) -> Result<Location> {
        Ok(Location { path: DomainDir::path_of(&config)?, config })
    }

    /// The location of another domain in the same base directory.
    ///
    /// # Errors
    /// As [`Location::new`].
    pub fn sibling(&self, id: DomainId, group: Option<String>) -> Result<Location> {
        Location::of_config(DomainConfig { id, base: self.config.base.clone(), group })
    }

    /// The domain's id.
    pub fn id(&self) -> &DomainId {
        &self.config.id
    }

    /// The Unix group that shares the domain.
    pub fn group(&self) -> Option<&str> {
        self.config.group.as_deref()
    }

    /// The base directory of the domains.
    pub fn base(&self) -> &Path {
        self.config.base.as_deref().unwrap_or(Path::new(DEFAULT_BASE))
    }

    /// The domain's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn dir(&self) -> Option<DomainDir> {
        DomainDir::open(&self.config).ok().flatten()
    }

    /// Whether a node has joined the domain and this user may join it.
    ///
    /// # Errors
    /// `NoPermission`, `LayoutVersion`, `Io` for the directory.
    pub fn exists(&self) -> Result<bool> {
        DomainDir::open(&self.config).map(|dir| dir.is_some())
    }

    /// The domain.
    ///
    /// # Errors
    /// As [`Domain::open`].
    pub fn domain(&self) -> Result<Domain> {
        Domain::of_config(self.config.clone())
    }

    /// When nodes last restored removed files of the directory, in s since 1970, and which node did.
    pub fn put_back_at(&self) -> Option<(u64, String)> {
        self.dir()?.last_restore()
    }

    /// Running nodes whose directory was removed, with their processes, as far as this user may inspect them.
    pub fn removed_nodes(&self) -> Vec<(u32, String)> {
        restored_files::nodes_without_folder(&self.path)
    }

    /// Nodes whose process lives, by name.
    pub fn living_nodes(&self) -> Vec<NodeName> {
        let living = self.folders().filter(|folder| folder.alive);
        sorted(living.filter_map(|folder| folder.node_name()))
    }

    /// Nodes whose process died without leaving and whose files still exist, by name.
    pub fn dead_nodes(&self) -> Vec<NodeName> {
        let folders = self.folders().filter(|folder| !folder.alive);
        // A node that died while it started has a name and no folder.
        let names = self.dir().into_iter().flat_map(|dir| entries(&dir.names()));
        let names = names.filter(|path| !presence::is_held(path));
        let names = names.filter_map(|path| node_name(path.file_name()?.to_str()?));
        sorted(folders.filter_map(|folder| folder.node_name()).chain(names))
    }

    /// Removes the files of dead nodes and observers, and returns these nodes. Running and starting nodes are
    /// not affected; running nodes do the same automatically. The state of the domain is kept.
    ///
    /// # Errors
    /// As [`Location::exists`].
    pub fn clean(&self) -> Result<Vec<NodeName>> {
        let Some(dir) = DomainDir::open(&self.config)? else { return Ok(Vec::new()) };
        let mut dead = self.dead_nodes();
        let known = death_notes::known(&dir).into_iter().filter(|name| !dead.contains(name));
        dead.extend(known.collect::<Vec<_>>());
        dead_node_leftovers::sweep_all(&dir);
        let left = self.dead_nodes();
        dead.retain(|name| !left.contains(name));
        Ok(dead)
    }

    /// Marks a death as handled: [`Snapshot::died`](super::Snapshot::died) does not list this node any more.
    #[doc(hidden)]
    pub fn forget_death(&self, node: &NodeName) {
        let Some(dir) = self.dir() else { return };
        let stem = node.file_stem();
        for folder in self.folders().filter(|folder| !folder.alive && *folder.stem == *stem) {
            death_notes::sweep(&dir, &folder.stem, folder.incarnation);
        }
        death_notes::forget(&dir, &stem);
    }

    /// Records a stop request at the living nodes of the processes that `is_meant` selects; it determines how
    /// their exit is classified. Nodes that cannot be read or written are left unchanged.
    #[doc(hidden)]
    pub fn set_stop_request(&self, is_meant: impl Fn(u32) -> bool, request: StopRequest) {
        let Some(dir) = self.dir() else { return };
        for folder in self.folders().filter(|folder| folder.alive) {
            if let Ok(Some(node)) = PeerNode::open(&dir, &folder.stem, folder.incarnation)
                && node.meta().is_in_our_pid_namespace()
                && is_meant(node.meta().pid)
            {
                let _ = node.set_stop_request(request);
            }
        }
    }

    /// Living nodes that cannot be read, and why.
    pub fn unreadable_nodes(&self) -> Vec<(NodeName, Error)> {
        let Some(dir) = self.dir() else { return Vec::new() };
        let living = self.folders().filter(|folder| folder.alive);
        living
            .filter_map(|folder| {
                let error = PeerNode::open(&dir, &folder.stem, folder.incarnation).err()?;
                Some((folder.node_name()?, error))
            })
            .collect()
    }

    /// Directories of dead nodes that were not removed yet.
    pub fn leftover_folders(&self) -> Vec<PathBuf> {
        self.folders().filter(|folder| !folder.alive).map(|folder| folder.path).collect()
    }

    /// Name files that this user may not open, so it is unknown whether their node runs.
    pub fn inaccessible_names(&self) -> Vec<PathBuf> {
        let barred =
            |path: &PathBuf| rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK).is_err();
        self.dir().iter().flat_map(|dir| entries(&dir.names())).filter(barred).collect()
    }

    /// A role of the domain. Creates the domain if it does not exist.
    ///
    /// # Errors
    /// Errors of opening a node, for the domain; `Io` for the role's file.
    #[doc(hidden)]
    pub fn role(&self, name: &str) -> Result<Role> {
        Role::open(&DomainDir::open_or_create(&self.config)?, name)
    }

    /// The number of this host, constant until reboot. Creates the domain if it does not exist.
    ///
    /// # Errors
    /// Errors of opening a node, for the domain; `Io` for the number's file.
    #[doc(hidden)]
    pub fn host_id(&self) -> Result<u64> {
        host_id(&DomainDir::open_or_create(&self.config)?)
    }

    fn folders(&self) -> impl Iterator<Item = NodeFolder> {
        self.dir().into_iter().flat_map(|dir| {
            entries(&dir.nodes()).filter_map(move |path| {
                let (stem, incarnation) = presence::parse_folder_name(path.file_name()?.to_str()?)?;
                let (stem, alive) = (stem.to_owned(), presence::is_alive(&dir, stem, incarnation));
                Some(NodeFolder { path, stem, incarnation, alive })
            })
        })
    }
}

impl Domain {
    /// The process of the link between hosts, if it was killed and no other process has taken its role since.
    #[doc(hidden)]
    pub fn killed_link(&self) -> Option<u32> {
        rnet_shm::domain::role::Role::killed_holder(&self.path, "link")
    }
}

/// The folder of a node.
struct NodeFolder {
    path: PathBuf,
    stem: String,
    incarnation: u64,
    alive: bool,
}

impl NodeFolder {
    fn node_name(&self) -> Option<NodeName> {
        node_name(&self.stem)
    }
}

fn node_name(stem: &str) -> Option<NodeName> {
    NodeName::from_file_stem(stem).ok()
}

fn sorted(names: impl Iterator<Item = NodeName>) -> Vec<NodeName> {
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}
