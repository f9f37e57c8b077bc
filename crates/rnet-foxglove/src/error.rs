//! Errors of starting a server.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FoxgloveError {
    /// Access to the server is not sufficiently protected, or its certificate or keys are unusable.
    #[error(transparent)]
    Access(#[from] rnet_access::AccessError),
    /// The server cannot listen on the address.
    #[error("cannot listen on {listen}: {source}")]
    Bind {
        /// The address.
        listen: SocketAddr,
        /// The error of the system.
        source: std::io::Error,
    },
    /// An invalid origin.
    #[error("{0:?} is not an origin: write it like https://app.foxglove.dev")]
    Origin(String),
    /// The recording cannot be read.
    #[error("{path}: {source}")]
    Recording {
        /// The file.
        path: PathBuf,
        /// The error.
        source: rnet_record::read::ReadError,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// Result of starting a server.
pub type Result<T> = std::result::Result<T, FoxgloveError>;
