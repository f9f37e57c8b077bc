//! The private directory in which a bench runs.
//!
//! Its domains stand in a directory of its own beside those of the robots, so that no node of
//! the bench meets one of theirs and nothing is left when it is gone. Whoever is last removes it: the
//! command, or when that was killed, the workers (see [`super::worker`]). When it was killed while it
//! had none, the next bench does: a place is in use for as long as its directory is locked, which
//! the kernel undoes when the command ends, however it ends.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use rnet_format::{CommandError, Outcome};

/// Directory names that are tried before giving up; each one taken is a bench of the same process
/// id in another container.
const MAX_TRIES: u32 = 100;

/// How the name of each place begins. Not as that of a domain's directory, which `rnet doctor` would
/// look into.
const PREFIX: &str = "robot-net-bench-";

/// A directory of this bench alone; removed on drop.
#[derive(Debug)]
pub struct BenchDir {
    path: PathBuf,
    /// The directory, locked. Closed after the removal.
    _lock: File,
}

impl BenchDir {
    /// A new one in `base`, where domains stand. Removes what benches that were killed have left there.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn new(base: &Path) -> Outcome<BenchDir> {
        remove_abandoned(base);
        let pid = std::process::id();
        for n in 0..MAX_TRIES {
            let path = base.join(format!("{PREFIX}{pid}-{n}"));
            let made = DirBuilder::new().mode(0o700).create(&path);
            match made.and_then(|()| lock_dir(&path).inspect_err(|_| remove(&path))) {
                Ok(Some(lock)) => return Ok(BenchDir { path, _lock: lock }),
                // Another bench took it for left over, as it was not held yet.
                Ok(None) => {}
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => {
                    return Err(CommandError::Failed(format!(
                        "cannot create {}: {e}; set a writable tmpfs directory with --dir or RNET_DIR",
                        path.display()
                    )));
                }
            }
        }
        let base = base.display();
        Err(CommandError::Failed(format!(
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

/// Whether this is the name of a place, and thus may be removed with all that is in it.
pub fn is_bench_dir(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()))
}

/// Locks a place until the file is closed; `None` if another holds it or it is gone.
fn lock_dir(path: &Path) -> io::Result<Option<File>> {
    let look = || {
        let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits() as i32;
        let lock = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(e),
        }
        // It may have been removed, and its name taken again, before it was locked.
        let (locked, there) = (lock.metadata()?, fs::symlink_metadata(path)?);
        let same = (locked.dev(), locked.ino()) == (there.dev(), there.ino());
        Ok(same.then_some(lock))
    };
    match look() {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        lock => lock,
    }
}

/// Removes this user's places in `base` that nobody holds.
fn remove_abandoned(base: &Path) {
    let own = rustix::process::geteuid().as_raw();
    // Where that cannot be read, no place can be made either, and that is told.
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let path = entry.path();
        // Of a symbolic link this is the link's own kind.
        let is_own = entry.metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == own);
        if is_own
            && is_bench_dir(&path)
            && let Ok(Some(_lock)) = lock_dir(&path)
        {
            remove(&path);
        }
    }
}

/// Removes a place with all that is in it. Others may do so at the same time.
pub fn remove(path: &Path) {
    // What a worker that is being killed still creates in between is caught the next time.
    for _ in 0..3 {
        if fs::remove_dir_all(path).is_ok() || !path.exists() {
            return;
        }
    }
}

/// Bytes of memory that the files in a directory and below it take.
pub fn used_bytes(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    // A file may go while we look; it then takes nothing.
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
        let Err(CommandError::Failed(text)) = BenchDir::new(Path::new("/proc/none")) else {
            panic!("there is no such directory")
        };
        assert!(text.contains("/proc/none") && text.contains("--dir"), "{text}");
    }
}
