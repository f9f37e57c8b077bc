//! Attributes of a key besides its value.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Value;

/// The writer of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Owner {
    /// Name of the node.
    pub node: String,
    /// Time of the write, ns since 1970.
    pub written_unix_ns: u64,
}

/// The change of a key when its owner exits or dies.
#[derive(Clone, Debug, PartialEq)]
pub enum LastWill {
    /// It is deleted.
    Delete,
    /// It gets this value.
    Becomes(Value),
}

/// A key of the state with its value and all attributes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The key, with its leading slash.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// Revision of the domain's state at which it was written. Revisions increase with every change of any
    /// key.
    pub revision: u64,
    /// Number of writes of this key since its creation, starting at 1.
    pub version: u64,
    /// Its writer, and the time of the write.
    pub owner: Owner,
    /// Whether it is stored on disk.
    pub durable: bool,
    /// Expiry time, in ns of CLOCK_BOOTTIME (`rnet::boot_ns`), which cannot be set; `None`: never.
    pub expires_boot_ns: Option<u64>,
    /// Its change when its owner exits or dies; `None`: it is kept.
    pub last_will: Option<LastWill>,
}

impl Entry {
    /// Remaining time to live; `None`: unlimited.
    pub fn ttl_left(&self) -> Option<Duration> {
        let left =
            |ends: u64| Duration::from_nanos(ends.saturating_sub(rnet_shm::os::clock::boot_ns()));
        self.expires_boot_ns.map(left)
    }
}

/// Several keys as of one revision.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The revision.
    pub revision: u64,
    /// The keys with their entries, sorted.
    pub entries: BTreeMap<String, Entry>,
}

/// A change reported by a [`crate::Watch`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// The key.
    pub key: String,
    /// The current entry; `None`: it was deleted.
    pub entry: Option<Entry>,
    /// Whether it was deleted because it expired. `None`: the reason is unknown, because the watch fell
    /// behind the journal.
    pub expired: Option<bool>,
    /// Revision of the change. For a key deleted while the watch was behind the journal: a revision at which
    /// it is absent.
    pub revision: u64,
    /// Number of values of this key that this watch missed since the last report, because they were
    /// overwritten or deleted. The newest value is always reported. `None`: unknown, because the key may have
    /// been deleted and created again while the watch was behind the journal. A key that was absent before
    /// and after such a gap is neither reported nor counted.
    pub skipped: Option<u64>,
    /// Whether this is not a change, but a value that existed when the watch started.
    pub initial: bool,
}
