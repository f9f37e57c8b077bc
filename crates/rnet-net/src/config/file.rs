//! The file: which one, and its text.

use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{ConfigError, FileFault};
use super::parse::{self, Parsed};

/// The file that is read when none is named.
const DEFAULT: &str = "robot.toml";

/// The longest file, in bytes.
const MAX_LEN_BYTES: u64 = 1 << 20;

/// Reads the file that is named, else the one in the working directory; nothing if that is not there.
pub(super) fn read(
    flag: Option<&Path>,
    env: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Parsed, ConfigError> {
    let by_env = || env("RNET_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
    let (path, named_by) = match (flag, by_env()) {
        (Some(path), _) => (path.to_owned(), Some("--config")),
        (None, Some(path)) => (path, Some("RNET_CONFIG")),
        (None, None) => (PathBuf::from(DEFAULT), None),
    };
    let text = match text(&path) {
        Err(FileFault::Io(error)) if named_by.is_none() && error.kind() == ErrorKind::NotFound => {
            return Ok(Parsed::default());
        }
        other => other.map_err(|why| ConfigError::File { file: path.clone(), named_by, why })?,
    };
    parse::parse(&text, Arc::from(path))
}

fn text(path: &Path) -> Result<String, FileFault> {
    // Looked at before it is opened: to open a pipe is to wait for its writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(FileFault::NoFile);
    }
    let mut bytes = Vec::new();
    // The length that a file says may not be what it has.
    File::open(path)?.take(MAX_LEN_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_LEN_BYTES {
        return Err(FileFault::TooLong(MAX_LEN_BYTES));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        FileFault::NoText { line: valid.iter().filter(|byte| **byte == b'\n').count() + 1 }
    })
}
