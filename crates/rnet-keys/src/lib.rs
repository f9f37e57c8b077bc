//! Keys and rights of hosts.
//!
//! A robot has its own certificate authority. Each host has one private file, the [`KeysFile`]: its
//! certificate, its private key, the authority's certificate, and the hashes of browser tokens. The
//! certificate names the host and its [`Rights`]. The authority revokes certificates with a signed list
//! ([`Revocations`]). `rnet keys` issues and revokes (feature `authority`); the link and the servers read.
#![forbid(unsafe_code)]

#[cfg(feature = "authority")]
mod authority;
mod certificate;
mod error;
mod files;
mod keys_file;
mod revocations;
mod rights;
mod tls;
mod token;

use std::env;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use x509_parser::time::ASN1Time;

#[cfg(feature = "authority")]
pub use authority::{Authority, HostRequest, MAX_CERTIFICATE_LEN_BYTES, MAX_VALIDITY_DAYS};
pub use certificate::HostCertificate;
pub use error::KeyError;
pub use keys_file::KeysFile;
pub use revocations::Revocations;
pub use rights::{Right, Rights};
pub use rnet_config::{configured_host, this_host};
pub use token::{Role, Token};
#[cfg(feature = "authority")]
pub use token::{add_token, remove_token};

/// The result of reading or writing keys.
pub type Result<T, E = KeyError> = std::result::Result<T, E>;

/// A certificate that expires within this time is reported.
pub const EXPIRY_WARNING: Duration = Duration::from_secs(30 * 24 * 3600);

/// The keys file of all users of a host.
const SYSTEM_KEYS_FILE: &str = "/etc/rnet/keys.pem";

/// The keys file that a process uses if its settings name none: `$RNET_KEYS`, else `/etc/rnet/keys.pem` if it
/// exists, else `~/.config/rnet/keys.pem` (`$XDG_CONFIG_HOME/rnet/keys.pem`) if it exists.
pub fn default_keys_path() -> Option<PathBuf> {
    let named = env::var_os("RNET_KEYS").filter(|path| !path.is_empty()).map(PathBuf::from);
    // A file that this user may not open counts: its error is better than a network without keys.
    let existing = || {
        let paths = [Some(PathBuf::from(SYSTEM_KEYS_FILE)), user_keys_path()];
        paths.into_iter().flatten().find(|path| path.symlink_metadata().is_ok())
    };
    named.or_else(existing)
}

/// Where a new keys file of this host belongs: [`default_keys_path`], else `/etc/rnet/keys.pem` for root and
/// `~/.config/rnet/keys.pem` for other users. `None` if the user has no home directory.
pub fn new_keys_path() -> Option<PathBuf> {
    let system = || rustix::process::geteuid().is_root().then(|| PathBuf::from(SYSTEM_KEYS_FILE));
    default_keys_path().or_else(system).or_else(user_keys_path)
}

/// The user's folder for settings of robot-net: `$XDG_CONFIG_HOME/rnet`, else `~/.config/rnet`.
pub fn user_config_dir() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    Some(base?.join("rnet"))
}

fn user_keys_path() -> Option<PathBuf> {
    Some(user_config_dir()?.join("keys.pem"))
}

/// The day of a time in UTC, as in `2026-12-01`.
pub fn utc_date(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let date = ASN1Time::from_timestamp(i64::try_from(seconds).unwrap_or(i64::MAX));
    date.map_or_else(|_| "after 9999".to_owned(), |at| at.to_datetime().date().to_string())
}

/// Lower-case hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
