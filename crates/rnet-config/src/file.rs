//! The file: which one, and its text.

use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Result;
use crate::error::{ConfigError, FileError};

/// The file that is read when none is named.
pub const DEFAULT_FILE: &str = "robot.toml";

/// The longest file, in bytes.
const MAX_LEN_BYTES: u64 = 1 << 20;

/// A file, and what stands in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path, as it was named.
    pub path: Arc<Path>,
    /// Its text.
    pub text: String,
}

/// The file that is named, else that of `RNET_CONFIG`, else the one in the working directory; and who named it.
pub fn path(
    flag: Option<&Path>,
    env: &dyn Fn(&str) -> Option<OsString>,
) -> (PathBuf, Option<&'static str>) {
    let by_env = || env("RNET_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
    match (flag, by_env()) {
        (Some(path), _) => (path.to_owned(), Some("--config")),
        (None, Some(path)) => (path, Some("RNET_CONFIG")),
        (None, None) => (PathBuf::from(DEFAULT_FILE), None),
    }
}

/// Reads the file of [`path`]; `None` if nobody has named it and it is not there.
///
/// # Errors
/// Why it cannot be read, and who named it.
pub fn find(flag: Option<&Path>, env: &dyn Fn(&str) -> Option<OsString>) -> Result<Option<File>> {
    let (path, named_by) = path(flag, env);
    match text(&path) {
        Err(FileError::Io(error)) if named_by.is_none() && error.kind() == ErrorKind::NotFound => {
            Ok(None)
        }
        Ok(text) => Ok(Some(File { path: Arc::from(path), text })),
        Err(why) => Err(ConfigError::File { file: path, named_by, why }),
    }
}

/// The text of a file.
///
/// # Errors
/// It is none, cannot be read, has more than a MiB, or is not UTF-8.
pub fn text(path: &Path) -> std::result::Result<String, FileError> {
    // Looked at before it is opened: to open a pipe is to wait for its writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(FileError::NotAFile);
    }
    let mut bytes = Vec::new();
    // The length that a file says may not be what it has.
    std::fs::File::open(path)?.take(MAX_LEN_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_LEN_BYTES {
        return Err(FileError::TooLong(MAX_LEN_BYTES));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        FileError::NotUtf8 { line: valid.iter().filter(|byte| **byte == b'\n').count() + 1 }
    })
}
