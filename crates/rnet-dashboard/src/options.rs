//! Access rules and options of the dashboard.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use rnet::inspect::Location;
use rnet_access::Tls;
use rustix::fs::Access as May;

/// Why a dashboard cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DashboardError {
    /// The domain cannot be observed.
    #[error(transparent)]
    Rnet(#[from] rnet::Error),
    /// Access to the server is not sufficiently protected.
    #[error("{0}")]
    Access(String),
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
    /// The certificate or key is invalid.
    #[error("{0}")]
    Tls(String),
    /// The system has no free thread or descriptor.
    #[error("cannot start the server: {0}")]
    System(#[from] io::Error),
}

/// Access to the server.
#[derive(Clone)]
pub struct Access {
    /// Listen address; port 0 selects a free port.
    pub address: SocketAddr,
    /// Host names that pages may use in addition to the address, if it is not loopback: `robot.local`.
    pub names: Vec<String>,
    /// The token that pages must have.
    pub token: Option<String>,
    /// Certificate and key for TLS.
    pub tls: Option<Tls>,
}

impl Access {
    /// On loopback, without a token.
    pub fn local(port: u16) -> Access {
        let address = SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port);
        Access { address, names: Vec::new(), token: None, tls: None }
    }

    /// Checks that access is sufficiently protected.
    ///
    /// # Errors
    /// What is missing, as text.
    pub fn check(&self) -> crate::Result<()> {
        rnet_access::check(self.address, self.token.as_deref(), self.tls.as_ref())
            .map_err(DashboardError::Access)
    }

    /// `http` or `https`.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Creates the command that starts keepers of launched nodes, for restarts.
pub type Launch = Arc<dyn Fn() -> Command + Send + Sync>;

/// Options of a dashboard.
#[non_exhaustive]
pub struct Options {
    /// The domain.
    pub location: Location,
    /// Access to the server.
    pub access: Access,
    /// Reject all changes.
    pub read_only: bool,
    /// Folder of recordings; `None` disables recording.
    pub recordings: Option<PathBuf>,
    /// The keeper command; with `None`, nodes whose launcher is gone are not restarted.
    pub keeper: Option<Launch>,
}

impl Options {
    /// A dashboard for this domain, on 127.0.0.1 and this port.
    pub fn new(location: Location, port: u16) -> Options {
        let access = Access::local(port);
        Options { location, access, read_only: false, recordings: None, keeper: None }
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
