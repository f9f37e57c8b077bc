//! The directory of the ring: its owner, and the parts that an earlier box left.

use std::fs::{DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rnet::inspect::Location;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::Serialize;

use super::folder::list_named;
use crate::error::{RecordError, Result};
use crate::names;
use crate::read::Recording;
use crate::recorder::RingPart;

/// The directory, locked while this value lives.
#[derive(Debug)]
pub struct Ring {
    dir: PathBuf,
    _lock: File,
}

impl Ring {
    /// Path of the ring of a domain: next to the domain's directory, which is usually in memory.
    pub fn path_of(domain: &Path) -> PathBuf {
        let name = domain.file_name().unwrap_or_default().to_string_lossy();
        domain.with_file_name(format!("blackbox-{name}"))
    }

    /// Locks the directory, and creates it if needed. `memory_bytes` is stored for inspection tools.
    ///
    /// # Errors
    /// Another box holds the lock; the directory cannot be created.
    pub fn acquire(location: &Location, memory_bytes: u64) -> Result<Ring> {
        let dir = Self::path_of(location.path());
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
        made.map_err(|error| RecordError::file("create", &dir, error))?;
        // Any user may create directories here, and recordings must not be readable or writable for other
        // users.
        let there = std::fs::symlink_metadata(&dir);
        let there = there.map_err(|error| RecordError::file("inspect", &dir, error))?;
        if !there.is_dir() || there.uid() != rustix::process::geteuid().as_raw() {
            let what =
                format!("{} is not a directory owned by this user; remove it", dir.display());
            return Err(RecordError::Options(what));
        }
        let path = dir.join("lock");
        let open = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let mut lock = open.map_err(|error| RecordError::file("open", &path, error))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let said = std::fs::read_to_string(&path).unwrap_or_default();
                let pid = said.split(' ').next().unwrap_or_default();
                return Err(RecordError::Options(format!(
                    "a black box already runs in domain {} (process {}); a domain can have only one",
                    location.id(),
                    pid.trim(),
                )));
            }
            Err(errno) => return Err(RecordError::file("lock", &path, errno)),
        }
        // For people only: the lock decides.
        let pid = std::process::id();
        let _ = lock.set_len(0).and_then(|()| writeln!(lock, "{pid} {memory_bytes}"));
        Ok(Ring { dir, _lock: lock })
    }

    /// A unique file name for a new recording. The name contains the boot id, because the times in the file
    /// are relative to the boot.
    pub fn file(&self) -> PathBuf {
        self.dir.join(format!("ring-{}-{}.mcap", rnet::now_ns(), boot_id()))
    }

    /// The parts that an earlier box of this boot left, the oldest first. Removes the others: their times are
    /// invalid.
    pub fn parts_of_this_boot(&self) -> Vec<RingPart> {
        // A directory on a disk outlives a boot, and the times of a shorter boot could match by chance.
        let (now_ns, boot_id) = (rnet::now_ns(), boot_id());
        let is_of_this = |part: &RingPart| {
            let name = part.path.file_name().unwrap_or_default().to_string_lossy();
            part.to_ns <= now_ns && name.contains(&boot_id)
        };
        let (left, other): (Vec<RingPart>, Vec<RingPart>) =
            self.remaining_parts().into_iter().partition(is_of_this);
        for part in other {
            let _ = std::fs::remove_file(part.path);
        }
        left
    }

    /// The parts that an earlier box left, the oldest first. Removes unreadable parts.
    pub fn remaining_parts(&self) -> Vec<RingPart> {
        let files = list_named(&self.dir, |name| name.ends_with(".mcap")).unwrap_or_default();
        let mut left: Vec<RingPart> = files
            .into_iter()
            .filter_map(|path| {
                let part = read_part(&path);
                if part.is_none() {
                    // The part was cut off before its first record.
                    let _ = std::fs::remove_file(&path);
                }
                part
            })
            .collect();
        left.sort_by_key(|part| (part.from_ns, part.to_ns));
        left
    }
}

/// Id of the machine's current boot, for file names.
fn boot_id() -> String {
    format!("{:016x}", rnet::boot_id())
}

/// The memory of a domain's black box, as its ring shows it to inspection tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RingMemory {
    /// Path of the ring.
    pub ring: PathBuf,
    /// Current size of the ring in bytes.
    pub ring_bytes: u64,
    /// Maximum memory of the box in bytes, including the ring; `None` if the box has not stored it.
    pub most_bytes: Option<u64>,
}

impl RingMemory {
    /// Reads the memory of the domain in this directory; `None` without a ring. A box that has exited may
    /// have left one.
    pub fn of(domain: &Path) -> Option<RingMemory> {
        let ring = Ring::path_of(domain);
        let said = std::fs::read_to_string(ring.join("lock")).ok()?;
        let most_bytes = said.split_whitespace().nth(1).and_then(|bytes| bytes.parse().ok());
        let files = std::fs::read_dir(&ring).ok()?.flatten().filter_map(|f| f.metadata().ok());
        // Counts blocks, because space that is reserved ahead is used too.
        let ring_bytes = files.map(|file| file.blocks() * 512).sum();
        Some(RingMemory { ring, ring_bytes, most_bytes })
    }
}

/// A file of the ring, with the times that it contains.
pub(super) fn read_part(path: &Path) -> Option<RingPart> {
    let recording = Recording::open(path).ok()?;
    let said = |of: &str, key: &str| recording.metadata(of)?.get(key)?.parse::<i64>().ok();
    let offset_ns = said(names::CLOCK, "offset_ns")?;
    let from_ns = said(names::RECORDING, "start_ns")?.checked_sub(offset_ns)?;
    let from_ns = u64::try_from(from_ns).ok()?;
    let last_ns = recording.info().times.and_then(|(_, last)| last.checked_add_signed(-offset_ns));
    let (path, len_bytes) = (path.to_owned(), recording.len_bytes());
    Some(RingPart { path, len_bytes, from_ns, to_ns: last_ns.unwrap_or(0).max(from_ns) })
}
