//! Files that come into being whole: made under a name of their own, with their mode, their lock
//! and their text, and then moved into place.
//!
//! Between `open` and `fchmod` a file has the mode that the umask leaves of the one asked for. In a
//! domain that a group shares, others could not open it then; and after a kill between the two,
//! never. So only temporary files are ever like that. A temporary file may be swept away at any time, even under the
//! hands of its maker, who then makes another.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rnet_ring::fail_point;
use rustix::fs::{Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::os::fork::UnsharedFd;
use crate::os::random::random_u64;

/// What the names of temporary files begin with; names of nodes and their files do not.
const PREFIX: char = '@';
/// A younger temp_file is left alone, as its maker probably lives: making one takes microseconds.
const STALE_AFTER: Duration = Duration::from_secs(1);

/// The name of a temp_file; gone on drop.
#[derive(Debug)]
pub(crate) struct TempFile(PathBuf);

impl TempFile {
    /// A new, empty file in `folder`. A forked child does not share it.
    pub fn create(folder: &Path, mode: u32) -> rustix::io::Result<(UnsharedFd, TempFile)> {
        let path = folder.join(format!("{PREFIX}{:016x}", random_u64()));
        let mode = Mode::from_raw_mode(mode);
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = UnsharedFd::open(|| rustix::fs::open(&path, flags, mode))?;
        let temp_file = TempFile(path);
        fail_point!("temp_file.made");
        rustix::fs::fchmod(&file, mode)?;
        fail_point!("temp_file.open");
        Ok((file, temp_file))
    }

    /// Gives the file its place; `false` if that is taken, or the temp_file was swept away.
    pub fn persist_new(&self, path: &Path) -> rustix::io::Result<bool> {
        let cwd = rustix::fs::CWD;
        // Moved, and not linked: who watches the folder is to hear of its end under this name.
        match rustix::fs::renameat_with(cwd, &self.0, cwd, path, RenameFlags::NOREPLACE) {
            Ok(()) => {
                fail_point!("temp_file.placed");
                Ok(true)
            }
            Err(Errno::EXIST | Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Puts the file in the place of what is there, which is handed to `see` before it goes. Nothing is done
    /// where nothing is there, or the temp_file was swept away.
    pub fn exchange(&self, path: &Path, see: impl FnOnce(&Path)) -> rustix::io::Result<()> {
        let cwd = rustix::fs::CWD;
        match rustix::fs::renameat_with(cwd, &self.0, cwd, path, RenameFlags::EXCHANGE) {
            Ok(()) => {
                see(&self.0);
                Ok(())
            }
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Puts the file in the place of what is there.
    pub fn persist(&self, path: &Path) -> rustix::io::Result<()> {
        rustix::fs::rename(&self.0, path)?;
        fail_point!("temp_file.renamed");
        Ok(())
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = rustix::fs::unlink(&self.0);
    }
}

/// Whether a file of this name is a temp_file.
pub(crate) fn is_temp_file(name: &[u8]) -> bool {
    name.starts_with(&[PREFIX as u8])
}

/// Removes the temporary files in `folder` whose makers were killed.
pub(crate) fn sweep(folder: &Path) {
    // Where it cannot be read, nothing can be made in it either, and that is told.
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_temp_file = is_temp_file(entry.file_name().as_encoded_bytes());
        let age = || SystemTime::now().duration_since(entry.metadata().ok()?.modified().ok()?).ok();
        // One from the future is from before the clock was set.
        if is_temp_file && age().is_none_or(|age| age > STALE_AFTER) {
            let _ = rustix::fs::unlink(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_over_drafts_go_and_young_ones_stay() {
        let folder = std::env::temp_dir().join(format!("rnet-temp-file-{:x}", random_u64()));
        std::fs::create_dir(&folder).unwrap();
        let place = folder.join("place");
        let (_, first) = TempFile::create(&folder, 0o600).unwrap();
        assert!(first.persist_new(&place).unwrap());
        let (file, young) = TempFile::create(&folder, 0o600).unwrap();
        assert!(!young.persist_new(&place).unwrap(), "the place is taken");
        sweep(&folder);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        let long_ago = SystemTime::now() - Duration::from_secs(60);
        std::fs::File::open(&young.0).unwrap().set_modified(long_ago).unwrap();
        drop(file);
        sweep(&folder);
        assert!(
            !young.persist_new(&folder.join("other")).unwrap(),
            "swept away under its maker's hands"
        );
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
