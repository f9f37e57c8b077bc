//! Which layout a domain's directory holds, and who may say so.
//!
//! Three things are the same in every layout, so that a process can judge a directory of another
//! version: the file `VERSION` (a decimal number), the folder `names/`, and that a living node
//! holds a lock on its file in there. So a start finds out whether anybody lives in a directory of
//! another version, or in one whose `VERSION` a power cut has left empty. If so, it is refused:
//! the layouts would not understand each other. If not, the directory is taken over; what stands
//! in it belongs to nobody and is swept as that of any dead node. The user has nothing to remove.
//!
//! `VERSION` is written aside and renamed, by one process at a time, which holds a lock on the
//! directory meanwhile. A node that starts without finding anything to change takes no lock.
//!
//! A take-over writes a mark that no layout reads as its own, looks once more for somebody who had
//! read the version before, and only then writes ours. So whoever starts meanwhile, of any layout,
//! waits for the lock, and the second look finds none of our own layout. A node that has taken its
//! name reads the version again, and starts anew if the directory was taken over in between.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rnet_core::Error;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::LAYOUT_VERSION;
use crate::domain::directory::DomainDir;
use crate::domain::presence;
use crate::os::files;
use crate::os::temp_file::{self, TempFile};

/// How often a start asks for the lock on the directory, which is held for some system calls.
const LOCK_TRIES: u32 = 500;
const LOCK_RETRY: Duration = Duration::from_millis(10);
/// More is no version.
const MAX_LEN_BYTES: usize = 32;

/// What `VERSION` says while the directory is taken over; no number, so that all wait for the lock.
const TAKING_OVER: &str = "taken over\n";

/// What `VERSION` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VersionState {
    Ours,
    /// There is no such file.
    Missing,
    /// Somebody takes the directory over, or was killed while doing so.
    TakingOver,
    /// Another number; 0 for what is no number.
    Other(u32),
}

impl DomainDir {
    /// Sees to it that the directory is of our layout, or says why it cannot be.
    pub(crate) fn claim_version(&self) -> Result<(), Error> {
        self.claim_version_with(|| {})
    }

    /// Whether the directory still is of our layout; to be asked once a name was taken.
    pub(crate) fn has_our_version(&self) -> Result<bool, Error> {
        Ok(self.read_version()? == VersionState::Ours)
    }

    /// As [`DomainDir::claim_version`]; `between` runs before a take-over looks for the second time.
    fn claim_version_with(&self, between: impl FnOnce()) -> Result<(), Error> {
        if self.read_version()? == VersionState::Ours {
            return Ok(());
        }
        let _lock = self.lock_directory()?;
        let found = match self.read_version()? {
            // Another one was faster.
            VersionState::Ours => return Ok(()),
            VersionState::Missing => return self.write_version(&format!("{LAYOUT_VERSION}\n")),
            VersionState::TakingOver => 0,
            VersionState::Other(found) => found,
        };
        let refused =
            || Err(Error::LayoutVersion { path: self.version_path(), found, ours: LAYOUT_VERSION });
        if self.has_living_node() {
            return refused();
        }
        self.write_version(TAKING_OVER)?;
        between();
        // One of the other version may have started between our question and the mark: it looked
        // at the version before it took its name.
        if self.has_living_node() {
            self.write_version(&format!("{found}\n"))?;
            return refused();
        }
        self.write_version(&format!("{LAYOUT_VERSION}\n"))
    }

    /// For those who only look: the directory is of our layout, or its first node is between two
    /// of its steps.
    pub(crate) fn check_version(&self) -> Result<(), Error> {
        match self.read_version()? {
            VersionState::Ours | VersionState::Missing | VersionState::TakingOver => Ok(()),
            VersionState::Other(found) => {
                Err(Error::LayoutVersion { path: self.version_path(), found, ours: LAYOUT_VERSION })
            }
        }
    }

    fn version_path(&self) -> PathBuf {
        self.path().join("VERSION")
    }

    fn read_version(&self) -> Result<VersionState, Error> {
        let path = self.version_path();
        // Neither follows a link nor waits for the other end of a FIFO.
        let file = match files::open_read(&path) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(VersionState::Missing),
            Err(Errno::LOOP) => return Err(self.wrong_kind_error("file", path)),
            Err(e) => return Err(files::io_error("cannot read", &path, e)),
        };
        let stat =
            rustix::fs::fstat(&file).map_err(|e| files::io_error("cannot inspect", &path, e))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(self.wrong_kind_error("file", path));
        }
        let mut text = [0u8; MAX_LEN_BYTES + 1];
        let len = rustix::io::pread(&file, &mut text, 0)
            .map_err(|e| files::io_error("cannot read", &path, e))?;
        let text = std::str::from_utf8(&text[..len]).unwrap_or("");
        if text == TAKING_OVER {
            return Ok(VersionState::TakingOver);
        }
        let text = text.trim();
        Ok(match text.parse::<u32>() {
            Ok(LAYOUT_VERSION) if len <= MAX_LEN_BYTES => VersionState::Ours,
            Ok(found) if len <= MAX_LEN_BYTES => VersionState::Other(found),
            _ => VersionState::Other(0),
        })
    }

    /// Call it with the directory locked.
    fn write_version(&self, text: &str) -> Result<(), Error> {
        let path = self.version_path();
        let failed = |e| files::io_error("cannot write", &path, e);
        let (file, temp_file) = TempFile::create(self.path(), self.file_mode()).map_err(failed)?;
        files::write_all_at(&file, text.as_bytes(), 0)
            .and_then(|()| temp_file.persist(&path))
            .map_err(failed)
    }

    fn lock_directory(&self) -> Result<OwnedFd, Error> {
        let path = self.path();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let dir = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|e| files::io_error("cannot open", path, e))?;
        for attempt in 1.. {
            match rustix::fs::flock(dir.as_fd(), FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK | Errno::INTR) if attempt < LOCK_TRIES => {
                    std::thread::sleep(LOCK_RETRY);
                }
                Err(e) => return Err(files::io_error("cannot lock", path, e)),
            }
        }
        Ok(dir)
    }

    /// Whether some name is held, or it cannot be told.
    fn has_living_node(&self) -> bool {
        let Ok(names) = std::fs::read_dir(self.names()) else { return true };
        // One that is only being drafted has no name yet, and reads the version once it has.
        names
            .flatten()
            .filter(|entry| !temp_file::is_temp_file(entry.file_name().as_encoded_bytes()))
            .any(|entry| presence::is_held(&entry.path()))
    }

    /// The error for something of the wrong kind under a name of ours.
    pub(crate) fn wrong_kind_error(&self, kind: &str, path: PathBuf) -> Error {
        Error::NoPermission { path, why: format!("it is not a {kind}; remove it or set RNET_DIR") }
    }
}

#[cfg(test)]
mod tests {
    use rnet_core::NodeName;

    use super::*;
    use crate::domain::directory::DomainConfig;
    use crate::domain::presence::Presence;
    use crate::os::random::random_u64;

    /// Runs `body` with a directory of another layout in which nobody lives.
    fn with_other_layout(body: impl FnOnce(&DomainDir)) {
        let base = std::env::temp_dir().join(format!("rnet-version-{:x}", random_u64()));
        std::fs::create_dir(&base).unwrap();
        let config = DomainConfig { base: Some(base.clone()), ..DomainConfig::default() };
        let dir = DomainDir::open_or_create(&config).unwrap();
        std::fs::write(dir.version_path(), "1\n").unwrap();
        body(&dir);
        std::fs::remove_dir_all(&base).unwrap();
    }

    fn says(dir: &DomainDir) -> String {
        std::fs::read_to_string(dir.version_path()).unwrap()
    }

    /// One of our own layout that starts while the directory is taken over does not end that.
    #[test]
    fn a_start_in_the_middle_of_a_take_over_waits() {
        with_other_layout(|dir| {
            let name = NodeName::new("b").unwrap();
            let mut other = None;
            dir.claim_version_with(|| {
                dir.check_version().unwrap();
                // As a start does that need not wait for the lock.
                if dir.has_our_version().unwrap() {
                    other = Some(Presence::take(dir, &name, 1).unwrap());
                }
            })
            .unwrap();
            assert_eq!(says(dir), format!("{LAYOUT_VERSION}\n"));
            assert!(dir.has_our_version().unwrap());
        });
    }

    /// One of the other layout had read the version before: it stays, and we are refused.
    #[test]
    fn one_of_the_other_layout_that_was_about_to_start_keeps_the_directory() {
        with_other_layout(|dir| {
            let name = NodeName::new("old").unwrap();
            let mut old = None;
            let error = dir
                .claim_version_with(|| old = Some(Presence::take(dir, &name, 1).unwrap()))
                .unwrap_err();
            let path = dir.version_path();
            assert_eq!(error, Error::LayoutVersion { path, found: 1, ours: LAYOUT_VERSION });
            assert_eq!(says(dir), "1\n");
            drop(old);
            dir.claim_version().unwrap();
        });
    }

    /// Who was killed in the middle of it is in nobody's way.
    #[test]
    fn a_take_over_that_was_not_finished_is_finished_by_the_next() {
        with_other_layout(|dir| {
            std::fs::write(dir.version_path(), TAKING_OVER).unwrap();
            assert!(!dir.has_our_version().unwrap());
            dir.claim_version().unwrap();
            assert!(dir.has_our_version().unwrap());
        });
    }
}
