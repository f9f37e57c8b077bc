//! Files that are there whole, or not at all.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// A new file, which is written beside its place under the name `.rnet-PID-TIME.part` and gets its own when it is
/// complete. Dropped before that, it is removed; of a process that is killed the `.part` stays.
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
    /// Something is there already, or no file can be made there.
    pub fn create(path: &Path) -> io::Result<NewFile> {
        // Known before the work begins, and looked at once more at its end.
        if path.symlink_metadata().is_ok() {
            return Err(Errno::EXIST.into());
        }
        let draft = format!(".rnet-{}-{}.part", std::process::id(), rnet::now_ns());
        let draft = path.with_file_name(draft);
        let file = File::create_new(&draft)?;
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
    pub fn put(self) -> io::Result<()> {
        self.file.sync_all()?;
        match renameat_with(CWD, &self.draft, CWD, &self.path, RenameFlags::NOREPLACE) {
            // Of a file system that cannot look and rename at once.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
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
        first.put().unwrap();
        let late = second.put().unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!((fs::read(&path).unwrap(), names()), (b"whole".to_vec(), 1));
        assert!(NewFile::create(&path).unwrap_err().to_string().contains("File exists"));
        fs::remove_dir_all(&dir).unwrap();
    }
}
