//! The folder of a black box's files: which are a domain's, how long all of them may be, and whether one more can be made.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rnet::inspect::Location;
use rustix::fs::{Access, access};

use super::bell::Bell;
use crate::error::{RecordError, Result};

/// Removes the oldest files of a domain if all are too long; the newest stays.
pub(super) fn trim(folder: &Path, prefix: &str, max: u64, bell: &Bell) {
    let mut files = match files(folder, prefix) {
        Ok(files) => files,
        Err(error) => return bell.note(format!("old files are not removed: {error}")),
    };
    let mut len: u64 = files.iter().map(|(_, len)| len).sum();
    files.pop();
    for (path, bytes) in files {
        if len <= max {
            return;
        }
        match std::fs::remove_file(&path) {
            Ok(()) => len -= bytes,
            Err(error) => bell.note(format!("cannot remove {}: {error}", path.display())),
        }
    }
}

/// Whether a name has this prefix and the time behind it: a domain whose name begins with that of another is another.
pub(super) fn is_of(name: &str, prefix: &str) -> bool {
    let time = name.strip_prefix(prefix).and_then(|rest| rest.split_once('-'));
    time.is_some_and(|(ms, _)| ms.len() >= 13 && ms.bytes().all(|digit| digit.is_ascii_digit()))
}

/// The black box's files of a domain in a folder, the oldest first, with their bytes.
///
/// # Errors
/// The folder cannot be read.
pub fn files_of(folder: &Path, location: &Location) -> Result<Vec<(PathBuf, u64)>> {
    files(folder, &prefix(location))
}

fn files(folder: &Path, prefix: &str) -> Result<Vec<(PathBuf, u64)>> {
    let is_one = |name: &str| is_of(name, prefix) && name.ends_with(".mcap");
    let mut files: Vec<(PathBuf, u64)> = named(folder, is_one)
        .map_err(|error| RecordError::file("read", folder, error))?
        .into_iter()
        .map(|path| {
            let len = path.metadata().map_or(0, |file| file.len());
            (path, len)
        })
        .collect();
    files.sort();
    Ok(files)
}

/// What has such a name in a folder.
///
/// # Errors
/// The folder cannot be read.
pub(super) fn named(folder: &Path, is_one: impl Fn(&str) -> bool) -> io::Result<Vec<PathBuf>> {
    let entries: io::Result<Vec<fs::DirEntry>> = fs::read_dir(folder)?.collect();
    let wanted = entries?.into_iter().filter(|entry| is_one(&entry.file_name().to_string_lossy()));
    Ok(wanted.map(|entry| entry.path()).collect())
}

/// What the names of the files of a domain begin with.
pub(super) fn prefix(location: &Location) -> String {
    format!("blackbox-{}-", location.id().as_str())
}

/// Makes the folder, and sees whether files can be made there.
///
/// # Errors
/// It cannot be made, or not be written to.
pub(super) fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| RecordError::file("create", folder, error))?;
    access(folder, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|error| RecordError::file("write to", folder, error))
}

/// Why no file can be made in the folder now: it cannot be written to, or has less room than the ring may need.
pub(super) fn why_not(folder: &Path, ring_bytes: u64) -> Option<String> {
    if let Err(error) = make(folder) {
        return Some(error.to_string());
    }
    let room = rustix::fs::statvfs(folder).ok()?;
    (room.f_bavail.saturating_mul(room.f_frsize) < ring_bytes).then(|| {
        format!(
            "{} has less room than the {ring_bytes} bytes that a file of the ring may take",
            folder.display()
        )
    })
}
