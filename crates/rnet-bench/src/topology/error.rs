//! Errors of a topology file, for its author.

use std::fmt;
use std::path::Path;

/// Why a topology was rejected: the file, and the error with its location.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// The file.
    pub file: String,
    /// The error, with its location in the file.
    pub what: String,
}

impl Error {
    pub(crate) fn new(path: &Path, what: impl Into<String>) -> Self {
        Self { file: path.display().to_string(), what: what.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "topology {}: {}", self.file, self.what)
    }
}

impl std::error::Error for Error {}

/// The result of reading a topology.
pub type Result<T> = std::result::Result<T, Error>;
