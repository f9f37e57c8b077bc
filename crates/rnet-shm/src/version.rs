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

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rnet_core::Error;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::domain::DomainDir;
use crate::draft::Draft;
use crate::{LAYOUT_VERSION, files, presence};

/// How often a start asks for the lock on the directory, which is held for some system calls.
const LOCK_TRIES: u32 = 500;
const LOCK_RETRY: Duration = Duration::from_millis(10);
/// More is no version.
const MAX_LEN_BYTES: usize = 32;

/// What `VERSION` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Ours,
    /// There is no such file.
    Nothing,
    /// Another number; 0 for what is no number.
    Other(u32),
}

impl DomainDir {
    /// Sees to it that the directory is of our layout, or says why it cannot be.
    pub(crate) fn claim_version(&self) -> Result<(), Error> {
        if self.read_version()? == Found::Ours {
            return Ok(());
        }
        let _lock = self.lock_directory()?;
        let found = match self.read_version()? {
            // Another one was faster.
            Found::Ours => return Ok(()),
            Found::Nothing => None,
            Found::Other(found) => Some(found),
        };
        let refused = |found| {
            Err(Error::LayoutVersion { path: self.version_path(), found, ours: LAYOUT_VERSION })
        };
        if let Some(found) = found
            && self.somebody_lives()
        {
            return refused(found);
        }
        let before = found.map(|found| format!("{found}\n"));
        self.write_version(&format!("{LAYOUT_VERSION}\n"))?;
        // One of the other version may have started between our question and our answer: it
        // looked at the version before it took its name.
        if let (Some(found), Some(before)) = (found, before)
            && self.somebody_lives()
        {
            self.write_version(&before)?;
            return refused(found);
        }
        Ok(())
    }

    /// For those who only look: the directory is of our layout, or its first node is between two
    /// of its steps.
    pub(crate) fn check_version(&self) -> Result<(), Error> {
        match self.read_version()? {
            Found::Ours | Found::Nothing => Ok(()),
            Found::Other(found) => {
                Err(Error::LayoutVersion { path: self.version_path(), found, ours: LAYOUT_VERSION })
            }
        }
    }

    fn version_path(&self) -> PathBuf {
        self.path().join("VERSION")
    }

    fn read_version(&self) -> Result<Found, Error> {
        let path = self.version_path();
        // Neither follows a link nor waits for the other end of a FIFO.
        let file = match files::open_read(&path) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Found::Nothing),
            Err(Errno::LOOP) => return Err(self.not_a("file", path)),
            Err(e) => return Err(files::io_error("cannot read", &path, e)),
        };
        let stat =
            rustix::fs::fstat(&file).map_err(|e| files::io_error("cannot look at", &path, e))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(self.not_a("file", path));
        }
        let mut text = [0u8; MAX_LEN_BYTES + 1];
        let len = rustix::io::pread(&file, &mut text, 0)
            .map_err(|e| files::io_error("cannot read", &path, e))?;
        let text = std::str::from_utf8(&text[..len]).unwrap_or("").trim();
        Ok(match text.parse::<u32>() {
            Ok(LAYOUT_VERSION) if len <= MAX_LEN_BYTES => Found::Ours,
            Ok(found) if len <= MAX_LEN_BYTES => Found::Other(found),
            _ => Found::Other(0),
        })
    }

    /// Call it with the directory locked.
    fn write_version(&self, text: &str) -> Result<(), Error> {
        let path = self.version_path();
        let failed = |e| files::io_error("cannot write", &path, e);
        let (file, draft) = Draft::create(self.path(), self.file_mode()).map_err(failed)?;
        files::write_all_at(&file, text.as_bytes(), 0)
            .and_then(|()| draft.replace(&path))
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
    fn somebody_lives(&self) -> bool {
        let Ok(names) = std::fs::read_dir(self.names()) else { return true };
        names.flatten().any(|entry| presence::is_held(&entry.path()))
    }

    /// The error for something of the wrong kind under a name of ours.
    pub(crate) fn not_a(&self, kind: &str, path: PathBuf) -> Error {
        Error::NoPermission { path, why: format!("it is not a {kind}; remove it or set RNET_DIR") }
    }
}
