//! Observers that sleep: by what they are found, and how they are rung.
//!
//! An observer ([`crate::channel::observe`]) has a file that names the publishers which it follows
//! ([`ObserverFile`]); the nodes of these find it there ([`Observers`]). docs/design/observers.md draws
//! both sides.

mod file;
mod peers;
mod status;

use std::collections::BTreeSet;
use std::path::Path;

use rnet_ring::layout::PAGE_LEN_BYTES;

pub use file::ObserverFile;
pub(crate) use peers::{ObserverBells, are_same};
pub use peers::{ObserverRef, Observers};
pub use status::{MAX_STATUS_LEN_BYTES, read_statuses};

const MAGIC: u64 = u64::from_le_bytes(*b"RNETOBS\x01");
const PAGE: u64 = PAGE_LEN_BYTES as u64;
/// The folder of observers in the directory of a domain.
pub(crate) const FOLDER: &str = "observers";
/// What the name of an observer's doorbells ends with.
const BELLS_SUFFIX: &str = ".bells";
/// And that of what it tells of itself.
const STATUS_SUFFIX: &str = ".told";
/// The bell that wakes the observer.
const WAKE: u64 = 0;
/// The bell that counts the changes of endpoints.
const ENDPOINTS: u64 = 1;

/// Ids of the observers whose files are in the folder.
fn listed(folder: &Path) -> BTreeSet<u64> {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    names.filter_map(|entry| parse_id(entry.file_name().to_str()?)).collect()
}

fn parse_id(name: &str) -> Option<u64> {
    (name.len() == 16).then(|| u64::from_str_radix(name, 16).ok()).flatten()
}
