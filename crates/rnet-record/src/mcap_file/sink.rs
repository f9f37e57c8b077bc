//! Buffers the bytes of a file until a chunk is complete, and reserves disk space for them.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::error::{RecordError, Result};

/// Space is reserved in steps of this length.
const RESERVE_STEP_BYTES: u64 = 8 << 20;

/// A file that is written sequentially, one block at a time. All clones share the file.
#[derive(Clone)]
pub struct Sink(Rc<RefCell<Inner>>);

struct Inner {
    path: PathBuf,
    file: File,
    /// Bytes written to the file.
    written: u64,
    /// Bytes not yet written, which follow them; `at` is the offset in them of the next write.
    pending: Vec<u8>,
    at: usize,
    /// End of the reserved space; `None` if the file system does not support reservation.
    reserved: Option<u64>,
}

impl Sink {
    /// Creates the file.
    ///
    /// # Errors
    /// `Exists`, `Full`, `File`.
    pub fn create(path: &Path) -> Result<Sink> {
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        let file = file.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => RecordError::Exists { path: path.to_owned() },
            _ => RecordError::file("create", path, error),
        })?;
        let (path, pending) = (path.to_owned(), Vec::new());
        let inner = Inner { path, file, written: 0, pending, at: 0, reserved: Some(0) };
        Ok(Sink(Rc::new(RefCell::new(inner))))
    }

    /// Bytes written to the file.
    pub fn written(&self) -> u64 {
        self.0.borrow().written
    }

    /// A second handle on the file.
    pub fn file(&self) -> io::Result<File> {
        self.0.borrow().file.try_clone()
    }

    /// Reserves space in the file for the pending bytes and `len` more.
    ///
    /// # Errors
    /// `Full`, `File`.
    pub fn reserve(&self, len: u64) -> Result<()> {
        let mut inner = self.0.borrow_mut();
        let end = inner.written + inner.pending.len() as u64 + len;
        let Some(reserved) = inner.reserved.filter(|reserved| *reserved < end) else {
            return Ok(());
        };
        let take = |to: u64| {
            rustix::fs::fallocate(&inner.file, FallocateFlags::KEEP_SIZE, reserved, to - reserved)
                .map(|()| to)
        };
        let is_full = |errno| matches!(errno, Errno::NOSPC | Errno::DQUOT | Errno::FBIG);
        let taken = match take(end + RESERVE_STEP_BYTES) {
            Err(errno) if is_full(errno) => take(end),
            taken => taken,
        };
        match taken {
            Ok(end) => inner.reserved = Some(end),
            Err(errno) if is_full(errno) => {
                return Err(RecordError::Full { path: inner.path.clone() });
            }
            // The file system does not support reservation: a full disk is detected by the write.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => inner.reserved = None,
            Err(errno) => return Err(RecordError::file("reserve space for", &inner.path, errno)),
        }
        Ok(())
    }

    /// Writes the pending bytes. If that fails, the file is truncated to its length before.
    ///
    /// # Errors
    /// `Full`, `File`.
    pub fn commit(&self) -> Result<()> {
        let mut inner = self.0.borrow_mut();
        if let Err(error) = inner.file.write_all_at(&inner.pending, inner.written) {
            // If this fails too, the file ends within a chunk, which readers must expect after a power cut
            // anyway.
            let _ = inner.file.set_len(inner.written);
            return Err(RecordError::file("write", &inner.path, error));
        }
        inner.written += inner.pending.len() as u64;
        inner.pending.clear();
        inner.at = 0;
        Ok(())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut inner = self.0.borrow_mut();
        let Inner { pending, at, .. } = &mut *inner;
        let over = bytes.len().min(pending.len() - *at);
        pending[*at..*at + over].copy_from_slice(&bytes[..over]);
        pending.extend_from_slice(&bytes[over..]);
        *at += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Sink {
    /// Only within the pending bytes, which contain the header of the open chunk.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let mut inner = self.0.borrow_mut();
        let here = inner.written + inner.at as u64;
        let to = match to {
            SeekFrom::Start(to) => Some(to),
            SeekFrom::Current(by) => here.checked_add_signed(by),
            SeekFrom::End(by) => {
                (inner.written + inner.pending.len() as u64).checked_add_signed(by)
            }
        };
        let at = to.and_then(|to| to.checked_sub(inner.written));
        match at.and_then(|at| usize::try_from(at).ok()).filter(|at| *at <= inner.pending.len()) {
            Some(at) => inner.at = at,
            None => return Err(ErrorKind::InvalidInput.into()),
        }
        Ok(inner.written + inner.at as u64)
    }
}
