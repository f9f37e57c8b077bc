//! A file that one process at a time may write: a kernel lock on it, which identifies the holder.
//!
//! It is an open file description lock, as on the files of node names: it is released with its process,
//! however that exits, and a forked child does not share it. All locks start at the first byte, so any two
//! conflict; the *length* of each is its holder's number plus one. So a process whose request is rejected
//! learns the holder's number from the kernel in the same step. A text in the file could be older than the
//! lock.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::os::files;
use crate::os::fork::UnsharedFd;
use crate::os::ofd::{self, Span, WHOLE};
use crate::os::unlinked_files;

/// The largest possible number of a holder.
pub const MAX_HOLDER: u64 = (1 << 62) - 1;

/// How many times a lock is requested if its holder has released it before it is queried.
const TRIES: u32 = 100;

/// A locked file; the lock is released on drop or when the process exits.
#[derive(Debug)]
pub struct FileLock {
    file: UnsharedFd,
}

/// The result of a lock request.
#[derive(Debug)]
pub enum LockAttempt {
    /// This process has acquired it.
    Acquired(FileLock),
    /// The holder with this number has it.
    HeldBy(u64),
}

impl FileLock {
    /// Whether the locked file is the one at `path`, and was not moved or removed.
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

/// Requests the lock on the file at `path` with the number `holder`, at most [`MAX_HOLDER`].
///
/// # Errors
/// Errors of the system; `AGAIN` if each request fails but each query finds no holder.
pub fn try_lock(path: &Path, holder: u64) -> rustix::io::Result<LockAttempt> {
    let file = UnsharedFd::open(|| unlinked_files::open(path, OFlags::RDWR))?;
    for _ in 0..TRIES {
        if ofd::take(&file, span_of(holder))? {
            return Ok(LockAttempt::Acquired(FileLock { file }));
        }
        if let Some((_, len)) = ofd::holder(&file, span_of(holder))? {
            // Length 0 reaches to the end of the file: not one of our locks, whose lengths are never that
            // large.
            return Ok(LockAttempt::HeldBy((len as u64).wrapping_sub(1).min(MAX_HOLDER)));
        }
    }
    Err(Errno::AGAIN)
}

/// Creates a new, empty file at `path` and locks it.
///
/// # Errors
/// `EXIST` if the file exists; `AGAIN` if another process locked it first to sweep it.
pub fn create_locked(path: &Path, mode: u32, holder: u64) -> rustix::io::Result<FileLock> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mode = Mode::from_raw_mode(mode);
    let file = UnsharedFd::open(|| rustix::fs::open(path, flags, mode))?;
    if !ofd::take(&file, span_of(holder))? {
        return Err(Errno::AGAIN);
    }
    // The umask restricted the mode; a group needs the requested one.
    rustix::fs::fchmod(&file, mode)?;
    Ok(FileLock { file })
}

/// Removes the file at `path` if it is unlocked.
///
/// # Errors
/// Errors of the system.
pub fn remove_if_unlocked(path: &Path) -> rustix::io::Result<bool> {
    // Queried through a read-only descriptor: a writable one would look like that of the creator.
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
    fn rejected_lock_request_reports_the_holder() {
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
        // The largest and the smallest number are distinguished too.
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
