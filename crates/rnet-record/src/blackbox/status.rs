//! The status of a black box.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::trigger_queue::FiredTrigger;

/// Status of a black box. Counters begin with its start.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct BlackBoxStatus {
    /// Its domain.
    pub domain: String,
    /// Path of the ring.
    pub ring: PathBuf,
    /// Size of the ring in bytes.
    pub ring_bytes: u64,
    /// Maximum memory of the box in bytes.
    pub memory_bytes: u64,
    /// Time that the ring covers now, in s.
    pub kept_s: f64,
    /// Messages recorded.
    pub messages: u64,
    /// Messages missed, because the box was too slow.
    pub missing: u64,
    /// Publishers that the box has seen but not read, or not read to their end.
    pub unheard: u64,
    /// Why the ring covers less time than a file needs before its trigger, if so.
    pub shorter: Option<String>,
    /// Triggers fired.
    pub fired: u64,
    /// Triggers that made no file: their cause already had one, or the limit per minute was reached.
    pub merged: u64,
    /// The last trigger.
    pub last: Option<FiredTrigger>,
    /// The pending file.
    pub pending: Option<String>,
    /// Files written.
    pub files: u64,
    /// The last file written.
    pub last_file: Option<PathBuf>,
    /// The folder of the files.
    pub folder: PathBuf,
    /// The triggers.
    pub triggers: Vec<String>,
    /// What prevents the box from writing now, keyed by what cannot be written: `ring`, `folder`, `window`,
    /// `file`. Empty without problems.
    pub problems: BTreeMap<&'static str, String>,
    /// Files that were not written because their pending data was removed.
    pub lost_files: u64,
    /// Files that lack data that could not be written in time; each contains the reason.
    pub incomplete_files: u64,
}

pub(super) type SharedStatus = Arc<Mutex<BlackBoxStatus>>;

pub(super) fn with_status<T>(
    status: &SharedStatus,
    with: impl FnOnce(&mut BlackBoxStatus) -> T,
) -> T {
    with(&mut status.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Sets or clears the problem that prevents the box from writing `of`.
pub(super) fn set_problem(status: &SharedStatus, of: &'static str, why: Option<String>) {
    with_status(status, |status| match why {
        Some(why) => drop(status.problems.insert(of, why)),
        None => drop(status.problems.remove(of)),
    });
}
