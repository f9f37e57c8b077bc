//! What recording can fail with.

use std::path::{Path, PathBuf};

/// Why nothing is recorded, or not all of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The domain cannot be followed.
    #[error(transparent)]
    Rnet(#[from] rnet::Error),
    /// The file is there already.
    #[error(
        "{path} already exists; a recording does not overwrite files: specify another file, or remove it"
    )]
    Exists {
        /// Which.
        path: PathBuf,
    },
    /// The system refuses a file.
    #[error("cannot {doing} {path}: {source}")]
    File {
        /// What was to be done: `create`, `write`.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file cannot hold more of a kind of thing.
    #[error("cannot write {path}: {why}")]
    Format {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// There is no room on the disk.
    #[error("the disk is full: cannot write {path}")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// What was asked for contradicts itself.
    #[error("{0}")]
    Options(String),
    /// A thread of the recorder ended in a panic.
    #[error("the recorder's thread {0} panicked; the recording ends there")]
    Panicked(&'static str),
}

impl RecordError {
    pub(crate) fn file(
        doing: &'static str,
        path: &Path,
        source: impl Into<std::io::Error>,
    ) -> Self {
        let (path, source): (_, std::io::Error) = (path.to_owned(), source.into());
        let is_full = [libc::ENOSPC, libc::EDQUOT].map(Some).contains(&source.raw_os_error());
        if is_full { Self::Full { path } } else { Self::File { doing, path, source } }
    }
}

/// What failed, or what came of it.
pub type Result<T> = std::result::Result<T, RecordError>;
