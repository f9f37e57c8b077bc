//! What the log asks of its publisher: how long the readers need what is there, and memory.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rnet_ring::{Gate, Retention, fail_point};

use super::PublisherMap;
use crate::channel::reader_table::{ReaderRef, ReaderTable};

/// The readers of the writer's copy, and the publisher's file.
pub(super) struct LogGate<'a> {
    pub readers: &'a [Arc<ReaderRef>],
    pub reader_table: &'a ReaderTable,
    pub map: &'a PublisherMap,
    pub path: &'a Path,
    /// Messages kept for late joiners.
    pub history: u64,
}

impl LogGate<'_> {
    fn lowest(&self, of: impl Fn(&ReaderRef) -> bool) -> u64 {
        self.readers.iter().filter(|r| of(r)).map(|r| r.needed()).min().unwrap_or(u64::MAX)
    }

    fn range(&self, first: u32, count: u32) -> (usize, usize) {
        let block_len = self.map.log().block_len_bytes() as usize;
        (self.map.log_at + first as usize * block_len, count as usize * block_len)
    }
}

impl Gate for LogGate<'_> {
    fn lowest_needed(&mut self) -> u64 {
        self.lowest(|reader| reader.reliable)
    }

    fn lowest_wanted(&mut self) -> u64 {
        self.lowest(|reader| reader.reliable || reader.keep_last.is_none())
    }

    fn lowest_read(&mut self) -> u64 {
        self.lowest(|_| true)
    }

    fn retention(&mut self) -> Retention {
        let newest = self.readers.iter().filter_map(|r| r.keep_last).max().unwrap_or(0);
        Retention { history: self.history, newest: u64::from(newest) }
    }

    fn back_with_memory(&mut self, first: u32, count: u32) -> bool {
        let (offset, len) = self.range(first, count);
        fail_point!("log.grows");
        let backed = self.map.map.back(self.path, offset, len).is_ok();
        if backed {
            let bytes = &self.map.control().flow.log_bytes;
            bytes.fetch_add(len as u64, Ordering::Relaxed);
        }
        fail_point!("log.backed");
        backed
    }

    fn release_memory(&mut self, first: u32, count: u32) -> bool {
        if self.reader_table.is_scanned() {
            return false;
        }
        let (offset, len) = self.range(first, count);
        let given = self.map.map.give_back(offset, len).is_ok();
        if given {
            let bytes = &self.map.control().flow.log_bytes;
            bytes.fetch_sub(len as u64, Ordering::Relaxed);
        }
        given
    }
}
