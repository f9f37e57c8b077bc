//! The folders of this process's nodes, for whoever makes, opens or removes a file in one of them.
//!
//! A file may be missing because somebody removed it under its node. Which files a node holds, and how
//! it puts them back, is for `domain/recovery.rs` to say, which stands above files and names; this is what they
//! need of it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::os::fork;

/// The folder of a node that lives in this process.
pub(crate) trait NodeFolder: Send + Sync {
    /// Takes note of a file that was made here.
    fn track(&self, name: &OsStr, file: BorrowedFd<'_>);

    /// Forgets a file that is to be removed for good.
    fn forget(&self, name: &OsStr);

    /// Puts back the folder and its files; `false` if that fails.
    fn restore(&self) -> bool;

    /// As [`NodeFolder::restore`], if this file is one that the node holds; `false` if not.
    fn restore_file(&self, name: &OsStr) -> bool;

    /// Whether the node is of this incarnation, and has not left.
    fn is_live_incarnation(&self, incarnation: u64) -> bool;
}

type Folders = BTreeMap<PathBuf, Weak<dyn NodeFolder>>;

/// Used under the lock of `fork.rs`, so that no child inherits the lock while it is held.
static FOLDERS: Mutex<Folders> = Mutex::new(BTreeMap::new());

fn folders<R>(act: impl FnOnce(&mut Folders) -> R) -> R {
    fork::without_fork(|| act(&mut FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Makes a node's folder known.
pub(crate) fn register(path: &Path, folder: Weak<dyn NodeFolder>) {
    folders(|folders| {
        folders.retain(|_, folder| folder.strong_count() > 0);
        folders.insert(path.to_owned(), folder)
    });
}

/// Its node leaves.
pub(crate) fn unregister(path: &Path) {
    folders(|folders| folders.remove(path));
}

/// The folder that a file belongs to, if it is one of this process, and the file's name.
fn of(path: &Path) -> Option<(Arc<dyn NodeFolder>, &OsStr)> {
    let folder = path.parent()?;
    let folder = folders(|folders| folders.get(folder).and_then(Weak::upgrade))?;
    Some((folder, path.file_name()?))
}

/// Whether the node of this folder, of this incarnation, lives in this process.
pub(crate) fn is_local(path: &Path, incarnation: u64) -> bool {
    let folder = folders(|folders| folders.get(path).and_then(Weak::upgrade));
    folder.is_some_and(|folder| folder.is_live_incarnation(incarnation))
}

/// Takes note of a file that was made in a node's folder.
pub(crate) fn track(path: &Path, file: impl AsFd) {
    if let Some((folder, name)) = of(path) {
        folder.track(name, file.as_fd());
    }
}

/// Removes a file of a node's folder, for good.
pub(crate) fn remove(path: &Path) {
    if let Some((folder, name)) = of(path) {
        folder.forget(name);
    }
    let _ = rustix::fs::unlink(path);
}

/// The folder in which a file could not be made is not there: puts it back, if it is a living node's.
pub(crate) fn restore_for(path: &Path) -> bool {
    of(path).is_some_and(|(folder, _)| folder.restore())
}

/// A file that could not be opened is one of a living node of this process, which somebody has removed:
/// puts it back.
pub(crate) fn restore_own(path: &Path) -> bool {
    of(path).is_some_and(|(folder, name)| folder.restore_file(name))
}
