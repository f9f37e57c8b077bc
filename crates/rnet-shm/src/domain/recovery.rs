//! What a node has in the domain's directory, and putting it back when somebody has removed it.
//!
//! systemd-logind removes the files of a user who logs out (RemoveIPC), and clean-up scripts do so too,
//! under living nodes. Their files live on, by descriptors and mappings, but no new node finds them. So each
//! node holds descriptors of the files in its folder, looks once a second whether all is in its
//! place, and puts back what is not: the directory and its version, its name with its lock, its folder, and in
//! that a link to each file (`unlinked_files.rs`). Nothing changes for those who have the files open, and whoever comes
//! finds the same logs, pages and counters.
//!
//! Descriptors are few. Those of endpoints are held only while their numbers are in the lower half of
//! what the process may have; a file that is not held cannot be put back, and that is told.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rnet_core::{Error, NodeName};
use rnet_ring::fail_point;
use rustix::fs::Mode;
use rustix::io::Errno;

use crate::domain::directory::DomainDir;
use crate::domain::presence::{self, Presence};
use crate::os::files::{self, io_error};
use crate::os::folders::{self, NodeFolder};
use crate::os::{clock, unlinked_files};

/// How long a folder must have been unchanged before its time of change proves anything.
const SETTLED_NS: u64 = 50_000_000;

/// A node's place in the directory.
#[derive(Debug)]
pub struct NodeFiles {
    dir: DomainDir,
    name: NodeName,
    folder: PathBuf,
    incarnation: u64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// `None` once the node has left, and what is gone then is to be gone.
    presence: Option<Presence>,
    tracked: BTreeMap<OsString, TrackedFile>,
    /// Files of which no descriptor is held.
    untracked: BTreeSet<OsString>,
    /// When the folder was last changed, as of the last look that found all in its place.
    seen: Option<(u64, i64, u64)>,
    /// What was put back for a file that was needed at once, and not taken note of since.
    restored: Option<RecoveryReport>,
}

/// A file of the folder.
#[derive(Debug)]
enum TrackedFile {
    Owned(OwnedFd),
    /// Held by another part of the node, for as long as the node is there.
    Borrowed(RawFd),
}

impl AsFd for TrackedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            TrackedFile::Owned(fd) => fd.as_fd(),
            // SAFETY: the node that owns the descriptor ends this home before it closes it.
            TrackedFile::Borrowed(fd) => unsafe { BorrowedFd::borrow_raw(*fd) },
        }
    }
}

/// What was put back.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Files that others find again.
    pub files: usize,
    /// Files that could not be put back.
    pub lost: Vec<String>,
}

/// Whether a file of this name holds a type. What becomes of one alone is told to those whom it concerns, as a type
/// that cannot be read; it comes back with the rest.
fn is_type(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"t")
}

/// Nodes that live and whose folders are not there, with their processes: as far as we may look.
pub fn nodes_without_folder(domain: &Path) -> Vec<(u32, String)> {
    let mut found = BTreeSet::new();
    let nodes = domain.join("nodes");
    unlinked_files::for_each_unlinked(|pid, path| {
        if path.file_name().is_some_and(|name| name == "node")
            && let Some(folder) = path.parent().filter(|folder| folder.parent() == Some(&nodes))
            && rustix::fs::lstat(path).is_err()
            && let Some(name) = folder.file_name().and_then(|name| name.to_str())
            && let Some((stem, _)) = presence::parse_folder_name(name)
            && let Ok(node) = NodeName::from_file_stem(stem)
        {
            found.insert((pid, node.to_string()));
        }
    });
    found.into_iter().collect()
}

impl NodeFiles {
    /// The home of a node that has its name, and whose folder was just made.
    pub(crate) fn new(
        dir: &DomainDir,
        name: &NodeName,
        folder: &Path,
        incarnation: u64,
        presence: Presence,
    ) -> Arc<NodeFiles> {
        let inner = Mutex::new(Inner { presence: Some(presence), ..Inner::default() });
        let (dir, name, folder) = (dir.clone(), name.clone(), folder.to_owned());
        let files = Arc::new(NodeFiles { dir, name, folder, incarnation, inner });
        let folder: Weak<NodeFiles> = Arc::downgrade(&files);
        folders::register(&files.folder, folder);
        files
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file whose descriptor the node itself holds.
    pub(crate) fn track_fd(&self, name: &str, file: impl AsFd) {
        let number = TrackedFile::Borrowed(file.as_fd().as_raw_fd());
        self.inner().tracked.insert(name.into(), number);
    }

    /// The node leaves: nothing is put back any more. Its name is given up by dropping what this returns.
    pub(crate) fn leave(&self) -> Option<Presence> {
        folders::unregister(&self.folder);
        let mut inner = self.inner();
        inner.tracked.clear();
        inner.untracked.clear();
        inner.presence.take()
    }

    /// Whether everything is in its place, as far as can be told at little cost.
    pub fn is_whole(&self) -> bool {
        let inner = &mut *self.inner();
        let Some(presence) = &inner.presence else { return true };
        // A version that cannot be read, for want of a descriptor say, is no reason to write it.
        if !presence.is_in_place() || matches!(self.dir.has_our_version(), Ok(false)) {
            return false;
        }
        let Ok(stat) = rustix::fs::lstat(&self.folder) else { return false };
        let now = (stat.st_ino, stat.st_ctime, stat.st_ctime_nsec);
        if inner.seen == Some(now) {
            return true;
        }
        let in_place = |(name, file): (&OsString, &TrackedFile)| {
            is_type(name) || unlinked_files::is_at(&self.folder.join(name), file)
        };
        let there = |name: &OsString| rustix::fs::lstat(self.folder.join(name)).is_ok();
        if !inner.tracked.iter().all(in_place) || !inner.untracked.iter().all(there) {
            return false;
        }
        let changed_ns = (stat.st_ctime as u64) * 1_000_000_000 + stat.st_ctime_nsec;
        inner.seen = (clock::unix_ns().saturating_sub(changed_ns) > SETTLED_NS).then_some(now);
        true
    }

    /// What was put back before anybody looked, because a file was needed: once.
    pub fn take_restored(&self) -> Option<RecoveryReport> {
        self.inner().restored.take()
    }

    /// Puts back what is not in its place.
    ///
    /// # Errors
    /// Those of joining a domain; `NameTaken` if another node has taken the name meanwhile.
    pub fn restore_missing(&self) -> Result<RecoveryReport, Error> {
        let inner = &mut *self.inner();
        let Some(presence) = &mut inner.presence else { return Ok(RecoveryReport::default()) };
        inner.seen = None;
        self.dir.recreate()?;
        fail_point!("recovery.directory");
        if !presence.is_in_place() {
            // The old file's lock goes with it: nobody can ask for that one any more.
            *presence = Presence::take(&self.dir, &self.name, self.incarnation)?;
        }
        fail_point!("recovery.name");
        let mode = Mode::from_raw_mode(self.dir.folder_mode());
        match rustix::fs::mkdir(&self.folder, mode) {
            Ok(()) => rustix::fs::chmod(&self.folder, mode)
                .map_err(|e| io_error("cannot restore", &self.folder, e))?,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(io_error("cannot restore", &self.folder, errno)),
        }
        fail_point!("recovery.folder");
        let mut done = RecoveryReport::default();
        // What says that the node is complete comes last.
        let (head, rest): (Vec<_>, Vec<_>) =
            inner.tracked.iter().partition(|(name, _)| *name == "node");
        for (name, file) in rest.into_iter().chain(head) {
            let path = self.folder.join(name);
            if !unlinked_files::is_at(&path, file) {
                unlinked_files::replace_with_link(&path, file)
                    .map_err(|e| io_error("cannot restore", &path, e))?;
                done.files += 1;
                fail_point!("recovery.file");
            }
        }
        let lost =
            inner.untracked.iter().filter(|n| rustix::fs::lstat(self.folder.join(n)).is_err());
        done.lost = lost.map(|name| name.to_string_lossy().into_owned()).collect();
        inner.untracked.retain(|name| rustix::fs::lstat(self.folder.join(name)).is_ok());
        Ok(done)
    }
}

impl NodeFolder for NodeFiles {
    fn track(&self, name: &OsStr, file: BorrowedFd<'_>) {
        let mut inner = self.inner();
        match rustix::io::fcntl_dupfd_cloexec(file, 0) {
            Ok(fd) if !files::is_scarce(&fd) => {
                drop(inner.tracked.insert(name.to_owned(), TrackedFile::Owned(fd)))
            }
            _ => drop(inner.untracked.insert(name.to_owned())),
        }
    }

    fn forget(&self, name: &OsStr) {
        let mut inner = self.inner();
        inner.tracked.remove(name);
        inner.untracked.remove(name);
    }

    fn restore(&self) -> bool {
        let Ok(back) = self.restore_missing() else { return false };
        let inner = &mut *self.inner();
        let restored = inner.restored.get_or_insert_default();
        restored.files += back.files;
        restored.lost.extend(back.lost);
        true
    }

    fn restore_file(&self, name: &OsStr) -> bool {
        let tracked = !is_type(name) && self.inner().tracked.contains_key(name);
        tracked && self.restore()
    }

    fn is_live_incarnation(&self, incarnation: u64) -> bool {
        self.incarnation == incarnation && self.inner().presence.is_some()
    }
}
