//! Locks of an open file description, on a range of a file's bytes.
//!
//! The kernel releases such a lock when the last copy of the descriptor is closed, however its process
//! ends. Anybody who may open the file can ask for it without taking it, also when the file has no name
//! any more. Lengths of 0 reach to the end of the file.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

/// A range of bytes: where it begins, and how long it is.
pub(crate) type Span = (i64, i64);

/// All of a file.
pub(crate) const WHOLE: Span = (0, 0);

fn call(
    file: impl AsFd,
    command: libc::c_int,
    kind: libc::c_int,
    (start, len): Span,
) -> rustix::io::Result<libc::flock> {
    let mut lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: len,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open and `lock` outlives the call.
    let done = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, &raw mut lock) };
    if done == 0 {
        return Ok(lock);
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}

/// Takes the lock; `false` if another open file description has one that overlaps.
pub(crate) fn take(file: impl AsFd, span: Span) -> rustix::io::Result<bool> {
    match call(file, libc::F_OFD_SETLK, libc::F_WRLCK, span) {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Gives the lock back.
pub(crate) fn release(file: impl AsFd, span: Span) {
    let _ = call(file, libc::F_OFD_SETLK, libc::F_UNLCK, span);
}

/// The span of a lock that another open file description has and that overlaps; `None` if there is none.
pub(crate) fn holder(file: impl AsFd, span: Span) -> rustix::io::Result<Option<Span>> {
    let found = call(file, libc::F_OFD_GETLK, libc::F_WRLCK, span)?;
    let held = found.l_type != libc::F_UNLCK as libc::c_short;
    Ok(held.then_some((found.l_start, found.l_len)))
}

/// Whether anybody holds a lock on the whole of a file that may have lost its name: `None` where that cannot be
/// told. Reads the list of all locks of the machine, so not for what is asked often.
pub(crate) fn is_held_somewhere(file: &FileId) -> Option<bool> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let (major, minor) = (rustix::fs::major(file.device), rustix::fs::minor(file.device));
    let place = format!("{major:02x}:{minor:02x}:{}", file.inode);
    let is_it = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some("OFDLCK") && words.any(|word| word == place)
    };
    Some(locks.lines().any(is_it))
}

/// Which file it is, whatever has become of its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub fn of(file: impl AsFd) -> rustix::io::Result<FileId> {
        let stat = rustix::fs::fstat(file)?;
        Ok(FileId { device: stat.st_dev, inode: stat.st_ino })
    }
}
