//! The directory of the ring: whose it is, and what an earlier box has left there.

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

/// The directory, which is ours as long as this lives.
#[derive(Debug)]
pub struct Ring {
    dir: PathBuf,
    _lock: File,
}

impl Ring {
    /// Where the ring of a domain is: beside its directory, which is memory as a rule.
    pub fn path_of(domain: &Path) -> PathBuf {
        let name = domain.file_name().unwrap_or_default().to_string_lossy();
        domain.with_file_name(format!("blackbox-{name}"))
    }

    /// Takes the directory, and makes it if need be. `memory_bytes` is for who looks at it.
    ///
    /// # Errors
    /// Another box has it; it cannot be made.
    pub fn acquire(location: &Location, memory_bytes: u64) -> Result<Ring> {
        let dir = Self::path_of(location.path());
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
        made.map_err(|error| RecordError::file("create", &dir, error))?;
        // Anybody may make directories there: what is recorded is for nobody else to read or to lay out.
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
        // For people: what counts is the lock.
        let pid = std::process::id();
        let _ = lock.set_len(0).and_then(|()| writeln!(lock, "{pid} {memory_bytes}"));
        Ok(Ring { dir, _lock: lock })
    }

    /// The first file of a new recording, of a name that no other has: it says the boot, whose times are in it.
    pub fn file(&self) -> PathBuf {
        self.dir.join(format!("ring-{}-{}.mcap", rnet::now_ns(), boot_id()))
    }

    /// What an earlier box of this boot has left, the oldest first. The rest is removed: its times mean nothing any more.
    pub fn parts_of_this_boot(&self) -> Vec<RingPart> {
        // A directory on a disk outlives a boot, and a boot that was shorter has times that would fit.
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

    /// What an earlier box has left, the oldest first. What cannot be read at all is removed.
    pub fn remaining_parts(&self) -> Vec<RingPart> {
        let files = list_named(&self.dir, |name| name.ends_with(".mcap")).unwrap_or_default();
        let mut left: Vec<RingPart> = files
            .into_iter()
            .filter_map(|path| {
                let part = read_part(&path);
                if part.is_none() {
                    // It was cut off before it began.
                    let _ = std::fs::remove_file(&path);
                }
                part
            })
            .collect();
        left.sort_by_key(|part| (part.from_ns, part.to_ns));
        left
    }
}

/// Which boot of the machine this is, in names of files.
fn boot_id() -> String {
    format!("{:016x}", rnet::boot_id())
}

/// The memory of a domain's black box, as its ring shows it to who looks from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RingMemory {
    /// Where the ring is.
    pub ring: PathBuf,
    /// Bytes that the ring takes now.
    pub ring_bytes: u64,
    /// What the box takes at most, in bytes, the ring included; `None` if it does not say so.
    pub most_bytes: Option<u64>,
}

impl RingMemory {
    /// That of the domain in this directory; `None` if there is no ring. A box that has ended may have left one.
    pub fn of(domain: &Path) -> Option<RingMemory> {
        let ring = Ring::path_of(domain);
        let said = std::fs::read_to_string(ring.join("lock")).ok()?;
        let most_bytes = said.split_whitespace().nth(1).and_then(|bytes| bytes.parse().ok());
        let files = std::fs::read_dir(&ring).ok()?.flatten().filter_map(|f| f.metadata().ok());
        // Blocks: what is reserved ahead is taken too.
        let ring_bytes = files.map(|file| file.blocks() * 512).sum();
        Some(RingMemory { ring, ring_bytes, most_bytes })
    }
}

/// A file of the ring, with the times that it says itself.
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
