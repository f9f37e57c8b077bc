//! The store's file as a redb backend: positioned reads and writes of a locked file, with a fence before each
//! write.
//!
//! redb's own file backend is not used because of the fence, because a forked child must not share the lock
//! ([`rnet_shm::os::fork`]), and because redb's lock would block a successor that copies the store of a stopped
//! persister.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use redb::StorageBackend;
use rnet_shm::domain::lease::Lease;
use rnet_shm::os::file_lock::FileLock;
use rnet_shm::ring::fail_point;
use rustix::io::retry_on_intr;

/// Whether this process may still write. Called before each write, so it must be cheap.
pub(crate) trait Fence: Send + Sync + std::fmt::Debug {
    /// `false` after another process has taken over.
    fn holds(&self) -> bool;
}

impl Fence for Lease {
    fn holds(&self) -> bool {
        Lease::holds(self)
    }
}

/// A store's file. The lock is released when the last handle is dropped.
#[derive(Clone, Debug)]
pub(super) struct StoreFile {
    held: Arc<FileLock>,
    fence: Arc<dyn Fence>,
}

impl StoreFile {
    pub fn new(held: Arc<FileLock>, fence: Arc<dyn Fence>) -> StoreFile {
        StoreFile { held, fence }
    }

    fn may_write(&self) -> io::Result<()> {
        if self.fence.holds() {
            return Ok(());
        }
        Err(io::Error::other("another process now writes the store"))
    }
}

impl StorageBackend for StoreFile {
    fn len(&self) -> io::Result<u64> {
        Ok(rustix::fs::fstat(&*self.held)?.st_size as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match read_at(&*self.held, offset, out)? {
            len if len == out.len() => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.may_write()?;
        Ok(retry_on_intr(|| rustix::fs::ftruncate(&*self.held, len))?)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.may_write()?;
        fail_point!("durable.sync");
        Ok(retry_on_intr(|| rustix::fs::fdatasync(&*self.held))?)
    }

    fn write(&self, mut offset: u64, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            self.may_write()?;
            fail_point!("durable.write");
            match retry_on_intr(|| rustix::io::pwrite(&*self.held, data, offset))? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                len => {
                    offset += len as u64;
                    data = &data[len..];
                }
            }
        }
        Ok(())
    }
}

/// Reads until `out` is full or the file ends; returns the number of bytes read.
pub(super) fn read_at(file: impl AsFd, offset: u64, out: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < out.len() {
        let at = offset + done as u64;
        match retry_on_intr(|| rustix::io::pread(&file, &mut out[done..], at))? {
            0 => break,
            len => done += len,
        }
    }
    Ok(done)
}
