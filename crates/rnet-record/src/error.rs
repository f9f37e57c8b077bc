//! Errors of recording.

use std::path::{Path, PathBuf};

use rnet_format::Failure;

/// Why a recording fails, or is incomplete.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The domain cannot be followed.
    #[error(transparent)]
    Rnet(#[from] rnet::Error),
    /// The file already exists.
    #[error(
        "{path} already exists; a recording does not overwrite files: specify another file, or remove it"
    )]
    Exists {
        /// Path of the file.
        path: PathBuf,
    },
    /// A file operation failed.
    #[error("cannot {doing} {path}: {source}")]
    File {
        /// The operation: `create`, `write`.
        doing: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A limit of the file format is exceeded.
    #[error("cannot write {path}: {why}")]
    Format {
        /// Path of the file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The disk is full.
    #[error("the disk is full: cannot write {path}")]
    Full {
        /// Path of the file.
        path: PathBuf,
    },
    /// The options contradict each other.
    #[error("{0}")]
    Options(String),
    /// A thread of the recorder panicked.
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

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Failure {
        match error {
            RecordError::Rnet(error) => error.into(),
            RecordError::Options(text) => Failure::Usage(text),
            error => Failure::Failed(error.to_string()),
        }
    }
}

/// Result of a recording operation.
pub type Result<T> = std::result::Result<T, RecordError>;
