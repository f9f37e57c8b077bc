//! Files that are there whole, or not at all.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// A new file, which is written beside its place under the name `.rnet-PID-TIME.part` and gets its own when it is
/// complete. Dropped before that, it is removed; that of a process that was killed is removed by the next one that is
/// made beside it.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    draft: PathBuf,
    file: File,
}

impl NewFile {
    /// A file to be written, that is to be at `path`, where nothing may be.
    ///
    /// # Errors
    /// Something is there already, no file can be made there, or the path is none of a file.
    pub fn create(path: &Path) -> io::Result<NewFile> {
        // Known before the work begins, and looked at once more at its end.
        match path.symlink_metadata() {
            Ok(_) => return Err(Errno::EXIST.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // A name that is too long, say.
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
        // Says to `remove_stale` of other hosts and containers that it is being written. Not all file systems have locks.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        Ok(NewFile { path: path.to_owned(), draft, file })
    }

    /// The file as it is now, to write to.
    ///
    /// # Errors
    /// There is no file descriptor for it.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Puts it in its place, when the disk has it. All that was written has to be flushed.
    ///
    /// # Errors
    /// Something is there by now; the disk does not take it. It is removed then.
    pub fn commit(self) -> io::Result<()> {
        self.file.sync_all()?;
        match renameat_with(CWD, &self.draft, CWD, &self.path, RenameFlags::NOREPLACE) {
            // Not every file system knows that; a link is as exclusive, and the draft goes with this.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => self.link(),
            done => done.map_err(io::Error::from),
        }
    }

    fn link(&self) -> io::Result<()> {
        match rustix::fs::link(&self.draft, &self.path) {
            // One without links: whatever gets the name in between is written over.
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
        // In its place it has this name no more.
        let _ = fs::remove_file(&self.draft);
    }
}

/// Removes what killed processes have left beside a path: it is not what was asked for, so nothing fails with it.
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

/// Whose `.rnet-PID-TIME.part` it is.
fn owner(name: &str) -> Option<Pid> {
    let (pid, time) = name.strip_prefix(".rnet-")?.strip_suffix(".part")?.split_once('-')?;
    time.parse::<u64>().ok()?;
    Pid::from_raw(pid.parse().ok()?)
}

fn is_dead(pid: Pid) -> bool {
    test_kill_process(pid) == Err(Errno::SRCH)
}

/// The process may be one of another host, or of a container, that has the same folder.
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
    fn a_file_is_there_whole_or_not_at_all_and_writes_over_nothing() {
        let dir = std::env::temp_dir().join(format!("rnet-new-file-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let path = dir.join("a.csv");
        let names = || dir.read_dir().unwrap().count();
        let half = NewFile::create(&path).unwrap();
        half.file().unwrap().write_all(b"half").unwrap();
        assert_eq!((path.exists(), names()), (false, 1));
        drop(half);
        assert_eq!(names(), 0);
        // Of two at the same time one comes first.
        let (first, second) = (NewFile::create(&path).unwrap(), NewFile::create(&path).unwrap());
        first.file().unwrap().write_all(b"whole").unwrap();
        first.commit().unwrap();
        let late = second.commit().unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!((fs::read(&path).unwrap(), names()), (b"whole".to_vec(), 1));
        assert!(NewFile::create(&path).unwrap_err().to_string().contains("File exists"));
        // Where nothing but a link says that a name is taken.
        let linked = NewFile::create(&dir.join("b.csv")).unwrap();
        linked.link().unwrap();
        assert_eq!(linked.link().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        drop(linked);
        assert!(dir.join("b.csv").exists() && names() == 2);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_killed_processes_have_left_is_removed_and_nothing_else() {
        let dir = std::env::temp_dir().join(format!("rnet-sweep-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let dead = child.id();
        let left = |name: String| File::create_new(dir.join(name)).unwrap();
        left(format!(".rnet-{dead}-1.part"));
        // One of another host with the same number, which is at work.
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
    fn a_path_that_is_none_of_a_file_is_refused_before_the_work_begins() {
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
