//! Options and errors of the dashboard.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use rnet::inspect::Location;
use rnet_access::{AccessError, AccessOptions, EventCallback};
use rustix::fs::Access as May;

/// Why a dashboard cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DashboardError {
    /// The domain cannot be observed.
    #[error(transparent)]
    Rnet(#[from] rnet::Error),
    /// Access to the server is not sufficiently protected, or its certificate or keys are unusable.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The server cannot listen on the address, for example because it is in use.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The folder of recordings is not usable.
    #[error("{0}")]
    Recordings(String),
    /// The system has no free thread or descriptor.
    #[error("cannot start the server: {0}")]
    System(#[from] io::Error),
}

/// Creates the command that starts keepers of launched nodes, for restarts.
pub type Launch = Arc<dyn Fn() -> Command + Send + Sync>;

/// Options of a dashboard.
#[non_exhaustive]
pub struct Options {
    /// The domain.
    pub location: Location,
    /// Listen address, tokens and TLS.
    pub access: AccessOptions,
    /// Host names that pages may use in addition to the address and the names in the certificate of the keys
    /// file, if the address is not loopback: `robot.example`.
    pub names: Vec<String>,
    /// Folder of recordings; `None` disables recording.
    pub recordings: Option<PathBuf>,
    /// The keeper command; with `None`, nodes whose launcher is gone are not restarted.
    pub keeper: Option<Launch>,
    /// Receives messages about unusable keys.
    pub on_event: EventCallback,
}

impl Options {
    /// A dashboard for this domain, on 127.0.0.1 and this port.
    pub fn new(location: Location, port: u16) -> Options {
        Options {
            location,
            access: AccessOptions::local(port),
            names: Vec::new(),
            recordings: None,
            keeper: None,
            on_event: Arc::new(|_| {}),
        }
    }

    /// Checks that the folder of recordings, if any, exists and is writable. A dashboard also starts without
    /// it, and pages show the problem.
    ///
    /// # Errors
    /// `Recordings`: the problem, as text.
    pub fn check_recordings(&self) -> crate::Result<()> {
        let Some(folder) = &self.recordings else { return Ok(()) };
        let usable = std::fs::metadata(folder).and_then(|there| match there.is_dir() {
            true => Ok(rustix::fs::access(folder, May::WRITE_OK | May::EXEC_OK)?),
            false => Err(io::ErrorKind::NotADirectory.into()),
        });
        usable.map_err(|why| {
            DashboardError::Recordings(format!(
                "recordings cannot be written to {} (--recordings): {why}; make that folder writable, or \
                 specify another one",
                folder.display()
            ))
        })
    }
}
