//! Progress of a recording, which its threads share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::loss::{LossCounts, UnheardCounts};

/// Maximum number of queued notes.
const MAX_NOTES: usize = 1000;

/// Progress of a recording.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Publishers followed now.
    pub publishers: usize,
    /// Publishers followed since the start, including the current ones.
    pub followed: u64,
    /// Publishers that were seen but not read, or not to their end.
    pub unheard: UnheardCounts,
    /// Messages recorded.
    pub messages: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Bytes in the queue.
    pub queued_bytes: u64,
    /// The file being written; `None` without one.
    pub path: Option<PathBuf>,
    /// Completed files, the oldest first, without those that `max_disk` has removed.
    pub ended: Vec<PathBuf>,
    /// The same files with their times.
    pub(crate) parts: Vec<RingPart>,
    /// Bytes of all existing files.
    pub file_bytes: u64,
    /// Free space on the disk in bytes; `None` before it was checked.
    pub free_bytes: Option<u64>,
    /// Files removed because of `max_disk`.
    pub removed: u64,
    /// Files that were removed by others while they were written; their messages are missing.
    pub gone: Vec<PathBuf>,
    /// Missing messages.
    pub losses: LossCounts,
    /// Values of state keys that were overwritten before they were recorded. The newest value of each key is
    /// recorded. If their number is unknown, they count as one.
    pub skipped_values: u64,
    /// Nothing is written because the disk is full.
    pub disk_is_full: bool,
    /// Other problems that prevent writing now, keyed by what cannot be written.
    pub problems: BTreeMap<&'static str, String>,
    /// Nothing is recorded because the topic of `while_topic` has no publisher.
    pub is_waiting: bool,
    /// After the end: the notes since the last [`Recorder::take_notes`](crate::Recorder::take_notes).
    pub notes: Vec<String>,
}

/// A completed part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RingPart {
    pub path: PathBuf,
    pub len_bytes: u64,
    /// Its start and end, CLOCK_MONOTONIC.
    pub from_ns: u64,
    pub to_ns: u64,
}

/// State that the threads of a recorder share.
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

    /// Sets or clears the problem that prevents `of` from being written.
    pub fn set_problem(&self, of: &'static str, why: Option<String>) {
        let mut progress = self.progress();
        match why {
            Some(why) => drop(progress.problems.insert(of, why)),
            None => drop(progress.problems.remove(of)),
        }
    }

    /// Sets the gate; returns whether it changed.
    pub fn set_gate_open(&self, is_gate_open: bool) -> bool {
        std::mem::replace(&mut self.progress().is_waiting, !is_gate_open) == is_gate_open
    }

    /// Adds a note for the user, unless it equals the last one.
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
