//! Errors.

use std::io;
use std::path::{Path, PathBuf};

use rustls::CertificateError;

/// Why keys cannot be used, and what to do. No message contains a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The action: `read`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Other users may open a private file or folder.
    #[error("other users may open {} (mode {mode:04o}); run: chmod {right:o} {}", path.display(), path.display())]
    Mode {
        /// The file or folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// The mode that it must have.
        right: u32,
    },
    /// A private file or folder belongs to another user.
    #[error("{} belongs to user {owner}, but this process runs as user {user}; run: sudo chown {user} {}", path.display(), path.display())]
    Owner {
        /// The file or folder.
        path: PathBuf,
        /// The id of its owner.
        owner: u32,
        /// The effective user id of this process.
        user: u32,
    },
    /// The content of a file is wrong.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// A certificate cannot be read.
    #[error("not a certificate of a robot-net host: {0}")]
    Certificate(String),
    /// A certificate was issued by another authority.
    #[error(
        "the certificate of host {name} is not from authority {authority}; give the host a keys file of this authority: rnet keys add-host {name}"
    )]
    Foreign {
        /// The host that the certificate names.
        name: String,
        /// The authority that this host trusts.
        authority: String,
    },
    /// A certificate is no longer valid.
    #[error(
        "the certificate of host {name} expired on {date}; renew it: rnet keys add-host {name}"
    )]
    Expired {
        /// The host.
        name: String,
        /// The last day, in UTC.
        date: String,
    },
    /// A certificate is not valid yet.
    #[error(
        "the certificate of host {name} is not valid before {date}; check the clocks of both hosts"
    )]
    NotYetValid {
        /// The host.
        name: String,
        /// The first day, in UTC.
        date: String,
    },
    /// A revocation list is not signed by the authority, or cannot be read.
    #[error("revocation list: {0}")]
    Revocations(String),
    /// A request of `rnet keys` cannot be fulfilled.
    #[error("{0}")]
    Request(String),
}

impl KeyError {
    /// Says why a TLS handshake with another host failed. If its certificate is the reason, the text names the
    /// host and what to do.
    #[must_use]
    pub fn handshake(error: &rustls::Error) -> String {
        use rustls::Error::{AlertReceived, InvalidCertificate, NoCertificatesPresented};
        match error {
            InvalidCertificate(CertificateError::Other(why)) => why.to_string(),
            NoCertificatesPresented => "it has shown no certificate".to_owned(),
            AlertReceived(_) => "it refuses this host: see the log of its link".to_owned(),
            other => format!("the handshake with it has failed: {other}"),
        }
    }

    pub(crate) fn file(path: &Path, reason: impl Into<String>) -> KeyError {
        KeyError::File { path: path.to_owned(), reason: reason.into() }
    }

    /// A function that makes the error of an action on a file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> KeyError {
        move |source| KeyError::Io { action, path: path.to_owned(), source }
    }
}
