//! The private directory of a benchmark.
//!
//! Its domains are in a private directory next to those of the robots, so that no node of the benchmark meets
//! a node of a robot. The last process removes the directory: the command, or, if the command was killed, the
//! workers (see [`super::worker`]). If the command was killed while it had no workers, the next benchmark
//! removes it: a directory is in use while it is locked, and the kernel releases the lock when the command
//! exits for any reason.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use rnet_format::{Failure, Outcome};

/// Maximum number of directory names to try; each one taken belongs to a benchmark of the same process id in
/// another container.
const MAX_TRIES: u32 = 100;

/// Prefix of each directory name. It differs from that of a domain's directory, which `rnet doctor` would
/// inspect.
const PREFIX: &str = "robot-net-bench-";

/// The private directory of this benchmark; removed on drop.
#[derive(Debug)]
pub struct BenchDir {
    path: PathBuf,
    /// The directory, locked. Closed after the removal.
    _lock: File,
}

impl BenchDir {
    /// Creates a directory in `base`, which holds the domains. Removes the directories of killed benchmarks
    /// there.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn new(base: &Path) -> Outcome<BenchDir> {
        remove_abandoned(base);
        let pid = std::process::id();
        for n in 0..MAX_TRIES {
            let path = base.join(format!("{PREFIX}{pid}-{n}"));
            let made = DirBuilder::new().mode(0o700).create(&path);
            match made.and_then(|()| lock_dir(&path).inspect_err(|_| remove(&path))) {
                Ok(Some(lock)) => return Ok(BenchDir { path, _lock: lock }),
                // Another benchmark removed it as abandoned, because it was not locked yet.
                Ok(None) => {}
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => {
                    return Err(Failure::Failed(format!(
                        "cannot create {}: {e}; set a writable tmpfs directory with --dir or RNET_DIR",
                        path.display()
                    )));
                }
            }
        }
        let base = base.display();
        Err(Failure::Failed(format!(
            "{base} has too many directories {PREFIX}{pid}-…; remove those that no benchmark uses"
        )))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for BenchDir {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Whether this is the name of a benchmark's directory, which may thus be removed recursively.
pub fn is_bench_dir(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()))
}

/// Locks a directory until the file is closed; `None` if another process holds it or it no longer exists.
fn lock_dir(path: &Path) -> io::Result<Option<File>> {
    let open = || {
        let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits() as i32;
        let lock = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(e),
        }
        // It may have been removed and created again before it was locked.
        let (locked, there) = (lock.metadata()?, fs::symlink_metadata(path)?);
        let same = (locked.dev(), locked.ino()) == (there.dev(), there.ino());
        Ok(same.then_some(lock))
    };
    match open() {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        lock => lock,
    }
}

/// Removes this user's directories in `base` that no process holds.
fn remove_abandoned(base: &Path) {
    let own = rustix::process::geteuid().as_raw();
    // If `base` cannot be read, no directory can be created there either, and that error is reported.
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let path = entry.path();
        // For a symbolic link, this is the type of the link itself.
        let is_own = entry.metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == own);
        if is_own
            && is_bench_dir(&path)
            && let Ok(Some(_lock)) = lock_dir(&path)
        {
            remove(&path);
        }
    }
}

/// Removes a directory recursively. Other processes may do so at the same time.
pub fn remove(path: &Path) {
    // Files that a dying worker still creates in between are removed in the next round.
    for _ in 0..3 {
        if fs::remove_dir_all(path).is_ok() || !path.exists() {
            return;
        }
    }
}

/// Memory used by the files in a directory, recursively, in bytes.
pub fn used_bytes(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    // A file may be removed meanwhile; it then counts as 0.
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => used_bytes(&entry.path()),
        Ok(meta) => meta.blocks() * 512,
        Err(_) => 0,
    };
    entries.flatten().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bench_dirs_are_separate_and_removed() {
        let base = std::env::temp_dir();
        let (a, b) = (BenchDir::new(&base).unwrap(), BenchDir::new(&base).unwrap());
        assert_ne!(a.path(), b.path());
        fs::create_dir(a.path().join("sub")).unwrap();
        fs::write(a.path().join("sub/file"), [0; 5000]).unwrap();
        assert!(used_bytes(a.path()) >= 5000);
        let path = a.path().to_owned();
        drop(a);
        assert!(!path.exists() && b.path().exists());
    }

    #[test]
    fn a_bench_dir_is_recognized_by_its_name() {
        for (path, is) in [
            ("/dev/shm/robot-net-bench-7-0", true),
            ("/dev/shm/robot-net-bench-7-0/", true),
            ("/dev/shm/robot-net-lab", false),
            ("/dev/shm/robot-net-bench-7-0/..", false),
            ("/", false),
            ("", false),
        ] {
            assert_eq!(is_bench_dir(Path::new(path)), is, "{path}");
        }
    }

    #[test]
    fn a_bench_dir_that_cannot_be_created_is_reported() {
        let Err(Failure::Failed(text)) = BenchDir::new(Path::new("/proc/none")) else {
            panic!("there is no such directory")
        };
        assert!(text.contains("/proc/none") && text.contains("--dir"), "{text}");
    }
}
