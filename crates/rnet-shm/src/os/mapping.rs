//! Mapped memory with checked bounds: every reference into a file is made here.
//!
//! A file may be truncated by whoever may write it; the pages that go then read as zeros, and
//! [`Mapping::is_truncated`] says so (`sigbus.rs` has the how).

use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rnet_ring::layout::{Admission, ChunkHeader, LogControl, ObserverSlot, ReaderSlot};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::os::{files, sigbus};

/// Structures that may be looked at in shared memory.
///
/// # Safety
/// Only for types made of nothing but atomics, for which every bit pattern is a value: another
/// process may write them at any time.
pub unsafe trait Shared: Sized {}

// SAFETY: atomics only.
unsafe impl Shared for AtomicU32 {}
// SAFETY: atomics only.
unsafe impl Shared for AtomicU64 {}
// SAFETY: repr(C) of AtomicU64 only.
unsafe impl Shared for Admission {}
// SAFETY: repr(C) of AtomicU64 only.
unsafe impl Shared for LogControl {}
// SAFETY: repr(C) of AtomicU64 only.
unsafe impl Shared for ReaderSlot {}
// SAFETY: repr(C) of AtomicU64 only.
unsafe impl Shared for ChunkHeader {}
// SAFETY: repr(C) of AtomicU64 only.
unsafe impl Shared for ObserverSlot {}

/// Whether this process may write the mapped pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Another's pages: a write would be a fault, not a corruption.
    Read,
    /// Our own pages (or doorbells).
    Write,
}

/// A mapped range of a file; unmapped on drop.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
    sigbus_entry: &'static sigbus::Entry,
}

// SAFETY: the mapping is plain memory, valid in every thread until drop.
unsafe impl Send for Mapping {}
// SAFETY: shared access goes through atomics (`get`, `slice`) or through `bytes`, whose contract
// is the caller's.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes at `offset` (a multiple of the page size) of an open file.
    ///
    /// The file must be at least `offset + len` long, which is checked: a shorter one would be a
    /// SIGBUS later. `populate` takes the page faults now instead of at first use.
    pub fn new(
        fd: BorrowedFd<'_>,
        offset: u64,
        len: usize,
        access: Access,
        populate: bool,
    ) -> rustix::io::Result<Mapping> {
        let size = rustix::fs::fstat(fd)?.st_size as u64;
        let fits = offset.checked_add(len as u64).is_some_and(|end| end <= size);
        if !fits || len == 0 {
            return Err(rustix::io::Errno::INVAL);
        }
        let prot = match access {
            Access::Read => ProtFlags::READ,
            Access::Write => ProtFlags::READ | ProtFlags::WRITE,
        };
        let mut flags = MapFlags::SHARED;
        flags.set(MapFlags::POPULATE, populate);
        // SAFETY: a fresh mapping at an address of the kernel's choice; the length is not zero.
        let base = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, prot, flags, fd, offset) }?;
        let base = NonNull::new(base.cast::<u8>()).ok_or(rustix::io::Errno::NOMEM)?;
        let Some(sigbus_entry) = sigbus::register(base.as_ptr(), len, access == Access::Write)
        else {
            // SAFETY: made above and not used yet.
            let _ = unsafe { rustix::mm::munmap(base.as_ptr().cast::<c_void>(), len) };
            return Err(rustix::io::Errno::NOMEM);
        };
        Ok(Mapping { base, len, sigbus_entry })
    }

    /// Whether the file was truncated under the mapping and somebody has met that: what was cut off
    /// reads as zeros, and what is written there reaches nobody.
    #[inline]
    pub fn is_truncated(&self) -> bool {
        self.sigbus_entry.is_truncated()
    }

    /// Length of the mapping in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Backs a range of our own file with memory, or says why that cannot be: what the range is
    /// written with later cannot fail for lack of room, which would be a SIGBUS.
    ///
    /// By way of the mapping, because a node may have thousands of publishers and keeps no
    /// descriptor for each. `path` is the file's, for a kernel that cannot do that (before 5.14).
    pub fn back(&self, path: &Path, offset: usize, len: usize) -> rustix::io::Result<()> {
        match self.advise(offset, len, Advice::LinuxPopulateWrite) {
            Err(Errno::INVAL) => {
                let file = files::open_write(path)?;
                files::reserve(&file, offset as u64, len as u64)
            }
            done => done,
        }
    }

    /// Fetches the pages of a range that has memory, as `populate` does for all of a mapping.
    pub fn populate(&self, offset: usize, len: usize) {
        // Without it each page is fetched at first use.
        let _ = self.advise(offset, len, Advice::LinuxPopulateRead);
    }

    /// Gives back the memory of a range of our own file, which reads as zeros from then on.
    pub fn give_back(&self, offset: usize, len: usize) -> rustix::io::Result<()> {
        self.advise(offset, len, Advice::LinuxRemove)
    }

    fn advise(&self, offset: usize, len: usize, advice: Advice) -> rustix::io::Result<()> {
        let at = self.bytes(offset, len);
        loop {
            // SAFETY: the range is inside of the mapping, as just checked. None of these takes the
            // mapping away; `LinuxRemove` zeroes atomics, which may change at any time.
            match unsafe { rustix::mm::madvise(at.as_ptr().cast::<c_void>(), len, advice) } {
                Err(Errno::INTR | Errno::AGAIN) => {}
                done => return done,
            }
        }
    }

    #[inline]
    fn checked<T>(&self, offset: usize, count: usize) -> NonNull<T> {
        let size = count.checked_mul(size_of::<T>()).expect("the range overflows");
        let end = offset.checked_add(size).expect("the range overflows");
        assert!(end <= self.len, "offset {offset} + {size} exceeds a mapping of {}", self.len);
        // SAFETY: the offset is inside the mapping, as just checked.
        let at = unsafe { self.base.add(offset) }.cast::<T>();
        assert!(at.is_aligned(), "offset {offset} is not aligned");
        at
    }

    /// The structure at `offset`. Panics if it does not lie inside the mapping: offsets come from
    /// our own constants, never from a peer.
    #[inline]
    pub fn get<T: Shared>(&self, offset: usize) -> &T {
        let at = self.checked::<T>(offset, 1);
        // SAFETY: in bounds, aligned, and `Shared` says that concurrent writes are expected.
        unsafe { at.as_ref() }
    }

    /// `count` structures from `offset` on; bounds as in [`Mapping::get`].
    #[inline]
    pub fn slice<T: Shared>(&self, offset: usize, count: usize) -> &[T] {
        let at = self.checked::<T>(offset, count);
        // SAFETY: as in `get`.
        unsafe { std::slice::from_raw_parts(at.as_ptr(), count) }
    }

    /// Appends a copy of `len` bytes from `offset` on, at the speed of memory; bounds as in
    /// [`Mapping::get`]. Another process may write them meanwhile, and the copy is then of no
    /// particular moment: the caller has to find out, as a reader of a log does (SYNC-LAP).
    pub fn copy_to(&self, offset: usize, len: usize, to: &mut Vec<u8>) {
        let from = self.bytes(offset, len);
        to.reserve(len);
        let before = to.len();
        let room = to.spare_capacity_mut().as_mut_ptr().cast::<u8>();
        // SAFETY: `from` is inside of the mapping (checked), `room` has at least `len` bytes, and the
        // two are different memory. No reference to the mapped bytes is made, and each value is one of
        // a `u8`, whoever writes them while they are copied.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), room, len) };
        // SAFETY: as many bytes were reserved, and written just now.
        unsafe { to.set_len(before + len) };
    }

    /// A pointer to `len` bytes from `offset` on; bounds as in [`Mapping::get`].
    #[inline]
    pub fn bytes(&self, offset: usize, len: usize) -> NonNull<u8> {
        self.checked::<u8>(offset, len)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        sigbus::unregister(self.sigbus_entry);
        // SAFETY: made by `new`, and nobody borrows from `self` any more.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast::<c_void>(), self.len) };
    }
}
