//! What a black box is told.

use std::path::PathBuf;
use std::time::Duration;

use rnet::inspect::Location;

use super::counters::ExpectedExits;
use super::trigger::Trigger;
use super::{DEFAULT_MAX_DISK_BYTES, MIN_MEMORY_BYTES};
use crate::recorder::Selection;

/// What [`BlackBox::start`](super::BlackBox::start) is told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BlackBoxOptions {
    /// What fires, beside calls.
    pub triggers: Vec<Trigger>,
    /// What is kept.
    pub selection: Selection,
    /// How much of the time before a trigger a file has.
    pub before: Duration,
    /// How much of the time after the last trigger it has.
    pub after: Duration,
    /// Memory of the box, in bytes, the ring included: at least [`MIN_MEMORY_BYTES`]. A message that is larger than an
    /// eighth of it may be held twice beside that.
    pub memory_len_bytes: u64,
    /// Where the files go.
    pub folder: PathBuf,
    /// The oldest files are removed so that all are no longer than this, in bytes.
    pub max_disk: u64,
    /// The domain; that of the environment, if it is not said.
    pub location: Option<Location>,
    /// The name of this host; of the system, if it is not said.
    pub host: Option<String>,
    /// Where durable state is kept, if not where the environment says.
    pub state_dir: Option<PathBuf>,
    /// What the files say of how they were made: the command line.
    pub command_line: String,
    /// Which deaths fire nothing.
    pub expected: Option<ExpectedExits>,
}

impl Default for BlackBoxOptions {
    fn default() -> Self {
        Self {
            triggers: Vec::new(),
            selection: Selection::default(),
            before: Duration::from_secs(30),
            after: Duration::from_secs(5),
            memory_len_bytes: MIN_MEMORY_BYTES,
            folder: PathBuf::from("blackbox"),
            max_disk: DEFAULT_MAX_DISK_BYTES,
            location: None,
            host: None,
            state_dir: None,
            command_line: String::new(),
            expected: None,
        }
    }
}
