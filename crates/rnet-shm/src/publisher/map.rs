//! A publisher's file in memory: the first page and the log.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU64;

use rnet_ring::Log;
use rnet_ring::layout::{LogControl, PAGE_LEN_BYTES};

use crate::mapping::{Access, Mapping};

/// Where the log's control lines stand in the first page.
pub const CONTROL_AT: usize = 256;
const _: () = assert!(CONTROL_AT + size_of::<LogControl>() <= PAGE_LEN_BYTES);

/// A publisher's file, mapped.
#[derive(Debug)]
pub struct PublisherMap {
    id: u64,
    pub(super) map: Mapping,
    pub(super) log_at: usize,
    log_words: usize,
    block_bits: u32,
}

impl PublisherMap {
    pub(super) fn new(
        file: &OwnedFd,
        id: u64,
        log_at: u64,
        log_len: u64,
        access: Access,
    ) -> Result<Self, rustix::io::Errno> {
        let len = usize::try_from(log_at + log_len).map_err(|_| rustix::io::Errno::NOMEM)?;
        // To fetch all of a log would fill what has no memory yet.
        let map = Mapping::new(file.as_fd(), 0, len, access, false)?;
        let at = log_at as usize;
        map.fetch(0, at);
        let words = (log_len / 8) as usize;
        let log = Log::new(map.get(CONTROL_AT), map.slice(at, words));
        let block_bits = log.ok_or(rustix::io::Errno::INVAL)?.block_bits;
        Ok(PublisherMap { id, map, log_at: at, log_words: words, block_bits })
    }

    /// The publisher.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether its file was truncated under us.
    #[inline]
    pub fn is_spoilt(&self) -> bool {
        self.map.is_spoilt()
    }

    /// The log's control lines.
    #[inline]
    pub fn control(&self) -> &LogControl {
        self.map.get(CONTROL_AT)
    }

    /// The log.
    #[inline]
    pub fn log(&self) -> Log<'_> {
        let words: &[AtomicU64] = self.map.slice(self.log_at, self.log_words);
        Log { control: self.control(), words, block_bits: self.block_bits }
    }
}
