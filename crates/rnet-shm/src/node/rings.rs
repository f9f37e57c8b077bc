//! The control FIFO: by it peers tell a node at which node something has changed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rnet_core::Error;
use rnet_ring::fail_point;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::OwnNode;
use crate::files::{io_error, word_at};
use crate::fork::Unshared;
use crate::lent;

/// A ring at the control FIFO: the incarnation of the node that rings.
const RING_LEN_BYTES: usize = 8;

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
        if !ring_control(folder, self.incarnation) {
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

    /// Takes the pending rings out of the control FIFO: which nodes have rung. `None` if that
    /// cannot be told, because the FIFO was full or a peer wrote what is no ring; then anyone may
    /// have.
    pub fn drain_control(&self) -> Option<Vec<u64>> {
        let mut rings = Vec::new();
        let mut whole = true;
        let mut taken = 0;
        let mut buf = [0u8; 4096];
        // A peer that rings without end is not listened to without end.
        while taken < self.fifo_len_bytes {
            match rustix::io::read(&self.fifo, &mut buf) {
                Ok(0) | Err(Errno::AGAIN) => break,
                Ok(len) => {
                    taken += len;
                    whole &= len % RING_LEN_BYTES == 0;
                    rings.extend((0..len / RING_LEN_BYTES).map(|i| word_at(&buf, i)));
                }
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        rings.sort_unstable();
        rings.dedup();
        (whole && taken + RING_LEN_BYTES <= self.fifo_len_bytes).then_some(rings)
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
    match lent::open(&folder.join("ctl"), OFlags::RDWR) {
        // Short writes to a FIFO are whole or not at all. One that is full has been rung so often
        // that its node will look everywhere.
        Ok(fifo) => {
            fail_point!("ring.opened");
            let _ = rustix::io::write(&fifo, &from.to_le_bytes());
            fail_point!("ring.written");
        }
        Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => return false,
        // A node that has left.
        Err(_) => {}
    }
    true
}
