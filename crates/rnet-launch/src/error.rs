//! The errors of a launch.

use std::io;
use std::path::{Path, PathBuf};

/// Why a launch, or a command to one of its nodes, failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A mistake in a file.
    #[error(transparent)]
    Config(#[from] rnet_config::ConfigError),
    /// An error of robot-net.
    #[error(transparent)]
    Rnet(#[from] rnet::Error),
    /// An error of the system.
    #[error("cannot {what} {path}: {why}", path = path.display())]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// The error of the system.
        why: io::Error,
    },
    /// A stop was requested before the launch began.
    #[error("stopped")]
    Stopped,
    /// The request cannot be carried out; the reason as text.
    #[error("{0}")]
    Refused(String),
}

impl LaunchError {
    pub(crate) fn io(what: &'static str, path: &Path, why: impl Into<io::Error>) -> LaunchError {
        LaunchError::Io { what, path: path.to_owned(), why: why.into() }
    }
}
