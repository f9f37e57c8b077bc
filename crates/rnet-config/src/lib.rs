//! How the files of settings are read: `robot.toml`, and what it includes.
//!
//! A mistake is told with file, line, column, key and what was expected; a key that there is not is a mistake, because
//! a misspelt one would have no effect. The link reads `[network]`, the launcher the rest; each knows the names of the
//! other's tables ([`FILE_KEYS`]) and leaves them alone.

mod error;
mod file;
mod host;
mod table;

pub use error::{ConfigError, FileError, SourceLocation, closest, one_of};
pub use file::{DEFAULT_FILE, File, find, path, text};
pub use host::{invalid_host_reason, this_host};
pub use table::{Entry, FILE_KEYS, Reader, Table};

/// What is wrong, or what was read.
pub type Result<T> = std::result::Result<T, ConfigError>;
