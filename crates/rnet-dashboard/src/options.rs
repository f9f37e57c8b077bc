//! Who may reach the server, and what the pages may do.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use rnet::inspect::Location;
use rnet_access::Tls;
use rustix::fs::Access as May;

/// Why there is no dashboard.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DashboardError {
    /// The domain cannot be looked at.
    #[error(transparent)]
    Rnet(#[from] rnet::Error),
    /// Who could reach the server is not kept out.
    #[error("{0}")]
    Access(String),
    /// The address is taken, say.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// Recordings cannot be written where they are to be.
    #[error("{0}")]
    Recordings(String),
    /// A certificate or key that is none.
    #[error("{0}")]
    Tls(String),
    /// The system has no thread or descriptor left.
    #[error("cannot start the server: {0}")]
    System(#[from] io::Error),
}

/// Who may reach the server.
#[derive(Clone)]
pub struct Access {
    /// Where it listens; port 0 is any that is free.
    pub address: SocketAddr,
    /// Names beside its address by which pages reach it, for an address beyond loopback: `robot.local`.
    pub names: Vec<String>,
    /// What a page has to show.
    pub token: Option<String>,
    /// What encrypts.
    pub tls: Option<Tls>,
}

impl Access {
    /// On loopback, for everybody on this host.
    pub fn local(port: u16) -> Access {
        let address = SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port);
        Access { address, names: Vec::new(), token: None, tls: None }
    }

    /// Whether it keeps out who has to be kept out.
    ///
    /// # Errors
    /// In words, what is missing.
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

/// How keepers of launched nodes are started, for restarts.
pub type Launch = Arc<dyn Fn() -> Command + Send + Sync>;

/// What a dashboard is started with.
#[non_exhaustive]
pub struct Options {
    /// The domain.
    pub location: Location,
    /// Who may reach it.
    pub access: Access,
    /// Refuse all changes.
    pub read_only: bool,
    /// Where recordings are written; `None`: none are.
    pub recordings: Option<PathBuf>,
    /// The command of a keeper; `None`: nodes whose launcher is gone are not started again.
    pub keeper: Option<Launch>,
}

impl Options {
    /// Of this domain, on 127.0.0.1 and this port.
    pub fn new(location: Location, port: u16) -> Options {
        let access = Access::local(port);
        Options { location, access, read_only: false, recordings: None, keeper: None }
    }

    /// Whether the folder of recordings is there and can be written to, if there is to be one. A dashboard starts without
    /// it as well, and pages say what is wrong with it.
    ///
    /// # Errors
    /// `Recordings`: in words, what is wrong.
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
