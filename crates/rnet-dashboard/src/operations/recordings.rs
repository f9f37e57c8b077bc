//! Lists, downloads and plays the recordings in the folder of the dashboard.

use std::fs::{DirEntry, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustix::fs::OFlags;
use serde_json::{Value as Json, json};

use crate::app_state::AppState;
use crate::wire::Refusal;

/// File extension of recordings.
pub const EXTENSION: &str = ".mcap";
/// Maximum length of a file name, in bytes.
pub const MAX_NAME_LEN_BYTES: usize = 128;
/// The newest recordings are listed, at most this many.
const MAX_LISTED: usize = 200;

/// Whether a name is a plain file name, which cannot refer to a file outside the folder.
pub fn is_plain(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.len() <= MAX_NAME_LEN_BYTES && !name.starts_with('.') && name.chars().all(is_plain)
}

/// The recordings, the newest first.
///
/// # Errors
/// The folder cannot be read.
pub fn list(folder: &Path) -> io::Result<Vec<Json>> {
    let mut found: Vec<(f64, Json)> =
        std::fs::read_dir(folder)?.flatten().filter_map(row).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.truncate(MAX_LISTED);
    Ok(found.into_iter().map(|(_, row)| row).collect())
}

fn row(file: DirEntry) -> Option<(f64, Json)> {
    let name = file.file_name().into_string().ok()?;
    let there = file.metadata().ok()?;
    if !there.is_file() || !is_plain(&name) || !name.ends_with(EXTENSION) {
        return None;
    }
    let modified = there.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
    Some((modified, json!({"name": name, "bytes": there.len(), "modified_s": modified})))
}

/// The path of the recording with this name.
///
/// # Errors
/// The name is not valid, or the dashboard has no folder for recordings.
pub fn path(app: &AppState, name: &str) -> Result<PathBuf, Refusal> {
    let Some(folder) = &app.options.recordings else {
        return Err(Refusal::new("refused", "the dashboard was started without --recordings"));
    };
    match is_plain(name) && name.ends_with(EXTENSION) {
        true => Ok(folder.join(name)),
        false => Err(Refusal::not_found(format!("recording {name:?} does not exist"))),
    }
}

/// Opens the recording with this name, and returns its length.
///
/// # Errors
/// The file does not exist, or is not a regular file.
pub fn open(app: &AppState, name: &str) -> Result<(File, u64), Refusal> {
    let path = path(app, name)?;
    // Follows no symbolic link, and does not block on a FIFO.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let opened = OpenOptions::new().read(true).custom_flags(flags as i32).open(&path);
    let found = opened.and_then(|file| Ok((file.metadata()?, file)));
    match found {
        Ok((there, file)) if there.is_file() => Ok((file, there.len())),
        Ok(_) => Err(Refusal::not_found(format!("{name} is not a regular file"))),
        Err(why) => Err(Refusal::not_found(format!("{name} cannot be read: {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_stay_in_their_folder() {
        for good in ["a.mcap", "drive-1.mcap", "2026-11-24T06-00-00.mcap", "a..b"] {
            assert!(is_plain(good), "{good}");
        }
        for bad in ["../a", "a/b", "..", ".hidden", "/etc/passwd", "a\\b", "a\0b", "ä"] {
            assert!(!is_plain(bad), "{bad:?}");
        }
        assert!(!is_plain(&"x".repeat(129)));
    }
}
