//! The folders of this process's nodes, for code that creates, opens or removes a file in one of them.
//!
//! A file may be missing because it was removed under its node. `domain/restored_files.rs`, which is above
//! files and names, defines which files a node holds and how it restores them; this module has the interface
//! to it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::os::fork;

/// The folder of a node that lives in this process.
pub(crate) trait NodeFolder: Send + Sync {
    /// Tracks a file that was created here.
    fn track(&self, name: &OsStr, file: BorrowedFd<'_>);

    /// Stops tracking a file that will be removed.
    fn forget(&self, name: &OsStr);

    /// Restores the folder and its files; `false` if that fails.
    fn restore(&self) -> bool;

    /// Like [`NodeFolder::restore`], if the node holds this file; `false` if not.
    fn restore_file(&self, name: &OsStr) -> bool;

    /// Whether the node has this incarnation and has not left.
    fn is_live_incarnation(&self, incarnation: u64) -> bool;
}

type Folders = BTreeMap<PathBuf, Weak<dyn NodeFolder>>;

/// Used under the lock of `fork.rs`, so that a child never inherits a held lock.
static FOLDERS: Mutex<Folders> = Mutex::new(BTreeMap::new());

fn folders<R>(act: impl FnOnce(&mut Folders) -> R) -> R {
    fork::without_fork(|| act(&mut FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Registers a node's folder.
pub(crate) fn register(path: &Path, folder: Weak<dyn NodeFolder>) {
    folders(|folders| {
        folders.retain(|_, folder| folder.strong_count() > 0);
        folders.insert(path.to_owned(), folder)
    });
}

/// Unregisters the folder of a leaving node.
pub(crate) fn unregister(path: &Path) {
    folders(|folders| folders.remove(path));
}

/// The folder of this process that contains a file, and the file's name.
fn of(path: &Path) -> Option<(Arc<dyn NodeFolder>, &OsStr)> {
    let folder = path.parent()?;
    let folder = folders(|folders| folders.get(folder).and_then(Weak::upgrade))?;
    Some((folder, path.file_name()?))
}

/// Whether the node with this folder and incarnation lives in this process.
pub(crate) fn is_local(path: &Path, incarnation: u64) -> bool {
    let folder = folders(|folders| folders.get(path).and_then(Weak::upgrade));
    folder.is_some_and(|folder| folder.is_live_incarnation(incarnation))
}

/// Tracks a file that was created in a node's folder.
pub(crate) fn track(path: &Path, file: impl AsFd) {
    if let Some((folder, name)) = of(path) {
        folder.track(name, file.as_fd());
    }
}

/// Removes a file of a node's folder and stops tracking it.
pub(crate) fn remove(path: &Path) {
    if let Some((folder, name)) = of(path) {
        folder.forget(name);
    }
    let _ = rustix::fs::unlink(path);
}

/// Restores the missing folder of a file that could not be created, if a living node owns it.
pub(crate) fn restore_for(path: &Path) -> bool {
    of(path).is_some_and(|(folder, _)| folder.restore())
}

/// Restores a removed file that could not be opened, if a living node of this process holds it.
pub(crate) fn restore_own(path: &Path) -> bool {
    of(path).is_some_and(|(folder, name)| folder.restore_file(name))
}
