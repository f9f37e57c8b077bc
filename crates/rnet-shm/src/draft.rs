//! Files that come into being whole: made under a name of their own, with their mode, their lock
//! and their text, and then moved into place.
//!
//! Between `open` and `fchmod` a file has the mode that the umask leaves of the one asked for. In a
//! domain that a group shares, others could not open it then; and after a kill between the two,
//! never. So only drafts are ever like that. A draft may be swept away at any time, even under the
//! hands of its maker, who then makes another.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rnet_ring::fail_point;
use rustix::fs::{Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::fork::Unshared;
use crate::random::random_u64;

/// What the names of drafts begin with; names of nodes and their files do not.
const PREFIX: char = '@';
/// A younger draft is left alone, as its maker probably lives: making one takes microseconds.
const LEFT_OVER: Duration = Duration::from_secs(1);

/// The name of a draft; gone on drop.
#[derive(Debug)]
pub(crate) struct Draft(PathBuf);

impl Draft {
    /// A new, empty file in `folder`. A forked child does not share it.
    pub fn create(folder: &Path, mode: u32) -> rustix::io::Result<(Unshared, Draft)> {
        let path = folder.join(format!("{PREFIX}{:016x}", random_u64()));
        let mode = Mode::from_raw_mode(mode);
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = Unshared::open(|| rustix::fs::open(&path, flags, mode))?;
        let draft = Draft(path);
        fail_point!("draft.made");
        rustix::fs::fchmod(&file, mode)?;
        fail_point!("draft.open");
        Ok((file, draft))
    }

    /// Gives the file its place; `false` if that is taken, or the draft was swept away.
    pub fn place(&self, place: &Path) -> rustix::io::Result<bool> {
        let cwd = rustix::fs::CWD;
        // Moved, and not linked: who watches the folder is to hear of its end under this name.
        match rustix::fs::renameat_with(cwd, &self.0, cwd, place, RenameFlags::NOREPLACE) {
            Ok(()) => {
                fail_point!("draft.placed");
                Ok(true)
            }
            Err(Errno::EXIST | Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Puts the file in the place of what is there, which is handed to `see` before it goes. Nothing is done
    /// where nothing is there, or the draft was swept away.
    pub fn exchange(&self, place: &Path, see: impl FnOnce(&Path)) -> rustix::io::Result<()> {
        let cwd = rustix::fs::CWD;
        match rustix::fs::renameat_with(cwd, &self.0, cwd, place, RenameFlags::EXCHANGE) {
            Ok(()) => {
                see(&self.0);
                Ok(())
            }
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Puts the file in the place of what is there.
    pub fn replace(&self, place: &Path) -> rustix::io::Result<()> {
        rustix::fs::rename(&self.0, place)?;
        fail_point!("draft.renamed");
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = rustix::fs::unlink(&self.0);
    }
}

/// Whether a file of this name is a draft.
pub(crate) fn is_draft(name: &[u8]) -> bool {
    name.starts_with(&[PREFIX as u8])
}

/// Removes the drafts in `folder` whose makers were killed.
pub(crate) fn sweep(folder: &Path) {
    // Where it cannot be read, nothing can be made in it either, and that is told.
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_draft = is_draft(entry.file_name().as_encoded_bytes());
        let age = || SystemTime::now().duration_since(entry.metadata().ok()?.modified().ok()?).ok();
        // One from the future is from before the clock was set.
        if is_draft && age().is_none_or(|age| age > LEFT_OVER) {
            let _ = rustix::fs::unlink(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_over_drafts_go_and_young_ones_stay() {
        let folder = std::env::temp_dir().join(format!("rnet-draft-{:x}", random_u64()));
        std::fs::create_dir(&folder).unwrap();
        let place = folder.join("place");
        let (_, first) = Draft::create(&folder, 0o600).unwrap();
        assert!(first.place(&place).unwrap());
        let (file, young) = Draft::create(&folder, 0o600).unwrap();
        assert!(!young.place(&place).unwrap(), "the place is taken");
        sweep(&folder);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        let long_ago = SystemTime::now() - Duration::from_secs(60);
        std::fs::File::open(&young.0).unwrap().set_modified(long_ago).unwrap();
        drop(file);
        sweep(&folder);
        assert!(!young.place(&folder.join("other")).unwrap(), "swept away under its maker's hands");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
