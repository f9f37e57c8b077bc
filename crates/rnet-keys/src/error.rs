//! Errors.

use std::io;
use std::path::{Path, PathBuf};

use rustls::{AlertDescription, CertificateError};

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
    /// Says why a TLS handshake between two hosts failed, and what to do; `peer` describes the other host.
    pub fn handshake(error: &rustls::Error, peer: &str) -> String {
        use rustls::Error::{AlertReceived, InvalidCertificate, NoCertificatesPresented};
        let (reason, advice) = match error {
            InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            ) => (
                "its keys are from another authority",
                "give it a keys file of this host's authority: rnet keys add-host",
            ),
            InvalidCertificate(
                CertificateError::Expired | CertificateError::ExpiredContext { .. },
            ) => ("its certificate has expired", "renew it: rnet keys add-host"),
            InvalidCertificate(
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
            ) => ("its certificate is not valid yet", "check the clocks of both hosts"),
            InvalidCertificate(_) => {
                ("its certificate is invalid", "run rnet keys check on that host")
            }
            NoCertificatesPresented | AlertReceived(AlertDescription::CertificateRequired) => {
                ("one of both hosts has no keys", "run rnet keys check on both hosts")
            }
            AlertReceived(AlertDescription::UnknownCA | AlertDescription::DecryptError) => (
                "it refuses this host, whose keys are from another authority",
                "copy a keys file of its authority to this host",
            ),
            AlertReceived(AlertDescription::CertificateExpired) => (
                "it refuses this host's certificate as expired or not yet valid",
                "run rnet keys check on this host; compare the clocks",
            ),
            AlertReceived(_) => ("it refuses this host", "see the log of its link"),
            error => return format!("{peer}: the handshake of keys failed: {error}"),
        };
        format!("{peer}: {reason}; {advice}")
    }

    pub(crate) fn file(path: &Path, reason: impl Into<String>) -> KeyError {
        KeyError::File { path: path.to_owned(), reason: reason.into() }
    }

    /// A function that makes the error of an action on a file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> KeyError {
        move |source| KeyError::Io { action, path: path.to_owned(), source }
    }
}
