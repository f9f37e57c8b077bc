//! A file that one process at a time may write: the kernel's lock on it, which says who has it.
//!
//! It is an open file description lock, as on the names of nodes: it ends with its process, however
//! that ends, and a forked child has no share in it. All lock from the first byte on, so any two
//! exclude each other; how *far* each locks is one more than the number that it is known by. So
//! who is refused learns from the kernel, with the refusal, whom it is refused for. A text in a
//! file could be older than the lock.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::os::files;
use crate::os::fork::UnsharedFd;
use crate::os::ofd::{self, Span, WHOLE};
use crate::os::unlinked_files;

/// The largest number that a holder can be known by.
pub const MAX_HOLDER: u64 = (1 << 62) - 1;

/// How often a lock is asked for whose holder has gone by the time that it is asked about.
const TRIES: u32 = 100;

/// A locked file; the lock ends when it is dropped, or with the process.
#[derive(Debug)]
pub struct FileLock {
    file: UnsharedFd,
}

/// What came of asking for a lock.
#[derive(Debug)]
pub enum LockAttempt {
    /// It is ours.
    Acquired(FileLock),
    /// The holder of this number has it.
    HeldBy(u64),
}

impl FileLock {
    /// Whether the locked file is the one at `path`, and not one that was moved away or removed.
    pub fn is_at(&self, path: &Path) -> bool {
        match (rustix::fs::fstat(&self.file), rustix::fs::lstat(path)) {
            (Ok(a), Ok(b)) => a.st_ino == b.st_ino && a.st_dev == b.st_dev,
            _ => false,
        }
    }
}

impl AsFd for FileLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn span_of(holder: u64) -> Span {
    (0, 1 + holder.min(MAX_HOLDER) as i64)
}

/// Asks for the lock on the file at `path`, to be known as `holder`, at most [`MAX_HOLDER`].
///
/// # Errors
/// Those of the system; `AGAIN` if it is never free and never held when looked at.
pub fn try_lock(path: &Path, holder: u64) -> rustix::io::Result<LockAttempt> {
    let file = UnsharedFd::open(|| unlinked_files::open(path, OFlags::RDWR))?;
    for _ in 0..TRIES {
        if ofd::take(&file, span_of(holder))? {
            return Ok(LockAttempt::Acquired(FileLock { file }));
        }
        if let Some((_, len)) = ofd::holder(&file, span_of(holder))? {
            // One of 0 reaches to the end: not one of ours, which are never so long.
            return Ok(LockAttempt::HeldBy((len as u64).wrapping_sub(1).min(MAX_HOLDER)));
        }
    }
    Err(Errno::AGAIN)
}

/// Makes a new, empty file at `path` and locks it.
///
/// # Errors
/// `EXIST` if there is one; `AGAIN` if another was faster to lock it, to sweep it away.
pub fn create_locked(path: &Path, mode: u32, holder: u64) -> rustix::io::Result<FileLock> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mode = Mode::from_raw_mode(mode);
    let file = UnsharedFd::open(|| rustix::fs::open(path, flags, mode))?;
    if !ofd::take(&file, span_of(holder))? {
        return Err(Errno::AGAIN);
    }
    // The umask has narrowed the mode; a group needs it as asked.
    rustix::fs::fchmod(&file, mode)?;
    Ok(FileLock { file })
}

/// Removes the file at `path` if nobody holds it.
///
/// # Errors
/// Those of the system.
pub fn remove_if_unlocked(path: &Path) -> rustix::io::Result<bool> {
    // Asked without taking part: what was opened to be written cannot be told from its maker's.
    let file: OwnedFd = files::open_read(path)?;
    if ofd::holder(&file, WHOLE)?.is_some() {
        return Ok(false);
    }
    rustix::fs::unlink(path)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::random::random_u64;

    #[test]
    fn who_is_refused_learns_whose_it_is() {
        let folder = std::env::temp_dir().join(format!("rnet-lease-{:x}", random_u64()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("file");
        let first = create_locked(&path, 0o600, 7).unwrap();
        assert_eq!(create_locked(&path, 0o600, 7).unwrap_err(), Errno::EXIST);
        for (asks, has) in [(7, 7), (8, 7), (0, 7), (MAX_HOLDER, 7)] {
            assert!(
                matches!(try_lock(&path, asks), Ok(LockAttempt::HeldBy(by)) if by == has),
                "{asks}"
            );
        }
        assert!(!remove_if_unlocked(&path).unwrap());
        drop(first);
        // The largest number, and the smallest, are told apart as well.
        for number in [MAX_HOLDER, 0] {
            let Ok(LockAttempt::Acquired(held)) = try_lock(&path, number) else {
                panic!("it is free")
            };
            assert!(
                matches!(try_lock(&path, 3), Ok(LockAttempt::HeldBy(by)) if by == number),
                "{number}"
            );
            assert!(held.is_at(&path) && !held.is_at(&folder));
        }
        assert!(remove_if_unlocked(&path).unwrap());
        assert!(matches!(try_lock(&path, 1), Err(Errno::NOENT)));
        std::fs::remove_dir(&folder).unwrap();
    }
}
