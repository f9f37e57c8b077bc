//! Options of a black box.

use std::path::PathBuf;
use std::time::Duration;

use rnet::inspect::Location;

use super::counters::ExpectedExits;
use super::trigger::Trigger;
use super::{DEFAULT_MAX_DISK_BYTES, MIN_MEMORY_BYTES};
use crate::recorder::Selection;

/// Options of [`BlackBox::start`](super::BlackBox::start).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BlackBoxOptions {
    /// Triggers, in addition to calls.
    pub triggers: Vec<Trigger>,
    /// Which topics are kept.
    pub selection: Selection,
    /// Time that a file covers before its first trigger.
    pub before: Duration,
    /// Time that a file covers after its last trigger.
    pub after: Duration,
    /// Memory of the box in bytes, including the ring: at least [`MIN_MEMORY_BYTES`]. A message larger than
    /// an eighth of it may be held twice in addition.
    pub memory_len_bytes: u64,
    /// The folder of the files.
    pub folder: PathBuf,
    /// Maximum size of all files, in bytes. The oldest files are removed to keep it.
    pub max_disk: u64,
    /// The domain; `None` for the domain of the environment.
    pub location: Option<Location>,
    /// The name of this host; `None` for the name of the system.
    pub host: Option<String>,
    /// Folder of the durable state; `None` for the one of the environment.
    pub state_dir: Option<PathBuf>,
    /// The command line, which is stored in the files.
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
