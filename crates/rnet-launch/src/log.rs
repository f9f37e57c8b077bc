//! The output of a node: a file of limited length, and older ones beside it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::node::LogLimits;

/// Writes a log. Lost bytes are counted, and reported in the log as soon as possible.
#[derive(Debug)]
pub struct NodeLog {
    path: PathBuf,
    limits: LogLimits,
    file: Option<File>,
    len_bytes: u64,
    lost_bytes: u64,
    why: Option<String>,
}

impl NodeLog {
    /// Continues the log at `path`.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path, limits: LogLimits) -> io::Result<NodeLog> {
        let (path, file) = (path.to_owned(), None);
        let mut log = NodeLog { path, limits, file, len_bytes: 0, lost_bytes: 0, why: None };
        log.reopen()?;
        Ok(log)
    }

    fn reopen(&mut self) -> io::Result<()> {
        let file = OpenOptions::new().append(true).create(true).open(&self.path)?;
        self.len_bytes = file.metadata()?.len();
        self.file = Some(file);
        Ok(())
    }

    /// Adds output. A line that arrives at once is not split between files.
    pub fn write(&mut self, bytes: &[u8]) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.lost_bytes > 0 {
                let (lost, why) = (self.lost_bytes, self.why.clone().unwrap_or_default());
                let notice = format!("[rnet launch] {lost} bytes of output were lost: {why}\n");
                if self.write_line(notice.as_bytes()).is_ok() {
                    self.lost_bytes = 0;
                }
            }
            if let Err(error) = self.write_line(line) {
                self.lost_bytes += line.len() as u64;
                self.why = Some(error.to_string());
            }
        }
    }

    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        if self.len_bytes > 0 && self.len_bytes + line.len() as u64 > self.limits.max_len_bytes {
            self.file = None;
            self.rotate()?;
        }
        if self.file.is_none() {
            self.reopen()?;
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let written = file.write_all(line);
        // A write may be partial.
        self.len_bytes = file.metadata()?.len();
        written
    }

    /// Renames each file to the next number; the oldest is removed.
    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..self.limits.files).rev() {
            let from = match number {
                1 => self.path.clone(),
                _ => rotated_path(&self.path, number - 1),
            };
            match std::fs::rename(&from, rotated_path(&self.path, number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if self.limits.files >= 2 {
            return Ok(());
        }
        match std::fs::remove_file(&self.path) {
            // The file was removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}

/// The path of an older log: `arm.log.2`.
pub fn rotated_path(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("rnet-log-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir(&dir).unwrap();
        dir
    }

    #[test]
    fn files_keep_their_length_and_number() {
        let dir = dir("rotate");
        let path = dir.join("arm.log");
        let limits = LogLimits { max_len_bytes: 20, files: 3 };
        let mut log = NodeLog::open(&path, limits).unwrap();
        for n in 0..10 {
            log.write(format!("line {n:03}\n").as_bytes());
        }
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!(read(&path), "line 008\nline 009\n");
        assert_eq!(read(&rotated_path(&path, 1)), "line 006\nline 007\n");
        assert_eq!(read(&rotated_path(&path, 2)), "line 004\nline 005\n");
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 3);
        // Another process continues where the first one stopped.
        drop(log);
        NodeLog::open(&path, limits).unwrap().write(b"on\n");
        assert_eq!(read(&path), "on\n");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn single_file_is_restarted() {
        let dir = dir("one");
        let path = dir.join("arm.log");
        let mut log = NodeLog::open(&path, LogLimits { max_len_bytes: 8, files: 1 }).unwrap();
        log.write(b"first\nsecond\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "second\n");
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
        // Removing the file does not end the log.
        std::fs::remove_file(&path).unwrap();
        log.write(b"third\nfourth\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "fourth\n");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn lost_output_is_reported() {
        let dir = dir("lost");
        let path = dir.join("sub").join("arm.log");
        std::fs::create_dir(dir.join("sub")).unwrap();
        let mut log = NodeLog::open(&path, LogLimits { max_len_bytes: 8, files: 2 }).unwrap();
        log.write(b"before\n");
        std::fs::remove_dir_all(dir.join("sub")).unwrap();
        log.write(b"lost line\n");
        std::fs::create_dir(dir.join("sub")).unwrap();
        log.write(b"after\n");
        let all = std::fs::read_to_string(rotated_path(&path, 1)).unwrap();
        assert!(all.contains("10 bytes of output were lost: No such file"), "{all}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "after\n");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
