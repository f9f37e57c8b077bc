//! Reads the settings files: `robot.toml`, and the files that it includes.
//!
//! An error contains file, line, column, key and the expected value. Unknown keys are errors, because a
//! misspelt key would have no effect. The link reads `[network]`, the launcher reads the rest; both ignore
//! the tables of the other ([`FILE_KEYS`]).
#![forbid(unsafe_code)]

mod error;
mod file;
mod host;
mod table;

pub use error::{ConfigError, FileError, SourceLocation, closest, one_of};
pub use file::{DEFAULT_FILE, File, find, path, text};
pub use host::{configured_host, invalid_host_reason, network_host, this_host};
pub use table::{Entry, FILE_KEYS, Reader, Table};

/// The result of reading settings.
pub type Result<T> = std::result::Result<T, ConfigError>;
