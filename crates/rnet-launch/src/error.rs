//! What can go wrong with a launch.

use std::io;
use std::path::{Path, PathBuf};

/// Why a launch, or an order to a node of one, failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A mistake in a file.
    #[error(transparent)]
    Config(#[from] rnet_config::ConfigError),
    /// robot-net said no.
    #[error(transparent)]
    Rnet(#[from] rnet::Error),
    /// The system said no.
    #[error("cannot {what} {path}: {why}", path = path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        why: io::Error,
    },
    /// A stop was requested before it had begun.
    #[error("stopped")]
    Stopped,
    /// It cannot be done, in words.
    #[error("{0}")]
    Refused(String),
}

impl LaunchError {
    pub(crate) fn io(what: &'static str, path: &Path, why: impl Into<io::Error>) -> LaunchError {
        LaunchError::Io { what, path: path.to_owned(), why: why.into() }
    }
}
