//! How a black box is, for whoever asks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::trigger_queue::FiredTrigger;

/// How a box is.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct BlackBoxStatus {
    /// Its domain.
    pub domain: String,
    /// Where the ring is, and its bytes.
    pub ring: PathBuf,
    /// Bytes of the ring.
    pub ring_bytes: u64,
    /// Memory that the box may take, in bytes.
    pub memory_bytes: u64,
    /// How far back the ring goes now, in s.
    pub kept_s: f64,
    /// Messages that it has kept since it was started.
    pub messages: u64,
    /// Messages that it was too slow for since then.
    pub missing: u64,
    /// Publishers that it has seen and not heard, or not to their end.
    pub unheard: u64,
    /// Why it keeps less than the time that a file is to have before its trigger, if it does.
    pub shorter: Option<String>,
    /// Triggers that have fired since then.
    pub fired: u64,
    /// Those of them that made no file: their cause had one already, or there were too many within a minute.
    pub merged: u64,
    /// The last of them.
    pub last: Option<FiredTrigger>,
    /// The file that is in the making.
    pub pending: Option<String>,
    /// Files that were written since then.
    pub files: u64,
    /// The last of them.
    pub last_file: Option<PathBuf>,
    /// Where they go.
    pub folder: PathBuf,
    /// What fires.
    pub triggers: Vec<String>,
    /// What keeps it from writing now, in words, by what cannot be written: `ring`, `folder`, `window`, `file`. Empty while
    /// all is well.
    pub problems: BTreeMap<&'static str, String>,
    /// Files that were not written because somebody removed what was to become them.
    pub lost_files: u64,
    /// Files that end without what could not be written in time; each says why.
    pub incomplete_files: u64,
}

pub(super) type SharedStatus = Arc<Mutex<BlackBoxStatus>>;

pub(super) fn with_status<T>(
    status: &SharedStatus,
    with: impl FnOnce(&mut BlackBoxStatus) -> T,
) -> T {
    with(&mut status.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Says what keeps the box from writing this, or that nothing does.
pub(super) fn set_problem(status: &SharedStatus, of: &'static str, why: Option<String>) {
    with_status(status, |status| match why {
        Some(why) => drop(status.problems.insert(of, why)),
        None => drop(status.problems.remove(of)),
    });
}
