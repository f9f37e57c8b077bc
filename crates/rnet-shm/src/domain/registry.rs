//! A node's view of its peers: the living nodes, what each announces, and which died.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use rnet_core::{Error, MAX_NODES_PER_DOMAIN};

use crate::domain::death_notes;
use crate::domain::directory::DomainDir;
use crate::domain::node::{NodeMeta, PeerNode};
use crate::domain::pidfd::LivenessHandle;
use crate::domain::presence;
use crate::os::process_state::is_exiting;
use crate::os::shortage::{io_error, is_transient};

/// The language of nodes that users' tools open: they have separate slots in a domain.
pub const TOOL_LANGUAGE: &str = "tool";

/// Why a peer has departed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It said goodbye, or exited after it was asked to stop.
    Left,
    /// Its process exited without a goodbye.
    Died,
}

/// The result of a [`Registry::refresh`].
#[derive(Debug, Default)]
pub struct Changes {
    /// Peers that were unknown before.
    pub joined: Vec<u64>,
    /// Peers that have departed.
    pub departed: Vec<(u64, NodeMeta, Departure)>,
    /// Peers whose endpoints have changed, new ones included.
    pub changed: Vec<u64>,
    /// Nodes that joined and departed between two scans: they never were peers.
    pub unseen: Vec<(NodeMeta, Departure)>,
    /// Whether a node has exited, known or not, or may have: the consequences of an exit must be checked.
    pub ended: bool,
}

/// A peer and the kernel's handle on its exit.
#[derive(Debug)]
pub struct Peer {
    /// The peer's folder.
    pub node: PeerNode,
    /// How its exit is detected.
    pub handle: LivenessHandle,
}

/// What a [`Watch`](crate::domain::exit_watch::Watch) must follow.
#[derive(Debug, Default)]
pub(crate) struct WatchChanges {
    /// Peers that are new, or have another handle.
    pub joined: Vec<u64>,
    /// Peers that have departed, with the handle that detected their exit.
    pub departed: Vec<(u64, LivenessHandle)>,
}

/// Folders of nodes that have departed.
#[derive(Debug)]
#[must_use = "folders of dead nodes stay until they are swept"]
pub struct DeadFolders {
    dir: DomainDir,
    folders: Vec<(String, u64)>,
}

impl DeadFolders {
    /// Removes the folders that still exist.
    pub fn sweep(self) {
        for (stem, incarnation) in self.folders {
            death_notes::sweep(&self.dir, &stem, incarnation);
        }
    }
}

/// Reads what a peer has announced since the last read.
fn read(id: u64, peer: &mut Peer, unread: &mut BTreeSet<u64>, changes: &mut Changes) {
    if peer.node.refresh() {
        changes.changed.push(id);
    }
    match peer.node.refresh_error() {
        Some(_) => unread.insert(id),
        None => unread.remove(&id),
    };
}

/// All living nodes of a domain, optionally without our own.
#[derive(Debug)]
pub struct Registry {
    dir: DomainDir,
    own: Option<u64>,
    peers: BTreeMap<u64, Peer>,
    /// The holder of each name, as written in file names.
    by_name: HashMap<Arc<str>, u64>,
    /// Peers whose liveness only their locks show.
    lock_checked: BTreeSet<u64>,
    /// Peers whose endpoints could not be read because no file descriptor was free.
    unread: BTreeSet<u64>,
    /// The other nodes of this process.
    siblings: BTreeSet<u64>,
    /// Changes since a watch followed; `None` before the first watch. Holds descriptors of dead nodes, which
    /// would accumulate in a registry that is not watched.
    watch_changes: Option<WatchChanges>,
    /// Names of nodes that sent a greeting and are not known yet.
    greeted: BTreeMap<u64, String>,
    /// Peers that may have exited without a kernel event: their locks are queried.
    suspected: BTreeSet<u64>,
    /// Peers that have died while their processes continue as another program.
    outlived: Vec<u64>,
    /// Folders of dead nodes that are not swept yet.
    dead_folders: Vec<(String, u64)>,
    /// Whether a full scan has completed: nodes that were dead before it are not reported as departed.
    scanned: bool,
    /// Nodes whose exit was reported, until their folders are removed: each exit is reported once.
    reported: HashSet<u64>,
    /// Whether the last scan met an incomplete node.
    incomplete: bool,
    /// Why the domain or a node could not be scanned, if a resource was short.
    scan_error: Option<Error>,
}

impl Registry {
    /// An empty registry; `own` is an incarnation to leave out.
    pub fn new(dir: DomainDir, own: Option<u64>) -> Registry {
        Registry {
            dir,
            own,
            peers: BTreeMap::new(),
            by_name: HashMap::new(),
            lock_checked: BTreeSet::new(),
            unread: BTreeSet::new(),
            siblings: BTreeSet::new(),
            watch_changes: None,
            greeted: BTreeMap::new(),
            suspected: BTreeSet::new(),
            outlived: Vec::new(),
            dead_folders: Vec::new(),
            scanned: false,
            reported: HashSet::new(),
            incomplete: false,
            scan_error: None,
        }
    }

    /// The domain.
    pub fn domain(&self) -> &DomainDir {
        &self.dir
    }

    /// The peers, by incarnation.
    pub fn peers(&self) -> &BTreeMap<u64, Peer> {
        &self.peers
    }

    /// One peer.
    pub fn peer(&self, incarnation: u64) -> Option<&Peer> {
        self.peers.get(&incarnation)
    }

    /// Whether the locks of some peers must be polled to check their liveness.
    pub fn needs_polling(&self) -> bool {
        !self.lock_checked.is_empty()
    }

    /// Takes the changes since the last call; at first, all peers are new.
    pub(crate) fn take_watch_changes(&mut self) -> WatchChanges {
        let all = || WatchChanges {
            joined: self.peers.keys().copied().collect(),
            ..WatchChanges::default()
        };
        self.watch_changes.replace(WatchChanges::default()).unwrap_or_else(all)
    }

    /// Stores the names that nodes sent in their rings, so that the next scan need not search for them.
    pub fn note_names(&mut self, names: BTreeMap<u64, String>) {
        self.greeted = names;
    }

    /// Whether our node is the first of this process: work that is needed once per process is done by the
    /// first node. `false` until the first full scan.
    pub fn leads_its_process(&self) -> bool {
        self.scanned && self.siblings.first().is_none_or(|first| Some(*first) > self.own)
    }

    /// Makes the next scan query the locks of the peers with these names instead of trusting their processes:
    /// a process that calls `execve` continues, but its node does not. Returns these peers.
    pub fn suspect(&mut self, named: impl Fn(&str) -> bool) -> Vec<u64> {
        let peers = self.peers.iter();
        let named = peers.filter(|(_, p)| !p.node.is_this_process() && named(p.node.stem()));
        let found: Vec<u64> = named.map(|(id, _)| *id).collect();
        self.suspected.extend(&found);
        found
    }

    /// Takes the peers that have died since the last call although their processes continue: a watch of the
    /// processes does not report them.
    pub fn take_outlived(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.outlived)
    }

    /// Takes the folders of dead nodes, to be swept after their exit was reported: sweeping may take long.
    pub fn take_dead_folders(&mut self) -> DeadFolders {
        DeadFolders { dir: self.dir.clone(), folders: std::mem::take(&mut self.dead_folders) }
    }

    /// Whether the last scan met a node whose folder was incomplete. Nodes greet their peers once they are
    /// complete; an outside observer must scan again.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Whether a node could not be scanned because no file descriptor was free: scan again later.
    pub fn needs_rescan(&self) -> bool {
        self.scan_error.is_some() || !self.unread.is_empty() || !self.suspected.is_empty()
    }

    /// Why the domain or a node could not be scanned, if a resource was short.
    pub fn shortage(&self) -> Option<Error> {
        let unread = || {
            let node = &self.peers.get(self.unread.first()?)?.node;
            Some(io_error("cannot read", &node.folder().join("node"), node.refresh_error()?))
        };
        self.scan_error.clone().or_else(unread)
    }

    /// Rereads the directory and all changes. Take the folders of dead nodes with
    /// [`Registry::take_dead_folders`].
    ///
    /// # Errors
    /// Errors of reading the directory itself; an unreadable peer is skipped.
    pub fn refresh(&mut self) -> Result<Changes, Error> {
        let mut changes = Changes::default();
        let listed = self.list()?;
        let here: HashSet<u64> = listed.iter().map(|(_, id)| *id).collect();
        // A peer that the list omits is checked by name: a directory may change while it is read.
        let left_out = |id: &u64, peer: &Peer| {
            // A living node whose folder was removed restores it.
            !here.contains(id) && !peer.node.folder_exists() && !peer.node.lives()
        };
        let gone =
            self.peers.iter().filter(|(id, peer)| self.has_died(**id, peer) || left_out(id, peer));
        for id in gone.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.depart(id, &mut changes);
        }
        self.suspected.clear();
        self.scan_error = None;
        self.add_nodes(listed, &mut changes);
        self.scanned = true;
        for id in self.lock_checked.clone() {
            // A file descriptor may be free by now.
            if let Some(peer) = self.peers.get(&id)
                && matches!(peer.handle, LivenessHandle::LockOnly)
            {
                self.set_handle(id, LivenessHandle::open(&self.dir, &peer.node));
            }
        }
        changes.changed = self.refresh_lists().changed;
        Ok(changes)
    }

    /// Rereads what known peers have announced; one call per peer that has announced something since.
    pub fn refresh_lists(&mut self) -> Changes {
        let mut changes = Changes::default();
        for (id, peer) in &mut self.peers {
            read(*id, peer, &mut self.unread, &mut changes);
        }
        changes
    }

    /// Like [`Registry::refresh`], but checks only known peers, without reading the directory.
    pub fn refresh_known(&mut self) -> Changes {
        let known: Vec<u64> = self.peers.keys().copied().collect();
        let mut changes = Changes::default();
        self.look_at(&known, &mut changes);
        changes
    }

    /// Like [`Registry::refresh`], but checks only the nodes that have rung or exited, and nodes of which
    /// only the name is known if `named` returns true: in a large domain, a change at one node must not make
    /// all nodes check all others.
    pub fn refresh_only(
        &mut self,
        nodes: &[u64],
        named: Option<&dyn Fn(&str) -> bool>,
    ) -> Result<Changes, Error> {
        let mut changes = Changes::default();
        let mut names = std::mem::take(&mut self.greeted);
        // A ring counts only if its node is visible.
        names.retain(|id, stem| {
            let folder = || self.dir.nodes().join(presence::folder_name(stem, *id));
            !self.peers.contains_key(id) && rustix::fs::lstat(folder()).is_ok()
        });
        let unknown = |id: &&u64| {
            Some(**id) != self.own
                && !self.peers.contains_key(id)
                && (names.contains_key(id) || !self.reported.contains(id))
        };
        let unknown: Vec<u64> = nodes.iter().filter(unknown).copied().collect();
        let nameless = unknown.iter().filter(|id| !names.contains_key(id)).copied();
        for node in PeerNode::known(&self.dir, nameless.collect::<Vec<_>>().into_iter()) {
            names.insert(node.incarnation(), node.stem().to_string());
        }
        let name_of = |id: &u64| names.remove(id).map(|stem| (stem, *id));
        let with_names: Vec<(String, u64)> = unknown.iter().filter_map(name_of).collect();
        // Listing the folders forgets nodes whose folders are removed.
        let strangers = named.is_some()
            || with_names.len() < unknown.len()
            || self.reported.len() > MAX_NODES_PER_DOMAIN;
        // Listing comes first, because it may fail and no partial state must remain.
        let mut listed = if strangers { self.list()? } else { with_names };
        self.look_at(nodes, &mut changes);
        if !listed.is_empty() || !unknown.is_empty() {
            // A node that rang and is missing has joined and departed, and another node has swept its folder.
            let swept = |id: &u64| !listed.iter().any(|(_, listed)| listed == id);
            changes.ended |= unknown.iter().any(swept);
            let is_named = |stem: &str| named.is_some_and(|named| named(stem));
            listed.retain(|(stem, id)| nodes.contains(id) || is_named(stem));
            let known = changes.joined.len();
            self.add_nodes(listed, &mut changes);
            let new: Vec<u64> = changes.joined[known..].to_vec();
            for id in new {
                if let Some(peer) = self.peers.get_mut(&id) {
                    read(id, peer, &mut self.unread, &mut changes);
                }
            }
        }
        Ok(changes)
    }

    /// Reads what these peers have announced, and checks whether they live.
    fn look_at(&mut self, nodes: &[u64], changes: &mut Changes) {
        for id in nodes {
            let Some(peer) = self.peers.get_mut(id) else { continue };
            read(*id, peer, &mut self.unread, changes);
            let peer = &self.peers[id];
            if self.has_died(*id, peer) || (!peer.node.folder_exists() && !peer.node.lives()) {
                self.depart(*id, changes);
            } else if self.suspected.contains(id) && self.peers[id].node.is_known_alive() {
                self.suspected.remove(id);
            }
        }
    }

    fn has_died(&self, id: u64, peer: &Peer) -> bool {
        peer.handle.has_ended()
            || peer.node.is_gone()
            || ((peer.handle.must_check_lock() || self.suspected.contains(&id))
                && !peer.node.lives()
                && !presence::is_alive(&self.dir, peer.node.stem(), peer.node.incarnation()))
    }

    /// Adds new nodes.
    fn add_nodes(&mut self, listed: Vec<(String, u64)>, changes: &mut Changes) {
        self.incomplete = false;
        let is_new = |(_, id): &(String, u64)| {
            let departed = changes.departed.iter().any(|(gone, ..)| gone == id);
            Some(*id) != self.own && !departed && !self.peers.contains_key(id)
        };
        let new: Vec<(String, u64)> = listed.into_iter().filter(is_new).collect();
        let known = PeerNode::known(&self.dir, new.iter().map(|(_, id)| *id));
        let mut known: HashMap<u64, PeerNode> =
            known.into_iter().map(|node| (node.incarnation(), node)).collect();
        for (stem, id) in new {
            if self.peers.contains_key(&id) {
                continue;
            }
            let node = match known.remove(&id).filter(|node| **node.stem() == *stem) {
                Some(node) => Ok(Some(node)),
                None if !presence::is_alive(&self.dir, &stem, id) => {
                    self.report_unseen_death(&stem, id, changes);
                    self.dead_folders.push((stem, id));
                    continue;
                }
                None => PeerNode::open(&self.dir, &stem, id),
            };
            match node {
                Ok(Some(node)) => {
                    self.join(node);
                    changes.joined.push(id);
                    // The previous holder of a name has departed, whatever its process does.
                    self.depart_previous_bearer(id, changes);
                }
                Ok(None) => self.incomplete = true,
                Err(error) if is_transient(&error) => self.scan_error = Some(error),
                Err(_) => {}
            }
        }
    }

    fn join(&mut self, node: PeerNode) {
        let id = node.incarnation();
        if node.is_this_process() {
            self.siblings.insert(id);
        }
        let handle = LivenessHandle::open(&self.dir, &node);
        self.reported.remove(&id);
        self.peers.insert(id, Peer { node, handle: LivenessHandle::LockOnly });
        self.set_handle(id, handle);
    }

    pub(crate) fn set_handle(&mut self, id: u64, handle: LivenessHandle) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if handle.must_check_lock() {
            self.lock_checked.insert(id);
        } else {
            self.lock_checked.remove(&id);
        }
        peer.handle = handle;
        if let Some(watch_changes) = &mut self.watch_changes {
            watch_changes.joined.push(id);
        }
    }

    /// The previous holder of this name has departed.
    fn depart_previous_bearer(&mut self, id: u64, changes: &mut Changes) {
        let Some(peer) = self.peers.get(&id) else { return };
        let Some(before) = self.by_name.insert(peer.node.stem().clone(), id) else { return };
        let was_new = changes.joined.contains(&before);
        self.depart(before, changes);
        // A new peer that has already departed is not reported as joined.
        if was_new && let Some((_, meta, departure)) = changes.departed.pop() {
            changes.joined.retain(|joined| *joined != before);
            changes.unseen.push((meta, departure));
        }
    }

    /// Reports a dead node that never was a peer, once.
    fn report_unseen_death(&mut self, stem: &str, id: u64, changes: &mut Changes) {
        changes.ended = true;
        if !self.scanned || self.reported.contains(&id) {
            return;
        }
        // A node that was killed before it wrote its identity is not reported.
        if let Ok(Some(node)) = PeerNode::open(&self.dir, stem, id) {
            self.reported.insert(id);
            let departure = if node.has_left() { Departure::Left } else { Departure::Died };
            changes.unseen.push((node.meta().clone(), departure));
        }
    }

    fn depart(&mut self, id: u64, changes: &mut Changes) {
        let Some(peer) = self.peers.remove(&id) else { return };
        let first = peer.node.set_gone();
        self.reported.insert(id);
        self.lock_checked.remove(&id);
        self.unread.remove(&id);
        self.suspected.remove(&id);
        self.siblings.remove(&id);
        if self.by_name.get(peer.node.stem()) == Some(&id) {
            self.by_name.remove(peer.node.stem());
        }
        let departure = if peer.node.has_left() { Departure::Left } else { Departure::Died };
        let goes_on = matches!(peer.handle, LivenessHandle::PidFd(_)) && !peer.handle.has_ended();
        // A process that continues after its goodbye releases its name itself.
        let leaves_nothing = departure == Departure::Left && goes_on && !peer.node.folder_exists();
        // An exiting process closes its files before the kernel reports its exit.
        if departure == Departure::Died && goes_on && !is_exiting(peer.node.meta().pid) {
            self.outlived.push(id);
        }
        changes.ended = true;
        if first && !leaves_nothing {
            self.dead_folders.push((peer.node.stem().to_string(), id));
        }
        changes.departed.push((id, peer.node.meta().clone(), departure));
        if let Some(watch_changes) = &mut self.watch_changes {
            watch_changes.departed.push((id, peer.handle));
        }
    }

    /// Lists the existing folders and forgets nodes whose folders are removed.
    fn list(&mut self) -> Result<Vec<(String, u64)>, Error> {
        let found = presence::list(&self.dir).inspect_err(|error| {
            if is_transient(error) {
                self.scan_error = Some(error.clone());
            }
        })?;
        if !self.reported.is_empty() {
            let here: HashSet<u64> = found.iter().map(|(_, id)| *id).collect();
            self.reported.retain(|id| here.contains(id));
        }
        Ok(found)
    }
}
