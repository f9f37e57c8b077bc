//! What a node knows of its peers: who there is, what each announces, and who has died.

use std::collections::{BTreeMap, HashSet};
use std::os::fd::OwnedFd;

use rnet_core::Error;

use crate::domain::DomainDir;
use crate::node::{NodeMeta, PeerNode, pid_namespace};
use crate::presence;
use crate::shortage::is_passing;

/// Why a peer is no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It said goodbye.
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
}

/// A peer and the kernel's handle on its process.
#[derive(Debug)]
pub struct Peer {
    /// The peer's folder.
    pub node: PeerNode,
    /// Readable once the process has ended; `None` for our own process, and where the process is
    /// in another pid namespace, so that its lock has to be asked instead.
    pub process: Option<OwnedFd>,
}

impl Peer {
    fn must_be_asked(&self) -> bool {
        self.process.is_none() && !self.node.is_this_process()
    }
}

/// All living nodes of a domain but (where asked) our own.
#[derive(Debug)]
pub struct Registry {
    dir: DomainDir,
    own: Option<u64>,
    peers: BTreeMap<u64, Peer>,
    /// Whether a node could not be looked at for want of a file descriptor.
    missed: bool,
}

impl Registry {
    /// An empty registry; `own` is an incarnation to leave out.
    pub fn new(dir: DomainDir, own: Option<u64>) -> Registry {
        Registry { dir, own, peers: BTreeMap::new(), missed: false }
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

    /// One peer, to map its bells.
    pub fn peer_mut(&mut self, incarnation: u64) -> Option<&mut Peer> {
        self.peers.get_mut(&incarnation)
    }

    /// Whether some peers can only be watched by asking for their locks.
    pub fn needs_polling(&self) -> bool {
        self.peers.values().any(Peer::must_be_asked)
    }

    /// Whether a node could not be looked at for want of a file descriptor: look again later.
    pub fn is_behind(&self) -> bool {
        self.missed || self.peers.values().any(|peer| peer.node.was_missed())
    }

    /// Reads the directory anew, sweeps away the dead, and reads what has changed.
    ///
    /// # Errors
    /// Those of reading the directory itself; a peer that cannot be read is left out.
    pub fn refresh(&mut self) -> Result<Changes, Error> {
        let mut changes = Changes::default();
        let listed = self.list()?;
        let here: HashSet<u64> = listed.iter().map(|(_, id)| *id).collect();
        let gone = self.peers.iter().filter(|(id, peer)| !here.contains(id) || self.has_died(peer));
        for id in gone.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.depart(id, &mut changes);
        }
        self.missed = false;
        self.take_in(listed, &mut changes);
        for (id, peer) in &mut self.peers {
            if peer.node.refresh() {
                changes.changed.push(*id);
            }
        }
        Ok(changes)
    }

    /// As [`Registry::refresh`], but looks only at the nodes that have rung or ended: in a large
    /// domain a change at one node must not make all nodes look at all others.
    pub fn refresh_only(&mut self, nodes: &[u64]) -> Result<Changes, Error> {
        let mut changes = Changes::default();
        let strangers =
            nodes.iter().any(|id| Some(*id) != self.own && !self.peers.contains_key(id));
        // First, because it may fail, and nothing must be taken note of by halves.
        let listed = if strangers { self.list()? } else { Vec::new() };
        for id in nodes {
            let Some(peer) = self.peers.get_mut(id) else { continue };
            if peer.node.refresh() {
                changes.changed.push(*id);
            }
            let peer = &self.peers[id];
            if !peer.node.is_here() || self.has_died(peer) {
                self.depart(*id, &mut changes);
            }
        }
        if strangers {
            let mut listed = listed;
            listed.retain(|(_, id)| nodes.contains(id));
            let known = changes.joined.len();
            self.take_in(listed, &mut changes);
            let new: Vec<u64> = changes.joined[known..].to_vec();
            for id in new {
                if self.peers.get_mut(&id).is_some_and(|peer| peer.node.refresh()) {
                    changes.changed.push(id);
                }
            }
        }
        Ok(changes)
    }

    fn has_died(&self, peer: &Peer) -> bool {
        has_ended(peer.process.as_ref())
            || (peer.must_be_asked()
                && !presence::is_alive(&self.dir, peer.node.stem(), peer.node.incarnation()))
    }

    /// Gets to know the nodes that are new, sweeps away those that are dead.
    fn take_in(&mut self, listed: Vec<(String, u64)>, changes: &mut Changes) {
        for (stem, id) in listed {
            let departed = changes.departed.iter().any(|(gone, ..)| *gone == id);
            if Some(id) == self.own || departed || self.peers.contains_key(&id) {
                continue;
            }
            if !presence::is_alive(&self.dir, &stem, id) {
                presence::sweep(&self.dir, &stem, id);
                continue;
            }
            match PeerNode::open(&self.dir, &stem, id) {
                Ok(Some(node)) => {
                    let process = watch(&self.dir, &node);
                    self.peers.insert(id, Peer { node, process });
                    changes.joined.push(id);
                }
                Err(error) => self.missed |= is_passing(&error),
                Ok(None) => {}
            }
        }
    }

    fn depart(&mut self, id: u64, changes: &mut Changes) {
        let Some(peer) = self.peers.remove(&id) else { return };
        let departure = if peer.node.said_goodbye() { Departure::Left } else { Departure::Died };
        presence::sweep(&self.dir, peer.node.stem(), id);
        changes.departed.push((id, peer.node.meta().clone(), departure));
    }

    fn list(&self) -> Result<Vec<(String, u64)>, Error> {
        let path = self.dir.nodes();
        let failed = |e: std::io::Error| crate::files::io_error("cannot list", &path, e);
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // Anything else in the folder is somebody's litter, and none of ours.
            if let Some(name) = entry.file_name().to_str()
                && let Some((stem, id)) = presence::parse_folder_name(name)
            {
                found.push((stem.to_owned(), id));
            }
        }
        Ok(found)
    }
}

/// A handle on the peer's process, if it is in our pid namespace.
fn watch(dir: &DomainDir, node: &PeerNode) -> Option<OwnedFd> {
    let meta = node.meta();
    if node.is_this_process() || meta.pid_namespace != pid_namespace() {
        return None;
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(meta.pid).ok()?)?;
    let fd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()?;
    // The number could have been given to another process before we opened it; the lock says
    // that the node lives, hence that the number was still its own.
    presence::is_alive(dir, node.stem(), node.incarnation()).then_some(fd)
}

fn has_ended(process: Option<&OwnedFd>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let Some(process) = process else { return false };
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut fds, Some(&now)), Ok(1..))
}
