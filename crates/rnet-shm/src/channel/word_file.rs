//! A file of words that one process at a time writes, each with one store: what it has come to is there for the
//! next one, at whatever moment it is killed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rnet_core::Result;
use rnet_ring::layout::PAGE_LEN_BYTES;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::os::files::{self, io_error};
use crate::os::mapping::{Access, Mapping};

/// The file, mapped. Those words that are not [backed](WordFile::back) must not be touched: they have no memory.
#[derive(Debug)]
pub struct WordFile {
    path: PathBuf,
    map: Mapping,
}

impl WordFile {
    /// Opens the file, and makes it if it is not there, and says what its first `count` words are. Those that are
    /// not in the file are 0.
    ///
    /// # Errors
    /// `Io` if the file cannot be opened, made longer or mapped.
    pub fn open(path: &Path, count: usize) -> Result<(WordFile, Vec<u64>)> {
        let failed = |errno: Errno| io_error("cannot open", path, errno);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
        let len = 8 * count;
        if files::len_of(&file).map_err(failed)? < len as u64 {
            rustix::fs::ftruncate(&file, len as u64).map_err(failed)?;
        }
        // Not by way of the mapping, which would take memory for what has none.
        let mut bytes = vec![0; len];
        files::read_exact_at(&file, &mut bytes, 0).map_err(failed)?;
        let (words, _) = bytes.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let map = Mapping::new(rustix::fd::AsFd::as_fd(&file), 0, len, Access::Write, false)
            .map_err(failed)?;
        Ok((WordFile { path: path.to_owned(), map }, words))
    }

    /// Gives these words memory; `false` if there is none.
    pub fn back(&self, first: usize, count: usize) -> bool {
        let at = 8 * first / PAGE_LEN_BYTES * PAGE_LEN_BYTES;
        let end = (8 * (first + count)).next_multiple_of(PAGE_LEN_BYTES).min(self.map.len());
        self.map.back(&self.path, at, end - at).is_ok()
    }

    /// A word. It is written behind whatever this thread has written before, also for who reads it after a kill.
    #[inline]
    pub fn set(&self, at: usize, value: u64) {
        self.map.get::<AtomicU64>(8 * at).store(value, Ordering::Release);
    }
}

/// Where a publisher says how far it has come with messages of another host: see
/// [`Writer::set_checkpoint`](crate::channel::publisher::Writer::set_checkpoint).
#[derive(Clone, Debug)]
pub struct Checkpoint {
    words: Arc<WordFile>,
    at: usize,
}

impl Checkpoint {
    /// This word, which is backed.
    pub fn new(words: Arc<WordFile>, at: usize) -> Checkpoint {
        Checkpoint { words, at }
    }

    /// It has come to this number; `None` to none. The word is one more than the number.
    #[inline]
    pub fn set(&self, next_seq: Option<u64>) {
        self.words.set(self.at, next_seq.map_or(0, |next_seq| next_seq.saturating_add(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_there_for_the_next() {
        let dir = std::env::temp_dir().join(format!("rnet-words-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("words");
        // Shorter than a word, and longer than all of them.
        for before in [vec![0xff; 5], vec![0xff; 1 << 16]] {
            std::fs::write(&path, &before).unwrap();
            let (_, words) = WordFile::open(&path, 2000).unwrap();
            assert_eq!(words[0], if before.len() < 8 { 0xff_ffff_ffff } else { u64::MAX });
        }
        std::fs::remove_file(&path).unwrap();
        let (words, before) = WordFile::open(&path, 2000).unwrap();
        assert!(before.iter().all(|word| *word == 0) && before.len() == 2000);
        // On the border of two pages, and the last.
        for first in [510, 1997] {
            assert!(words.back(first, 3));
            (first..first + 3).for_each(|at| words.set(at, at as u64));
        }
        let (_, after) = WordFile::open(&path, 2000).unwrap();
        let told: Vec<u64> = after.into_iter().filter(|word| *word > 0).collect();
        assert_eq!(told, [510, 511, 512, 1997, 1998, 1999]);
        // Cut off under the mapping: nobody is told, and nobody is ended.
        std::fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        words.set(510, 7);
        assert_eq!(WordFile::open(&path, 2000).unwrap().1, [0; 2000]);
        // What is no file.
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        let error = WordFile::open(&path, 1).unwrap_err().to_string();
        assert!(error.contains("cannot open") && error.contains("words"), "{error}");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
