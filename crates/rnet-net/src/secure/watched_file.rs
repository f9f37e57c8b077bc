//! Notices that a file was replaced.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file, and how it was when it was last looked at.
pub struct WatchedFile {
    path: PathBuf,
    seen: Option<FileState>,
}

/// Another file has another inode; one that was written in place has another time or length.
#[derive(PartialEq, Eq)]
struct FileState {
    inode: u64,
    len_bytes: u64,
    changed: (i64, i64),
}

impl WatchedFile {
    /// The file at this path, as it is now.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        let mut file = WatchedFile { path: path.to_owned(), seen: None };
        file.has_changed();
        file
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it has changed since the last call. A file that is gone counts as unchanged.
    pub fn has_changed(&mut self) -> bool {
        let Ok(metadata) = std::fs::metadata(&self.path) else { return false };
        let state = FileState {
            inode: metadata.ino(),
            len_bytes: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        };
        let is_other = self.seen.as_ref() != Some(&state);
        self.seen = Some(state);
        is_other
    }
}
