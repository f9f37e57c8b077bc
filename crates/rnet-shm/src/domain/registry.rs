//! What a node knows of its peers: who there is, what each announces, and who has died.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use rnet_core::{Error, MAX_NODES_PER_DOMAIN};

use crate::domain::deaths;
use crate::domain::directory::DomainDir;
use crate::domain::liveness_handle::LivenessHandle;
use crate::domain::node::{NodeMeta, PeerNode};
use crate::domain::presence;
use crate::os::process_state::is_exiting;
use crate::os::shortage::{io_error, is_transient};

/// The language of nodes that people's tools open: they have places of their own in a domain.
pub const TOOL_LANGUAGE: &str = "tool";

/// Why a peer is no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It said goodbye, or ended after it was asked to stop.
    Left,
    /// Its process ended without a word.
    Died,
}

/// What a [`Registry::refresh`] found.
#[derive(Debug, Default)]
pub struct Changes {
    /// Peers that were not known before.
    pub joined: Vec<u64>,
    /// Peers that are gone.
    pub departed: Vec<(u64, NodeMeta, Departure)>,
    /// Peers whose endpoints have changed, new ones included.
    pub changed: Vec<u64>,
    /// Nodes that came and went between two looks: they never were peers.
    pub unseen: Vec<(NodeMeta, Departure)>,
    /// Whether a node has ended, known or not, or may have: what follows from an end is to be looked for.
    pub ended: bool,
}

/// A peer and the kernel's handle on its end.
#[derive(Debug)]
pub struct Peer {
    /// The peer's folder.
    pub node: PeerNode,
    /// By what its end is noticed.
    pub handle: LivenessHandle,
}

/// What a [`Watch`](crate::domain::watch::Watch) is to follow.
#[derive(Debug, Default)]
pub(crate) struct WatchChanges {
    /// Peers that are new, or have another handle.
    pub joined: Vec<u64>,
    /// Those that are gone, and by what their end was noticed.
    pub departed: Vec<(u64, LivenessHandle)>,
}

/// Folders of nodes that are gone.
#[derive(Debug)]
#[must_use = "what the dead have left stays until it is swept"]
pub struct DeadFolders {
    dir: DomainDir,
    folders: Vec<(String, u64)>,
}

impl DeadFolders {
    /// Removes them, as far as they are there.
    pub fn sweep(self) {
        for (stem, incarnation) in self.folders {
            deaths::sweep(&self.dir, &stem, incarnation);
        }
    }
}

/// Reads what a peer has announced since.
fn read(id: u64, peer: &mut Peer, unread: &mut BTreeSet<u64>, changes: &mut Changes) {
    if peer.node.refresh() {
        changes.changed.push(id);
    }
    match peer.node.refresh_error() {
        Some(_) => unread.insert(id),
        None => unread.remove(&id),
    };
}

/// All living nodes of a domain but (where asked) our own.
#[derive(Debug)]
pub struct Registry {
    dir: DomainDir,
    own: Option<u64>,
    peers: BTreeMap<u64, Peer>,
    /// Who bears a name, as written in file names.
    by_name: HashMap<Arc<str>, u64>,
    /// Peers whose locks say whether they live.
    lock_checked: BTreeSet<u64>,
    /// Peers whose endpoints could not be read for want of a file descriptor.
    unread: BTreeSet<u64>,
    /// The other nodes of this process.
    siblings: BTreeSet<u64>,
    /// What has changed since a watch followed; `None` before one does. It holds descriptors of the dead, which nobody
    /// would take from a registry that is not watched.
    watch_changes: Option<WatchChanges>,
    /// Names of nodes that have greeted and are not known yet.
    greeted: BTreeMap<u64, String>,
    /// Peers that may have ended without the kernel saying so: their locks are asked for.
    suspected: BTreeSet<u64>,
    /// Peers that have died and whose processes go on as another program.
    outlived: Vec<u64>,
    /// Folders of the dead that nobody has swept yet.
    dead_folders: Vec<(String, u64)>,
    /// Whether everything was looked at once: who was dead by then has not departed since.
    scanned: bool,
    /// Nodes whose end was told, until their folders are gone: each is told of once.
    reported: HashSet<u64>,
    /// Whether the last look met a node that was still being made.
    incomplete: bool,
    /// Why the domain or a node could not be looked at, if something was short.
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

    /// Whether the word on some peers' life is their lock, which has to be asked for.
    pub fn needs_polling(&self) -> bool {
        !self.lock_checked.is_empty()
    }

    /// What has changed since this was asked last; at first all peers are new.
    pub(crate) fn take_watch_changes(&mut self) -> WatchChanges {
        let all = || WatchChanges {
            joined: self.peers.keys().copied().collect(),
            ..WatchChanges::default()
        };
        self.watch_changes.replace(WatchChanges::default()).unwrap_or_else(all)
    }

    /// These nodes have told their names: the next look at them need not search for them.
    pub fn note_names(&mut self, names: BTreeMap<u64, String>) {
        self.greeted = names;
    }

    /// Whether no other node of this process comes before ours: one does what need not be done
    /// twice. `false` until all were looked at.
    pub fn leads_its_process(&self) -> bool {
        self.scanned && self.siblings.first().is_none_or(|first| Some(*first) > self.own)
    }

    /// The next look asks for the locks of the peers with these names, and need not believe their
    /// processes: one that calls `execve` goes on, and its node does not. Returns who they are.
    pub fn suspect(&mut self, named: impl Fn(&str) -> bool) -> Vec<u64> {
        let peers = self.peers.iter();
        let named = peers.filter(|(_, p)| !p.node.is_this_process() && named(p.node.stem()));
        let found: Vec<u64> = named.map(|(id, _)| *id).collect();
        self.suspected.extend(&found);
        found
    }

    /// Peers that have died since this was asked last, though their processes go on: whoever only
    /// watches these does not know.
    pub fn take_outlived(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.outlived)
    }

    /// What the dead have left, to be swept once their end was told: it may be much, and takes time.
    pub fn take_dead_folders(&mut self) -> DeadFolders {
        DeadFolders { dir: self.dir.clone(), folders: std::mem::take(&mut self.dead_folders) }
    }

    /// Whether the last look met a node whose folder was there and not yet complete. Nodes greet
    /// their peers when they are; whoever looks from outside has to look again.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Whether a node could not be looked at for want of a file descriptor: look again later.
    pub fn needs_rescan(&self) -> bool {
        self.scan_error.is_some() || !self.unread.is_empty() || !self.suspected.is_empty()
    }

    /// Why the domain, or a node, could not be looked at, if something was short.
    pub fn shortage(&self) -> Option<Error> {
        let unread = || {
            let node = &self.peers.get(self.unread.first()?)?.node;
            Some(io_error("cannot read", &node.folder().join("node"), node.refresh_error()?))
        };
        self.scan_error.clone().or_else(unread)
    }

    /// Reads the directory anew, and what has changed. What the dead have left is to be taken with
    /// [`Registry::take_dead_folders`].
    ///
    /// # Errors
    /// Those of reading the directory itself; a peer that cannot be read is left out.
    pub fn refresh(&mut self) -> Result<Changes, Error> {
        let mut changes = Changes::default();
        let listed = self.list()?;
        let here: HashSet<u64> = listed.iter().map(|(_, id)| *id).collect();
        // One that the list leaves out is asked for by name: a directory changes while it is read.
        let left_out = |id: &u64, peer: &Peer| {
            // One whose folder somebody has removed under it puts it back.
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
            // There may be a file descriptor for it by now.
            if let Some(peer) = self.peers.get(&id)
                && matches!(peer.handle, LivenessHandle::LockOnly)
            {
                self.set_handle(id, LivenessHandle::open(&self.dir, &peer.node));
            }
        }
        changes.changed = self.refresh_lists().changed;
        Ok(changes)
    }

    /// Reads anew what the peers have announced that are known; a call for each that has announced something since.
    pub fn refresh_lists(&mut self) -> Changes {
        let mut changes = Changes::default();
        for (id, peer) in &mut self.peers {
            read(*id, peer, &mut self.unread, &mut changes);
        }
        changes
    }

    /// As [`Registry::refresh`], but looks at the known peers alone, which takes no look at the directory.
    pub fn refresh_known(&mut self) -> Changes {
        let known: Vec<u64> = self.peers.keys().copied().collect();
        let mut changes = Changes::default();
        self.look_at(&known, &mut changes);
        changes
    }

    /// As [`Registry::refresh`], but looks only at the nodes that have rung or ended, and at those of
    /// which only the name is known, if `named` says so: in a large domain a change at one node must not
    /// make all nodes look at all others.
    pub fn refresh_only(
        &mut self,
        nodes: &[u64],
        named: Option<&dyn Fn(&str) -> bool>,
    ) -> Result<Changes, Error> {
        let mut changes = Changes::default();
        let mut names = std::mem::take(&mut self.greeted);
        // A ring is believed in what can be seen.
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
        let told: Vec<(String, u64)> = unknown.iter().filter_map(name_of).collect();
        // To list the folders forgets whose folder is gone.
        let strangers = named.is_some()
            || told.len() < unknown.len()
            || self.reported.len() > MAX_NODES_PER_DOMAIN;
        // First, because it may fail, and nothing must be taken note of by halves.
        let mut listed = if strangers { self.list()? } else { told };
        self.look_at(nodes, &mut changes);
        if !listed.is_empty() || !unknown.is_empty() {
            // One that rang and is not there came and went, and somebody else has swept its folder.
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

    /// Reads what these peers have announced, and whether they live.
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

    /// Gets to know the nodes that are new.
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
                    // Whoever bore a name before its bearer is gone, whatever its process does.
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

    /// The one that bore this name before is gone.
    fn depart_previous_bearer(&mut self, id: u64, changes: &mut Changes) {
        let Some(peer) = self.peers.get(&id) else { return };
        let Some(before) = self.by_name.insert(peer.node.stem().clone(), id) else { return };
        let was_new = changes.joined.contains(&before);
        self.depart(before, changes);
        // Not told of as one that is there.
        if was_new && let Some((_, meta, departure)) = changes.departed.pop() {
            changes.joined.retain(|joined| *joined != before);
            changes.unseen.push((meta, departure));
        }
    }

    /// A folder of the dead, of a node that never was a peer: its end is told of nevertheless, once.
    fn report_unseen_death(&mut self, stem: &str, id: u64, changes: &mut Changes) {
        changes.ended = true;
        if !self.scanned || self.reported.contains(&id) {
            return;
        }
        // One that was killed before it had written who it is was nobody yet.
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
        // Whoever goes on after its goodbye sees to its name itself.
        let leaves_nothing = departure == Departure::Left && goes_on && !peer.node.folder_exists();
        // A process that is ending closes its files before the kernel says that it has ended.
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

    /// The folders that are there; whose folder is gone is forgotten.
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
