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
use crate::os::files::{io_error, word_at};
use crate::os::fork::UnsharedFd;
use crate::os::unlinked_files;

/// A ring at the control FIFO: the incarnation of the node that rings, and above it the length of its name, which
/// follows, padded to whole words; mostly there is none.
const RING_LEN_BYTES: usize = 8;
const NAME_LEN_SHIFT: u32 = 48;
/// No ring is longer.
const MAX_RING_LEN_BYTES: usize = RING_LEN_BYTES + MAX_NODE_NAME_LEN_BYTES.next_multiple_of(8);
/// A FIFO is made of pages, of this length or a multiple of it.
const PAGE_LEN_BYTES: usize = 4096;

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
            if name_len > 0 {
                let stem = str::from_utf8(&name[..name_len]);
                let Some(stem) = stem.ok().filter(|s| NodeName::from_file_stem(s).is_ok()) else {
                    return false;
                };
                self.names.insert(from, stem.to_owned());
            }
            bytes = rest;
        }
        bytes.is_empty()
    }
}

impl OwnNode {
    /// Readable when a peer has rung: see [`OwnNode::drain_control`].
    pub fn control(&self) -> &UnsharedFd {
        &self.fifo
    }

    /// Rings this node's own control thread; needs no file descriptor that might not be had.
    pub fn ring_self(&self) {
        let _ = rustix::io::write(&self.fifo, &self.incarnation.to_le_bytes());
    }

    /// Tells the node whose folder it is that something has changed here. What cannot be done for
    /// want of a file descriptor is pending_rings: see [`OwnNode::ring_pending`].
    pub fn ring(&self, folder: &Path) {
        self.ring_or_queue(folder, ring_control(folder, self.incarnation));
    }

    /// As [`OwnNode::ring`], for a node that may not know this one.
    pub fn greet(&self, folder: &Path) {
        self.ring_or_queue(folder, ring_with(folder, self.incarnation, &self.name.file_stem()));
    }

    fn ring_or_queue(&self, folder: &Path, rung: bool) {
        if !rung {
            self.pending_rings().insert(folder.to_owned());
            // The control thread then tries again once a second.
            self.ring_self();
        }
    }

    /// Rings those that could not be rung before; `false` if some still cannot.
    pub fn ring_pending(&self) -> bool {
        let mut pending_rings = self.pending_rings();
        pending_rings.retain(|folder| !ring_control(folder, self.incarnation));
        pending_rings.is_empty()
    }

    fn pending_rings(&self) -> std::sync::MutexGuard<'_, BTreeSet<PathBuf>> {
        self.pending_rings.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Takes the pending rings out of the control FIFO. `None` if it cannot be told who has rung,
    /// because the FIFO was full or a peer wrote what is no ring; then anyone may have.
    pub fn drain_control(&self) -> Option<Rings> {
        // One call takes all that is there, so that none ends within a ring.
        let mut bytes = Vec::with_capacity(self.fifo_len_bytes);
        let room = rustix::buffer::spare_capacity(&mut bytes);
        match rustix::io::read(&self.fifo, room) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return None,
        }
        let mut rings = Rings::default();
        let whole = rings.add(&bytes);
        rings.nodes.sort_unstable();
        rings.nodes.dedup();
        (whole && !self.may_be_full(bytes.len())).then_some(rings)
    }

    /// Whether a ring may have found no room beside so many bytes. One that the last page has no room for is
    /// written to the next page, so the end of each page may be empty.
    fn may_be_full(&self, len: usize) -> bool {
        let pages = self.fifo_len_bytes.div_ceil(PAGE_LEN_BYTES);
        len + pages * MAX_RING_LEN_BYTES > self.fifo_len_bytes
    }
}

pub(super) fn create_fifo(path: &Path, mode: u32) -> Result<UnsharedFd, Error> {
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
    UnsharedFd::open(|| rustix::fs::open(path, flags, Mode::empty())).map_err(failed)
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
    match unlinked_files::open(&folder.join("ctl"), OFlags::RDWR) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::directory::{DomainConfig, DomainDir};
    use crate::os::random::random_u64;

    fn with_node(body: impl FnOnce(&OwnNode)) {
        let base = std::env::temp_dir().join(format!("rnet-rings-{:x}", random_u64()));
        std::fs::create_dir(&base).unwrap();
        let config = DomainConfig { base: Some(base.clone()), ..DomainConfig::default() };
        let dir = DomainDir::open_or_create(&config).unwrap();
        let name = NodeName::new("/rung").unwrap();
        body(&OwnNode::create(&dir, &name, "rust", "0").unwrap());
        std::fs::remove_dir_all(&base).unwrap();
    }

    fn ring_of(from: u64, name: &[u8]) -> Vec<u8> {
        let mut ring = (from | (name.len() as u64) << NAME_LEN_SHIFT).to_le_bytes().to_vec();
        ring.extend(name);
        ring.resize(ring.len().next_multiple_of(8), 0);
        ring
    }

    /// Of whatever length its rings are: some leave the end of each page empty.
    #[test]
    fn a_ring_that_was_lost_is_noticed() {
        with_node(|node| {
            for name_len in (0..=MAX_NODE_NAME_LEN_BYTES).step_by(8) {
                let name = "n".repeat(name_len);
                let ring = ring_of(7, name.as_bytes());
                while rustix::io::write(&node.fifo, &ring).is_ok() {}
                assert_eq!(node.drain_control(), None, "{} bytes", ring.len());
                // It is empty then.
                assert_eq!(node.drain_control(), Some(Rings::default()));
            }
        });
    }

    #[test]
    fn half_a_fifo_of_rings_is_believed() {
        with_node(|node| {
            let ring = ring_of(7, b"sixteen_letters_");
            for _ in 0..node.fifo_len_bytes / 2 / ring.len() {
                rustix::io::write(&node.fifo, &ring).unwrap();
            }
            let names = BTreeMap::from([(7, "sixteen_letters_".to_owned())]);
            assert_eq!(node.drain_control(), Some(Rings { nodes: vec![7], names }));
        });
    }

    #[test]
    fn what_is_no_name_is_no_ring() {
        let long = [b'n'; MAX_NODE_NAME_LEN_BYTES + 8];
        for name in [&b"a/b"[..], b"\xff", b"..", &long] {
            let mut bytes = ring_of(7, name);
            bytes.extend(ring_of(8, b""));
            assert!(!Rings::default().add(&bytes), "{name:?}");
        }
    }
}
