//! The directory of the ring: whose it is, and what an earlier box has left there.

use std::fs::{DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rnet::inspect::Location;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

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
    pub fn path_of(location: &Location) -> PathBuf {
        let name = location.path().file_name().unwrap_or_default().to_string_lossy();
        location.path().with_file_name(format!("blackbox-{name}"))
    }

    /// Takes the directory, and makes it if need be.
    ///
    /// # Errors
    /// Another box has it; it cannot be made.
    pub fn take(location: &Location) -> Result<Ring> {
        let dir = Self::path_of(location);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
        made.map_err(|error| RecordError::file("create", &dir, error))?;
        let path = dir.join("lock");
        let open = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let mut lock = open.map_err(|error| RecordError::file("open", &path, error))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let pid = std::fs::read_to_string(&path).unwrap_or_default();
                return Err(RecordError::Options(format!(
                    "a black box of the domain {} runs already (process {}); a domain has one",
                    location.id(),
                    pid.trim(),
                )));
            }
            Err(errno) => return Err(RecordError::file("lock", &path, errno)),
        }
        // For people: what counts is the lock.
        let _ = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
        Ok(Ring { dir, _lock: lock })
    }

    /// The first file of a new recording, of a name that no other has.
    pub fn file(&self) -> PathBuf {
        self.dir.join(format!("ring-{}.mcap", rnet::now_ns()))
    }

    /// What an earlier box has left, the oldest first. What cannot be read at all is removed.
    pub fn left(&self) -> Vec<RingPart> {
        let files = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let files =
            files.map(|file| file.path()).filter(|path| path.extension() == Some("mcap".as_ref()));
        let mut left: Vec<RingPart> = files
            .filter_map(|path| {
                let part = part(&path);
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

/// A file of the ring, with the times that it says itself.
fn part(path: &Path) -> Option<RingPart> {
    let recording = Recording::open(path).ok()?;
    let said = |of: &str, key: &str| recording.metadata(of)?.get(key)?.parse::<i64>().ok();
    let offset_ns = said(names::CLOCK, "offset_ns")?;
    let from_ns = said(names::RECORDING, "start_ns")?.checked_sub(offset_ns)?;
    let from_ns = u64::try_from(from_ns).ok()?;
    let last_ns = recording.found().times.and_then(|(_, last)| last.checked_add_signed(-offset_ns));
    let (path, len_bytes) = (path.to_owned(), recording.len_bytes());
    Some(RingPart { path, len_bytes, from_ns, to_ns: last_ns.unwrap_or(0).max(from_ns) })
}
