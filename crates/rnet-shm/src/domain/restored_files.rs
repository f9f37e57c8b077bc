//! A node's files in the domain's directory, which are restored after their removal.
//!
//! systemd-logind removes the files of a user who logs out (RemoveIPC), and so do clean-up scripts, while
//! nodes are alive. The files survive through descriptors and mappings, but new nodes do not find them. So
//! each node holds descriptors of the files in its folder, checks once a second that all are in place, and
//! restores what is missing: the directory and its version, its name with its lock, its folder, and in it a
//! link to each file (`unlinked_files.rs`). Processes that have the files open are not affected, and new
//! nodes find the same logs, pages and counters.
//!
//! Descriptors are scarce. Descriptors of endpoint files are held only if their numbers are in the lower half
//! of the process limit. A file whose descriptor is not held cannot be restored; this is reported.

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

/// How long a folder must be unchanged before its change time is reliable.
const SETTLED_NS: u64 = 50_000_000;

/// A node's files in the directory.
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
    /// `None` once the node has left; then missing files are not restored.
    presence: Option<Presence>,
    tracked: BTreeMap<OsString, TrackedFile>,
    /// Files whose descriptors are not held.
    untracked: BTreeSet<OsString>,
    /// When the folder was last changed, as of the last check that found all files in place.
    seen: Option<(u64, i64, u64)>,
    /// What was restored because a file was needed at once, and has not been reported yet.
    restored: Option<RecoveryReport>,
}

/// A file of the folder.
#[derive(Debug)]
enum TrackedFile {
    Owned(OwnedFd),
    /// Held by another part of the node, for the node's lifetime.
    Borrowed(RawFd),
}

impl AsFd for TrackedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            TrackedFile::Owned(fd) => fd.as_fd(),
            // SAFETY: the node that owns the descriptor calls [`NodeFiles::leave`] before it closes it.
            TrackedFile::Borrowed(fd) => unsafe { BorrowedFd::borrow_raw(*fd) },
        }
    }
}

/// What was restored.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Files that are visible again.
    pub files: usize,
    /// Files that could not be restored.
    pub lost: Vec<String>,
}

/// Whether a file of this name holds a type. A single missing type is reported to its users, as an unreadable
/// type; it is restored with the other files.
fn is_type(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"t")
}

/// Living nodes whose folders are missing, with their processes, as far as permissions allow.
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
    /// The files of a node that holds its name and whose folder was just created.
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

    /// Tracks a file whose descriptor the node itself holds.
    pub(crate) fn track_fd(&self, name: &str, file: impl AsFd) {
        let number = TrackedFile::Borrowed(file.as_fd().as_raw_fd());
        self.inner().tracked.insert(name.into(), number);
    }

    /// Stops restoration because the node leaves. Dropping the returned value releases its name.
    pub(crate) fn leave(&self) -> Option<Presence> {
        folders::unregister(&self.folder);
        let mut inner = self.inner();
        inner.tracked.clear();
        inner.untracked.clear();
        inner.presence.take()
    }

    /// Whether all files are in place, by a cheap check.
    pub fn is_whole(&self) -> bool {
        let inner = &mut *self.inner();
        let Some(presence) = &inner.presence else { return true };
        // An unreadable version, for example because no descriptor is free, is not rewritten.
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

    /// Takes the report of what was restored between checks because a file was needed.
    pub fn take_restored(&self) -> Option<RecoveryReport> {
        self.inner().restored.take()
    }

    /// Restores missing files.
    ///
    /// # Errors
    /// Errors of joining a domain; `NameTaken` if another node has taken the name meanwhile.
    pub fn restore_missing(&self) -> Result<RecoveryReport, Error> {
        let inner = &mut *self.inner();
        let Some(presence) = &mut inner.presence else { return Ok(RecoveryReport::default()) };
        inner.seen = None;
        self.dir.recreate()?;
        fail_point!("recovery.directory");
        if !presence.is_in_place() {
            // Dropping the old file also drops its lock, which no process can query any more.
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
        // The file that marks the node as complete comes last.
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
