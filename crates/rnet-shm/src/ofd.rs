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
