//! The settings file: its path and its text.

use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Result;
use crate::error::{ConfigError, FileError};

/// The default file.
pub const DEFAULT_FILE: &str = "robot.toml";

/// The longest file, in bytes.
const MAX_LEN_BYTES: u64 = 1 << 20;

/// A file and its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path, as given.
    pub path: Arc<Path>,
    /// Its text.
    pub text: String,
}

/// The given file, otherwise that of `RNET_CONFIG`, otherwise the one in the working directory; and the
/// source of the path.
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

/// Reads the file of [`path`]; `None` if the path was not given explicitly and the file does not exist.
///
/// # Errors
/// The reason why it cannot be read, and the source of the path.
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

/// Reads the text of a file.
///
/// # Errors
/// It is not a file, cannot be read, has more than a MiB, or is not UTF-8.
pub fn text(path: &Path) -> std::result::Result<String, FileError> {
    // Checked before opening, because opening a pipe waits for its writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(FileError::NotAFile);
    }
    let mut bytes = Vec::new();
    // The reported length may differ from the actual one.
    std::fs::File::open(path)?.take(MAX_LEN_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_LEN_BYTES {
        return Err(FileError::TooLong(MAX_LEN_BYTES));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        FileError::NotUtf8 { line: valid.iter().filter(|byte| **byte == b'\n').count() + 1 }
    })
}
