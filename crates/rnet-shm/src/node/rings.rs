//! The control FIFO: by it peers tell a node at which node something has changed.
//!
//! A node that joins tells its name with that, so that nobody has to list the domain for it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rnet_core::{Error, MAX_NODE_NAME_LEN_BYTES, NodeName};
use rnet_ring::fail_point;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::OwnNode;
use crate::files::{io_error, word_at};
use crate::fork::Unshared;
use crate::lent;

/// A ring at the control FIFO: the incarnation of the node that rings, and above it the length of its name, which
/// follows, padded to whole words; mostly there is none.
const RING_LEN_BYTES: usize = 8;
const NAME_LEN_SHIFT: u32 = 48;
/// No ring is longer.
const MAX_RING_LEN_BYTES: usize = RING_LEN_BYTES + MAX_NODE_NAME_LEN_BYTES.next_multiple_of(8);

/// What was rung.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rings {
    /// The nodes at which something has changed, each once.
    pub nodes: Vec<u64>,
    /// Names of those that have told them, as written in file names.
    pub names: BTreeMap<u64, String>,
}

impl Rings {
    /// Adds what a FIFO held; `false` if that is not whole rings.
    fn add(&mut self, mut bytes: &[u8]) -> bool {
        while let Some((head, rest)) = bytes.split_at_checked(RING_LEN_BYTES) {
            let word = word_at(head, 0);
            let name_len = (word >> NAME_LEN_SHIFT) as usize;
            let from = word & ((1 << NAME_LEN_SHIFT) - 1);
            let Some((name, rest)) = rest.split_at_checked(name_len.next_multiple_of(8)) else {
                return false;
            };
            self.nodes.push(from);
            // What is no name is as good as none.
            if let Some(Ok(stem)) = name.get(..name_len).map(std::str::from_utf8)
                && NodeName::from_file_stem(stem).is_ok()
            {
                self.names.insert(from, stem.to_owned());
            }
            bytes = rest;
        }
        bytes.is_empty()
    }
}

impl OwnNode {
    /// Readable when a peer has rung: see [`OwnNode::drain_control`].
    pub fn control(&self) -> &Unshared {
        &self.fifo
    }

    /// Rings this node's own control thread; needs no file descriptor that might not be had.
    pub fn ring_self(&self) {
        let _ = rustix::io::write(&self.fifo, &self.incarnation.to_le_bytes());
    }

    /// Tells the node whose folder it is that something has changed here. What cannot be done for
    /// want of a file descriptor is owed: see [`OwnNode::ring_owed`].
    pub fn ring(&self, folder: &Path) {
        self.ring_or_owe(folder, ring_control(folder, self.incarnation));
    }

    /// As [`OwnNode::ring`], for a node that may not know this one.
    pub fn greet(&self, folder: &Path) {
        self.ring_or_owe(folder, ring_with(folder, self.incarnation, &self.name.file_stem()));
    }

    fn ring_or_owe(&self, folder: &Path, rung: bool) {
        if !rung {
            self.owed().insert(folder.to_owned());
            // The control thread then tries again once a second.
            self.ring_self();
        }
    }

    /// Rings those that could not be rung before; `false` if some still cannot.
    pub fn ring_owed(&self) -> bool {
        let mut owed = self.owed();
        owed.retain(|folder| !ring_control(folder, self.incarnation));
        owed.is_empty()
    }

    fn owed(&self) -> std::sync::MutexGuard<'_, BTreeSet<PathBuf>> {
        self.owed.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Takes the pending rings out of the control FIFO. `None` if it cannot be told who has rung,
    /// because the FIFO was full or a peer wrote what is no ring; then anyone may have.
    pub fn drain_control(&self) -> Option<Rings> {
        let mut bytes = Vec::new();
        let mut buf = [0u8; 4096];
        // A peer that rings without end is not listened to without end.
        while bytes.len() < self.fifo_len_bytes {
            match rustix::io::read(&self.fifo, &mut buf) {
                Err(Errno::AGAIN) => break,
                Ok(len) => {
                    bytes.extend(&buf[..len]);
                    if len < buf.len() {
                        break;
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        let mut rings = Rings::default();
        let whole = rings.add(&bytes);
        rings.nodes.sort_unstable();
        rings.nodes.dedup();
        (whole && bytes.len() + MAX_RING_LEN_BYTES <= self.fifo_len_bytes).then_some(rings)
    }
}

pub(super) fn create_fifo(path: &Path, mode: u32) -> Result<Unshared, Error> {
    let failed = |e| io_error("cannot create", path, e);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        rustix::fs::FileType::Fifo,
        Mode::from_raw_mode(mode),
        0,
    )
    .and_then(|()| rustix::fs::chmod(path, Mode::from_raw_mode(mode)))
    .map_err(failed)?;
    fail_point!("node.fifo");
    // Open for both directions: then there is always a reader and a writer, and neither end sees
    // an end of file or a SIGPIPE when peers come and go.
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Unshared::open(|| rustix::fs::open(path, flags, Mode::empty())).map_err(failed)
}

/// Tells a node that something has changed at the node `from`. Its control thread then looks
/// there. `false` if that has to be tried again: a file descriptor was wanting.
pub fn ring_control(folder: &Path, from: u64) -> bool {
    ring_with(folder, from, "")
}

fn ring_with(folder: &Path, from: u64, name: &str) -> bool {
    let mut ring = (from | (name.len() as u64) << NAME_LEN_SHIFT).to_le_bytes().to_vec();
    ring.extend(name.as_bytes());
    ring.resize(ring.len().next_multiple_of(8), 0);
    match lent::open(&folder.join("ctl"), OFlags::RDWR) {
        // Short writes to a FIFO are whole or not at all. One that is full has been rung so often
        // that its node will look everywhere.
        Ok(fifo) => {
            fail_point!("ring.opened");
            let _ = rustix::io::write(&fifo, &ring);
            fail_point!("ring.written");
        }
        Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => return false,
        // A node that has left.
        Err(_) => {}
    }
    true
}
