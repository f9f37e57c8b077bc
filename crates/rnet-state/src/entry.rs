//! What is told of a key, besides its value.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Value;

/// Who wrote a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Owner {
    /// Name of the node.
    pub node: String,
    /// When it wrote, ns since 1970.
    pub written_unix_ns: u64,
}

/// What a key becomes when its owner ends, however it ends.
#[derive(Clone, Debug, PartialEq)]
pub enum LastWill {
    /// It is deleted.
    Delete,
    /// It gets this value.
    Becomes(Value),
}

/// A key of the state with all that is known of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The key, with its leading slash.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// Revision of the domain's state at which it was written; every change of any key has a higher one than the changes
    /// before it.
    pub revision: u64,
    /// Writes of this key since it was made, from 1 on.
    pub version: u64,
    /// Who wrote it, and when.
    pub owner: Owner,
    /// Whether it is kept on disk.
    pub durable: bool,
    /// When its time is over, in ns of CLOCK_BOOTTIME (`rnet::boot_ns`), which nobody can set; `None`: never.
    pub expires_boot_ns: Option<u64>,
    /// What it becomes when its owner ends; `None`: it stays.
    pub last_will: Option<LastWill>,
}

impl Entry {
    /// How long it is there yet; `None`: for ever.
    pub fn ttl_left(&self) -> Option<Duration> {
        let left =
            |ends: u64| Duration::from_nanos(ends.saturating_sub(rnet_shm::clock::boot_ns()));
        self.expires_boot_ns.map(left)
    }
}

/// Many keys as of one revision.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The revision.
    pub revision: u64,
    /// The keys, in order.
    pub entries: BTreeMap<String, Entry>,
}

/// A change that a [`crate::Watch`] tells.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// The key.
    pub key: String,
    /// What stands there now; `None`: it was deleted.
    pub entry: Option<Entry>,
    /// Whether it was deleted because its time was over. `None`: the key is gone and nobody can tell why, because the watch was
    /// so far behind that the journal went on without it.
    pub expired: Option<bool>,
    /// Revision of the change; of a key that went while the watch was that far behind, a revision as of which it is gone.
    pub revision: u64,
    /// How many values of this key this watch did not see since it told the last one: they were overwritten or deleted before it
    /// came to them. The newest is always told. `None`: not known, because the key may have been deleted and made anew while the
    /// watch was so far behind that the journal went on without it. Of a key that was absent before such a stretch and after it
    /// nothing is told or counted.
    pub skipped: Option<u64>,
    /// Whether this is no change but what stood there when the watch began.
    pub initial: bool,
}
