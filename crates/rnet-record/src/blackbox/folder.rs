//! The folder of a black box's files: lists the files of a domain, limits their size, checks that a file can
//! be written.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rnet::inspect::Location;
use rustix::fs::{Access, access};

use super::trigger_queue::TriggerQueue;
use crate::error::{RecordError, Result};

/// Removes the oldest files of a domain until their total size is at most `max`; keeps the newest.
pub(super) fn remove_oldest(folder: &Path, prefix: &str, max: u64, trigger_queue: &TriggerQueue) {
    let mut files = match files(folder, prefix) {
        Ok(files) => files,
        Err(error) => return trigger_queue.note(format!("cannot remove old files: {error}")),
    };
    let mut len: u64 = files.iter().map(|(_, len)| len).sum();
    files.pop();
    for (path, bytes) in files {
        if len <= max {
            return;
        }
        match std::fs::remove_file(&path) {
            Ok(()) => len -= bytes,
            Err(error) => trigger_queue.note(format!("cannot remove {}: {error}", path.display())),
        }
    }
}

/// Whether a name is this prefix followed by a time. The name of one domain may begin with the name of
/// another.
pub(super) fn is_of_domain(name: &str, prefix: &str) -> bool {
    let time = name.strip_prefix(prefix).and_then(|rest| rest.split_once('-'));
    time.is_some_and(|(ms, _)| ms.len() >= 13 && ms.bytes().all(|digit| digit.is_ascii_digit()))
}

/// The black box files of a domain in a folder with their sizes in bytes, the oldest first.
///
/// # Errors
/// The folder cannot be read.
pub fn list_files(folder: &Path, location: &Location) -> Result<Vec<(PathBuf, u64)>> {
    files(folder, &prefix(location))
}

fn files(folder: &Path, prefix: &str) -> Result<Vec<(PathBuf, u64)>> {
    let is_one = |name: &str| is_of_domain(name, prefix) && name.ends_with(".mcap");
    let mut files: Vec<(PathBuf, u64)> = list_named(folder, is_one)
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

/// The entries of a folder whose name matches.
///
/// # Errors
/// The folder cannot be read.
pub(super) fn list_named(folder: &Path, is_one: impl Fn(&str) -> bool) -> io::Result<Vec<PathBuf>> {
    let entries: io::Result<Vec<fs::DirEntry>> = fs::read_dir(folder)?.collect();
    let wanted = entries?.into_iter().filter(|entry| is_one(&entry.file_name().to_string_lossy()));
    Ok(wanted.map(|entry| entry.path()).collect())
}

/// Prefix of the file names of a domain.
pub(super) fn prefix(location: &Location) -> String {
    format!("blackbox-{}-", location.id().as_str())
}

/// The folder of a box, and the file system that contained it when the box started.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
    device: Option<u64>,
}

impl Folder {
    /// The folder in its current state. It need not exist.
    pub fn at(path: &Path) -> Folder {
        Folder { path: path.to_owned(), device: device(path) }
    }

    /// Creates the folder, and checks that files can be created in it.
    ///
    /// # Errors
    /// The folder cannot be created or written to.
    pub fn open(path: &Path) -> Result<Folder> {
        let folder = Folder::at(path);
        folder.ensure()?;
        Ok(folder)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its file system is the one on which it was opened.
    pub fn is_on_same_disk(&self) -> bool {
        device(&self.path) == self.device
    }

    /// Recreates the folder if it was removed, and `dir` in it. If its disk is not mounted, it fails: files
    /// in the empty mount point would fill the underlying disk and be hidden by the mount.
    ///
    /// # Errors
    /// The folder cannot be created, or its disk is not mounted.
    pub fn create(&self, dir: &Path) -> io::Result<()> {
        if !self.is_on_same_disk() {
            return Err(io::Error::other(
                "the folder is not on the same disk as at the start: mount that disk again; to write to the \
                 present disk, restart the black box",
            ));
        }
        fs::create_dir_all(dir)
    }

    /// Recreates the folder if it was removed, and checks that files can be created in it.
    ///
    /// # Errors
    /// The folder cannot be created or written to.
    pub fn ensure(&self) -> Result<()> {
        let path = &self.path;
        self.create(path).map_err(|error| RecordError::file("create", path, error))?;
        access(path, Access::WRITE_OK | Access::EXEC_OK)
            .map_err(|error| RecordError::file("write to", path, error))
    }

    /// Why a file cannot be written now: the folder is not writable, or has less free space than the ring may
    /// need.
    pub fn write_problem(&self, ring_bytes: u64) -> Option<String> {
        if let Err(error) = self.ensure() {
            return Some(error.to_string());
        }
        let stat = rustix::fs::statvfs(&self.path).ok()?;
        (stat.f_bavail.saturating_mul(stat.f_frsize) < ring_bytes).then(|| {
            format!(
                "{} has less free space than the {ring_bytes} bytes that a file may need",
                self.path.display()
            )
        })
    }
}

/// The file system of a path, or of its nearest existing ancestor.
fn device(path: &Path) -> Option<u64> {
    let mut there = path.ancestors().map(|path| match path.as_os_str().is_empty() {
        // The last ancestor of a relative path is empty.
        true => Path::new("."),
        false => path,
    });
    there.find_map(|path| path.metadata().ok()).map(|there| there.dev())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recreates_folder_on_its_own_disk_only() {
        let base = std::env::temp_dir().join(format!("rnet-disk-{}", std::process::id()));
        let path = base.join("a/b");
        let mut folder = Folder::open(&path).unwrap();
        fs::remove_dir_all(&base).unwrap();
        folder.ensure().unwrap();
        fs::remove_dir_all(&base).unwrap();
        // Simulates that the disk of this path was another one, which is unplugged.
        folder.device = Path::new("/proc").metadata().ok().map(|proc| proc.dev());
        let error = folder.ensure().unwrap_err().to_string();
        assert!(error.contains("a/b") && error.contains("mount that disk again"), "{error}");
        assert!(folder.create(&path.join("window")).is_err() && !base.exists());
        assert_eq!(folder.write_problem(0), Some(error));
    }
}
