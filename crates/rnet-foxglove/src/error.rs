//! Why a server does not begin.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a server does not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FoxgloveError {
    /// Who could reach the server is not kept out.
    #[error("{0}")]
    Access(String),
    /// The port cannot be had.
    #[error("cannot listen on {listen}: {source}")]
    Bind {
        /// Where it was to listen.
        listen: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The certificate or its key.
    #[error("{0}")]
    Tls(String),
    /// An origin that is none.
    #[error("{0:?} is not an origin: write it like https://app.foxglove.dev")]
    Origin(String),
    /// The recording cannot be read.
    #[error("{path}: {source}")]
    Recording {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: rnet_record::read::ReadError,
    },
    /// A thread cannot be had.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// Of a server.
pub type Result<T> = std::result::Result<T, FoxgloveError>;
