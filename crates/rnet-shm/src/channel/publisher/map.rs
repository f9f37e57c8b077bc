//! A publisher's file in memory: the first page and the log.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rnet_core::MAX_INLINE_LEN_BYTES;
use rnet_ring::Log;
use rnet_ring::admission::AdmissionTable;
use rnet_ring::layout::{
    Admission, LogControl, MORE_ADMISSIONS_LEN_BYTES, PAGE_LEN_BYTES, READERS_IN_CONTROL,
    READERS_PER_LOG,
};

use crate::os::mapping::{Access, Mapping};

/// Where the log's control lines stand in the first page.
pub const CONTROL_AT: usize = 256;
const _: () = assert!(CONTROL_AT + size_of::<LogControl>() <= PAGE_LEN_BYTES);

/// Where the first of the two slots of a last will begins, behind the word that says which of them holds.
pub(super) const SLOTS_AT: usize = 64;
const WILL_LEN_BYTES: usize =
    (SLOTS_AT + 2 * MAX_INLINE_LEN_BYTES).next_multiple_of(PAGE_LEN_BYTES);

/// Length of the pages before the log that hold the last will.
pub(super) fn will_len(has_will: bool) -> u64 {
    if has_will { WILL_LEN_BYTES as u64 } else { 0 }
}

/// Length of a publisher's file: behind the log stand the entries of readers that the first page has no room
/// for.
pub(super) fn file_len(log_at: u64, log_len: u64) -> u64 {
    log_at + log_len + MORE_ADMISSIONS_LEN_BYTES as u64
}

/// A publisher's file, mapped.
#[derive(Debug)]
pub struct PublisherMap {
    id: u64,
    pub(super) map: Mapping,
    pub(super) log_at: usize,
    log_words: usize,
    block_bits: u32,
    /// Where the last will stands, if there is room for one.
    pub(super) will_at: Option<usize>,
}

impl PublisherMap {
    pub(super) fn new(
        file: &OwnedFd,
        id: u64,
        (log_at, log_len): (u64, u64),
        has_will: bool,
        access: Access,
    ) -> Result<Self, rustix::io::Errno> {
        let len =
            usize::try_from(file_len(log_at, log_len)).map_err(|_| rustix::io::Errno::NOMEM)?;
        // To fetch all of a log would fill what has no memory yet.
        let map = Mapping::new(file.as_fd(), 0, len, access, false)?;
        let at = log_at as usize;
        map.populate(0, at);
        let words = (log_len / 8) as usize;
        let log = Log::new(map.get(CONTROL_AT), map.slice(at, words));
        let block_bits = log.ok_or(rustix::io::Errno::INVAL)?.block_bits;
        let will_at = has_will.then(|| at - WILL_LEN_BYTES);
        Ok(PublisherMap { id, map, log_at: at, log_words: words, block_bits, will_at })
    }

    /// The publisher.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether its file was truncated under us.
    #[inline]
    pub fn is_truncated(&self) -> bool {
        self.map.is_truncated()
    }

    /// The log's control lines.
    #[inline]
    pub fn control(&self) -> &LogControl {
        self.map.get(CONTROL_AT)
    }

    /// Messages that the publisher knows to be missing, by cause.
    pub fn known_lost(&self) -> [u64; 4] {
        let sums = &self.control().head.known_lost;
        // Pairs with `Writer::raise_known_lost`; whoever was rung for a gap finds it.
        std::array::from_fn(|at| sums[at].load(Ordering::Acquire))
    }

    /// The entries of its readers.
    #[inline]
    pub fn admissions(&self) -> AdmissionTable<'_> {
        let more = self.map.slice(self.more_at(), READERS_PER_LOG - READERS_IN_CONTROL);
        AdmissionTable::new(self.control(), more)
    }

    #[inline]
    fn more_at(&self) -> usize {
        self.log_at + self.log_words * 8
    }

    /// Has memory for the entry at `place` of the table of readers, and for all before it.
    pub(crate) fn back_admission(&self, path: &Path, place: usize) -> rustix::io::Result<()> {
        let table = self.admissions();
        let used = table.used();
        if place < used {
            return Ok(());
        }
        // An entry may begin in one page and end in the next.
        let end_of =
            |count: usize| count.saturating_sub(READERS_IN_CONTROL) * size_of::<Admission>();
        let first = end_of(used) / PAGE_LEN_BYTES * PAGE_LEN_BYTES;
        let end = end_of(place + 1).next_multiple_of(PAGE_LEN_BYTES);
        if end > first {
            self.map.back(path, self.more_at() + first, end - first)?;
        }
        table.set_used(place + 1);
        Ok(())
    }

    /// The log.
    #[inline]
    pub fn log(&self) -> Log<'_> {
        let words: &[AtomicU64] = self.map.slice(self.log_at, self.log_words);
        Log { control: self.control(), words, block_bits: self.block_bits }
    }
}
