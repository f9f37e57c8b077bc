//! Files in the domain's directory, with errors that include their paths.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rnet_core::Error;
use rnet_ring::fail_point;
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::os::{folders, shortage, unlinked_files};
use rnet_ring::layout::PAGE_LEN_BYTES;

/// An error of the system, with the failed operation. It names an exhausted resource: see
/// [`crate::os::shortage`].
pub fn io_error(doing: &str, path: &Path, source: impl Into<io::Error>) -> Error {
    let source = source.into();
    let errno = Errno::from_io_error(&source).unwrap_or(Errno::IO);
    if let Some(error) = shortage::error_for(doing, path, None, PAGE_LEN_BYTES as u64, errno) {
        return error;
    }
    Error::io(doing, path, &source)
}

/// The error for a file of `len` bytes that could not be created, with the topic if it has one.
pub fn create_error(topic: Option<&str>, path: &Path, len: u64, errno: Errno) -> Error {
    shortage::error_for("cannot create", path, topic, len, errno)
        .unwrap_or_else(|| io_error("cannot create", path, errno))
}

/// Opens an existing file for reading, close-on-exec.
pub fn open_read(path: &Path) -> rustix::io::Result<OwnedFd> {
    open(path, OFlags::RDONLY)
}

/// Opens an existing file for reading and writing, close-on-exec.
pub fn open_write(path: &Path) -> rustix::io::Result<OwnedFd> {
    open(path, OFlags::RDWR)
}

/// Must not be called under the lock of `fork.rs`, for example to open an `UnsharedFd`: use
/// [`unlinked_files::open`] there.
fn open(path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    match unlinked_files::open(path, flags) {
        Err(Errno::NOENT) if folders::restore_own(path) => unlinked_files::open(path, flags),
        opened => opened,
    }
}

/// Creates a file of `len` zero bytes in a node's folder with allocated memory: a later write cannot fail
/// because the disk is full, which would raise SIGBUS.
pub fn create_sized(path: &Path, len: u64, mode: u32) -> rustix::io::Result<OwnedFd> {
    create_sparse(path, len, len, mode)
}

/// Like [`create_sized`], with memory for the first `backed` bytes. The rest must not be accessed before
/// [`Mapping::back`](crate::os::mapping::Mapping::back) has allocated its memory.
pub fn create_sparse(path: &Path, len: u64, backed: u64, mode: u32) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let create = || rustix::fs::open(path, flags, Mode::from_raw_mode(mode));
    let fd = match create() {
        // The folder was removed under a living node.
        Err(Errno::NOENT) if folders::restore_for(path) => create()?,
        created => created?,
    };
    fail_point!("file.created");
    // The umask restricted the mode; a group domain needs the requested one.
    let sized = rustix::fs::fchmod(&fd, Mode::from_raw_mode(mode))
        .and_then(|()| rustix::fs::ftruncate(&fd, len))
        .and_then(|()| {
            fail_point!("file.sized");
            reserve(&fd, 0, backed)
        });
    fail_point!("file.reserved");
    match sized {
        Ok(()) => {
            folders::track(path, &fd);
            Ok(fd)
        }
        Err(errno) => {
            let _ = rustix::fs::unlink(path);
            Err(errno)
        }
    }
}

/// Allocates memory for a range of a file.
pub fn reserve(fd: impl AsFd, offset: u64, len: u64) -> rustix::io::Result<()> {
    loop {
        match rustix::fs::fallocate(&fd, FallocateFlags::empty(), offset, len) {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

/// Whether a descriptor's number is in the upper half of the process limit: that half is reserved for
/// operations that cannot work without a descriptor.
pub fn is_scarce(fd: impl AsFd) -> bool {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.is_some_and(|limit| fd.as_fd().as_raw_fd() as u64 >= limit / 2)
}

/// Length of an open file, in bytes.
pub fn len_of(fd: &OwnedFd) -> rustix::io::Result<u64> {
    Ok(rustix::fs::fstat(fd)?.st_size as u64)
}

/// Whether two descriptors refer to the same file.
pub fn are_same(a: impl AsFd, b: impl AsFd) -> bool {
    match (rustix::fs::fstat(a), rustix::fs::fstat(b)) {
        (Ok(a), Ok(b)) => a.st_ino == b.st_ino && a.st_dev == b.st_dev,
        _ => false,
    }
}

/// Reads exactly `buf.len()` bytes at `offset`, or fails.
pub fn read_exact_at(fd: &OwnedFd, mut buf: &mut [u8], mut offset: u64) -> rustix::io::Result<()> {
    while !buf.is_empty() {
        match rustix::io::pread(fd, &mut *buf, offset) {
            Ok(0) => return Err(Errno::IO),
            Ok(n) => {
                offset += n as u64;
                buf = &mut buf[n..];
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Writes all of `bytes` at `offset`.
pub fn write_all_at(fd: impl AsFd, mut bytes: &[u8], mut offset: u64) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(&fd, bytes, offset) {
            Ok(0) => return Err(Errno::IO),
            Ok(n) => {
                offset += n as u64;
                bytes = &bytes[n..];
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// A little-endian word of a header that was read into memory.
pub fn word_at(header: &[u8], index: usize) -> u64 {
    header
        .get(index * 8..index * 8 + 8)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}
