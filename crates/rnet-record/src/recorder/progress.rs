//! How a recording is going: what its threads tell whoever asks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::loss::{LossCounts, UnheardCounts};

/// Notes that are kept until somebody takes them.
const MAX_NOTES: usize = 1000;

/// How far a recording is.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Publishers that are followed.
    pub publishers: usize,
    /// Publishers that were followed since it began, those of now among them.
    pub followed: u64,
    /// Publishers that were seen and not heard, or not to their end.
    pub unheard: UnheardCounts,
    /// Messages that were recorded.
    pub messages: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Bytes that wait to be written.
    pub queued_bytes: u64,
    /// The file that is written; `None` while there is none.
    pub path: Option<PathBuf>,
    /// Files that were ended, the oldest first, those that `max_disk` has removed not among them.
    pub ended: Vec<PathBuf>,
    /// The same files, with their times.
    pub(crate) parts: Vec<RingPart>,
    /// Bytes of all files that are there.
    pub file_bytes: u64,
    /// Bytes that are free where the file is; `None` until that was looked at.
    pub free_bytes: Option<u64>,
    /// Files that `max_disk` has removed.
    pub removed: u64,
    /// Files that others removed while they were written; their messages are missing.
    pub gone: Vec<PathBuf>,
    /// Messages that are missing.
    pub losses: LossCounts,
    /// Values of keys of the state that are not recorded, since others were written over them too fast. The newest of each
    /// key is. Where nobody knows how many they are, they count as one.
    pub skipped_values: u64,
    /// Nothing is written because the disk is full.
    pub disk_is_full: bool,
    /// What keeps it from writing now beside a full disk, in words, by what cannot be written.
    pub problems: BTreeMap<&'static str, String>,
    /// Nothing is recorded because the topic of `while_topic` has no publisher.
    pub is_waiting: bool,
    /// Of a recording that has ended: what happened since the last [`Recorder::take_notes`](crate::Recorder::take_notes).
    pub notes: Vec<String>,
}

/// A part that was ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RingPart {
    pub path: PathBuf,
    pub len_bytes: u64,
    /// When it was begun and ended, CLOCK_MONOTONIC.
    pub from_ns: u64,
    pub to_ns: u64,
}

/// What the threads of a recorder share.
#[derive(Debug, Default)]
pub struct Shared {
    stop: AtomicBool,
    progress: Mutex<Progress>,
    notes: Mutex<Vec<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub fn progress(&self) -> MutexGuard<'_, Progress> {
        lock(&self.progress)
    }

    /// What keeps this from being written, or that nothing does.
    pub fn set_problem(&self, of: &'static str, why: Option<String>) {
        let mut progress = self.progress();
        match why {
            Some(why) => drop(progress.problems.insert(of, why)),
            None => drop(progress.problems.remove(of)),
        }
    }

    /// Whether that is new.
    pub fn set_gate_open(&self, is_gate_open: bool) -> bool {
        std::mem::replace(&mut self.progress().is_waiting, !is_gate_open) == is_gate_open
    }

    /// Something to tell people; nothing twice in a row.
    pub fn note(&self, note: String) {
        let mut notes = lock(&self.notes);
        if notes.last() != Some(&note) && notes.len() < MAX_NOTES {
            notes.push(note);
        }
    }

    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.notes))
    }
}
