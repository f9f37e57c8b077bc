//! Creates files atomically.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// A new file, which is written next to its destination under the name `.rnet-PID-TIME.part`, and renamed
/// when it is complete. Dropping it earlier removes it. The file of a killed process is removed when the next
/// one is created in the same folder.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    draft: PathBuf,
    file: File,
}

impl NewFile {
    /// Begins a file for `path`, which must not exist.
    ///
    /// # Errors
    /// The path exists or is not a valid file path, or no file can be created there.
    pub fn create(path: &Path) -> io::Result<NewFile> {
        // Checked before the work begins, and again at its end.
        match path.symlink_metadata() {
            Ok(_) => return Err(Errno::EXIST.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // For example, the name is too long.
            Err(error) => return Err(error),
        }
        if path.file_name().is_none() || path.as_os_str().as_bytes().ends_with(b"/") {
            let wrong = "a name that ends in / is a folder; specify the name of a file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, wrong));
        }
        remove_stale(path);
        let draft = format!(".rnet-{}-{}.part", std::process::id(), rnet::now_ns());
        let draft = path.with_file_name(draft);
        let file = File::create_new(&draft)?;
        // The lock protects it from `remove_stale` of other hosts and containers. Not all file systems have
        // locks.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        Ok(NewFile { path: path.to_owned(), draft, file })
    }

    /// A handle for writing the file.
    ///
    /// # Errors
    /// The file descriptor cannot be duplicated.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Syncs the file and renames it to its path. All writes must be flushed before.
    ///
    /// # Errors
    /// The path exists by now; the sync failed. The file is then removed.
    pub fn commit(self) -> io::Result<()> {
        self.file.sync_all()?;
        match renameat_with(CWD, &self.draft, CWD, &self.path, RenameFlags::NOREPLACE) {
            // Not every file system supports this rename. A link is exclusive too, and dropping this removes
            // the draft.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => self.link(),
            done => done.map_err(io::Error::from),
        }
    }

    fn link(&self) -> io::Result<()> {
        match rustix::fs::link(&self.draft, &self.path) {
            // The file system has no links: a file created in between is overwritten.
            Err(Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP) => {
                if self.path.symlink_metadata().is_ok() {
                    return Err(Errno::EXIST.into());
                }
                fs::rename(&self.draft, &self.path)
            }
            done => done.map_err(io::Error::from),
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After the rename, this name no longer exists.
        let _ = fs::remove_file(&self.draft);
    }
}

/// Removes files that killed processes left in the same folder. Ignores errors, because the caller did not
/// request it.
fn remove_stale(beside: &Path) {
    let folder = match beside.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_str().and_then(owner).is_some_and(is_dead) && is_unlocked(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The process id in a name `.rnet-PID-TIME.part`.
fn owner(name: &str) -> Option<Pid> {
    let (pid, time) = name.strip_prefix(".rnet-")?.strip_suffix(".part")?.split_once('-')?;
    time.parse::<u64>().ok()?;
    Pid::from_raw(pid.parse().ok()?)
}

fn is_dead(pid: Pid) -> bool {
    test_kill_process(pid) == Err(Errno::SRCH)
}

/// The process may run on another host or in a container that shares the folder.
fn is_unlocked(path: &Path) -> bool {
    let is_file = path.symlink_metadata().is_ok_and(|file| file.is_file());
    let file = is_file.then(|| File::open(path).ok()).flatten();
    file.is_some_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn creates_file_atomically_without_overwriting() {
        let dir = std::env::temp_dir().join(format!("rnet-new-file-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let path = dir.join("a.csv");
        let names = || dir.read_dir().unwrap().count();
        let half = NewFile::create(&path).unwrap();
        half.file().unwrap().write_all(b"half").unwrap();
        assert_eq!((path.exists(), names()), (false, 1));
        drop(half);
        assert_eq!(names(), 0);
        // Of two writers the first to finish wins.
        let (first, second) = (NewFile::create(&path).unwrap(), NewFile::create(&path).unwrap());
        first.file().unwrap().write_all(b"whole").unwrap();
        first.commit().unwrap();
        let late = second.commit().unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!((fs::read(&path).unwrap(), names()), (b"whole".to_vec(), 1));
        assert!(NewFile::create(&path).unwrap_err().to_string().contains("File exists"));
        // On a file system where only a link is exclusive.
        let linked = NewFile::create(&dir.join("b.csv")).unwrap();
        linked.link().unwrap();
        assert_eq!(linked.link().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        drop(linked);
        assert!(dir.join("b.csv").exists() && names() == 2);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn removes_only_files_of_killed_processes() {
        let dir = std::env::temp_dir().join(format!("rnet-sweep-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let dead = child.id();
        let left = |name: String| File::create_new(dir.join(name)).unwrap();
        left(format!(".rnet-{dead}-1.part"));
        // A file of another host with the same process number, which is still being written.
        let locked = left(format!(".rnet-{dead}-2.part"));
        flock(&locked, FlockOperation::NonBlockingLockExclusive).unwrap();
        let others = [".rnet-1-1.part", ".rnet-x-1.part", "a.part"].map(str::to_owned);
        others.iter().for_each(|name| drop(left(name.clone())));
        drop(NewFile::create(&dir.join("a.csv")).unwrap());
        let names = dir.read_dir().unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        let mut expected = vec![format!(".rnet-{dead}-2.part")];
        expected.extend(others);
        expected.sort();
        assert_eq!(names, expected);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn rejects_invalid_path_before_writing() {
        let dir = std::env::temp_dir().join(format!("rnet-no-file-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        for (name, words) in [("a.csv/", "name of a file"), (&"a".repeat(256), "too long")] {
            let error = NewFile::create(&dir.join(name)).unwrap_err().to_string();
            assert!(error.contains(words), "{name}: {error}");
        }
        assert!(NewFile::create(Path::new("")).is_err());
        assert_eq!(dir.read_dir().unwrap().count(), 0);
        fs::remove_dir_all(&dir).unwrap();
    }
}
