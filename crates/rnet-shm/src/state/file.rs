//! The file `state` of a domain: made whole, mapped whole, backed with memory as it is used.
//!
//! It is as long as it can ever be, and has holes where nothing is yet: so it is mapped once, and grows
//! under its readers' hands without their knowing.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use rnet_core::Error;
use rnet_ring::fail_point;
use rnet_ring::state::journal::FIRST_REVISION;
use rnet_ring::state::layout::{GEOMETRY_AT, Geometry, MAGIC_AT, SEED_AT, TAIL_AT};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::STATE_VERSION;
use crate::domain::directory::DomainDir;
use crate::os::files::{self, create_error, io_error};
use crate::os::fork::UnsharedFd;
use crate::os::mapping::{Access, Mapping};
use crate::os::ofd;
use crate::os::random::random_u64;
use crate::os::temp_file::TempFile;
use crate::os::unlinked_files;

/// The first word: what the file is, and in the last byte its version.
const MAGIC: u64 = u64::from_le_bytes(*b"RNETSTA\0") | STATE_VERSION << 56;
/// How often a file is looked for again that was swept away while it was made.
const TRIES: usize = 100;

/// The mapped file.
pub(super) struct StateFile {
    pub(super) path: PathBuf,
    pub(super) fd: OwnedFd,
    map: Mapping,
    /// The file once more, for the lock on our process slot's byte: a mapping keeps the description that it was
    /// made of, and a forked child keeps the mapping.
    locks: UnsharedFd,
    /// Whether others have begun another region in the place of this one.
    replaced: AtomicBool,
}

/// How the file that is mapped stands to the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileStatus {
    /// It is in its place, as a file or by a link.
    InPlace,
    /// Its name had been removed, and now there is a link to it.
    Restored,
    /// Another file has its name: others have begun a new region.
    Replaced,
}

/// Where a domain's state stands.
pub(super) fn path_of(dir: &DomainDir) -> PathBuf {
    dir.path().join("state")
}

impl StateFile {
    /// Opens the file, or makes it; with the seed of its hashes.
    pub(super) fn open(dir: &DomainDir) -> Result<(StateFile, u64), Error> {
        let path = path_of(dir);
        for _ in 0..TRIES {
            let opened = files::open_write(&path).and_then(|fd| {
                let locks = UnsharedFd::open(|| unlinked_files::open(&path, OFlags::RDWR))?;
                Ok((fd, locks))
            });
            match opened {
                // Another file by now: look again.
                Ok((fd, locks)) if !files::are_same(&fd, &locks) => {}
                Ok((fd, locks)) => return StateFile::map(path, fd, locks),
                Err(Errno::NOENT) => match unlinked_files::find_open(&path, OFlags::RDWR) {
                    // A region lives as long as anybody has it open: those who have lost their directory
                    // are not to be left alone with it.
                    Some(fd) if restore_link(&path, &fd).is_ok() => {
                        let locks = UnsharedFd::open(|| unlinked_files::open(&path, OFlags::RDWR));
                        if let Ok(locks) = locks
                            && files::are_same(&fd, &locks)
                        {
                            return StateFile::map(path, fd, locks);
                        }
                    }
                    _ => StateFile::make(dir)?,
                },
                Err(errno) => return Err(io_error("cannot open", &path, errno)),
            }
        }
        Err(io_error("cannot create", &path, Errno::NOENT))
    }

    fn make(dir: &DomainDir) -> Result<(), Error> {
        let path = path_of(dir);
        let geometry = Geometry::DOMAIN;
        let fixed = geometry.blocks_at() as u64 * 8;
        let failed = |errno| create_error(None, &path, fixed, errno);
        let (file, temp_file) = TempFile::create(dir.path(), dir.file_mode()).map_err(failed)?;
        rustix::fs::ftruncate(&file, geometry.words() as u64 * 8).map_err(failed)?;
        fail_point!("state.sized");
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, fixed)
            .map_err(failed)?;
        fail_point!("state.backed");
        let words = [
            (MAGIC_AT, MAGIC),
            (SEED_AT, random_u64()),
            (GEOMETRY_AT, geometry.packed()),
            (TAIL_AT, FIRST_REVISION),
        ];
        for (at, word) in words {
            files::write_all_at(&file, &word.to_le_bytes(), at as u64 * 8).map_err(failed)?;
        }
        fail_point!("state.made");
        let placed = temp_file
            .persist_new(&path)
            .map_err(|errno| io_error("cannot create", &path, errno))?;
        // A link to a region whose last holder has ended is in nobody's way.
        if !placed && matches!(files::open_read(&path), Err(Errno::NOENT)) {
            let _ = rustix::fs::unlink(&path);
        }
        Ok(())
    }

    fn map(path: PathBuf, fd: OwnedFd, locks: UnsharedFd) -> Result<(StateFile, u64), Error> {
        let len = Geometry::DOMAIN.words() * 8;
        let found = files::len_of(&fd).map_err(|errno| io_error("cannot inspect", &path, errno))?;
        if found != len as u64 {
            return Err(corrupt_error(&path, "it does not have the length of a state file"));
        }
        let map = Mapping::new(fd.as_fd(), 0, len, Access::Write, false)
            .map_err(|errno| io_error("cannot map", &path, errno))?;
        let file = StateFile { path, fd, map, locks, replaced: AtomicBool::new(false) };
        let word = |at: usize| file.words()[at].load(Ordering::Acquire);
        let magic = word(MAGIC_AT);
        if magic != MAGIC && magic << 8 == MAGIC << 8 {
            return Err(Error::LayoutVersion {
                path: file.path,
                found: (magic >> 56) as u32,
                ours: STATE_VERSION as u32,
            });
        }
        if magic != MAGIC || word(GEOMETRY_AT) != Geometry::DOMAIN.packed() {
            return Err(file.corrupt_error("it does not start with the header of a state file"));
        }
        let seed = word(SEED_AT);
        Ok((file, seed))
    }

    /// Locks the byte that stands for a process slot; `false` if another has it.
    pub(super) fn lock_process_slot(&self, process_slot: usize) -> bool {
        ofd::take(&self.locks, span_of(process_slot)) == Ok(true)
    }

    pub(super) fn unlock_process_slot(&self, process_slot: usize) {
        ofd::release(&self.locks, span_of(process_slot));
    }

    /// Whether another has locked the byte of a process slot: then the process slot's owner lives. Not to
    /// know is not to be dead.
    pub(super) fn process_slot_is_locked(&self, process_slot: usize) -> bool {
        !matches!(ofd::holder(&self.locks, span_of(process_slot)), Ok(None))
    }

    /// An error for a file that is not what it should be.
    pub(super) fn corrupt_error(&self, what: &str) -> Error {
        corrupt_error(&self.path, what)
    }

    /// All of the region.
    #[inline]
    pub(super) fn words(&self) -> &[AtomicU64] {
        self.map.slice(0, Geometry::DOMAIN.words())
    }

    /// The lower half of a word, on which the kernel can wait.
    pub(super) fn futex(&self, word: usize) -> &AtomicU32 {
        self.map.get(word * 8)
    }

    #[inline]
    pub(super) fn is_truncated(&self) -> bool {
        self.map.is_truncated() || self.replaced.load(Ordering::Relaxed)
    }

    /// Why the region is of no use, when it is truncated.
    pub(super) fn why_corrupt(&self) -> &'static str {
        match self.replaced.load(Ordering::Relaxed) {
            true => {
                "the domain's directory was removed and this node could not restore it; other nodes have \
                 started a new state there and do not see the state of this node; restart this node"
            }
            false => "the file was truncated; stop the nodes of this domain and remove the file",
        }
    }

    /// Sees to it that those who open the state by its name find this one.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn restore(&self) -> Result<FileStatus, Error> {
        match files::open_read(&self.path) {
            Ok(found) if files::are_same(&found, &self.fd) => Ok(FileStatus::InPlace),
            Ok(_) => {
                self.replaced.store(true, Ordering::Relaxed);
                Ok(FileStatus::Replaced)
            }
            Err(Errno::NOENT) => restore_link(&self.path, &self.fd)
                .map(|()| FileStatus::Restored)
                .map_err(|errno| io_error("cannot restore", &self.path, errno)),
            Err(errno) => Err(io_error("cannot open", &self.path, errno)),
        }
    }
}

/// Puts a link to the file where there is nothing, or a link that leads nowhere.
fn restore_link(path: &std::path::Path, fd: &OwnedFd) -> rustix::io::Result<()> {
    if unlinked_files::create_link(path, fd)?
        || !matches!(files::open_read(path), Err(Errno::NOENT))
    {
        return Ok(());
    }
    unlinked_files::replace_with_link(path, fd)
}

fn span_of(process_slot: usize) -> ofd::Span {
    (process_slot as i64, 1)
}

fn corrupt_error(path: &std::path::Path, what: &str) -> Error {
    Error::Corrupt {
        topic: "state".to_owned(),
        publisher_node: path.display().to_string(),
        what: format!("{what}; stop the nodes of this domain and remove the file"),
    }
}
