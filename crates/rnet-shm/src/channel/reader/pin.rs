//! Large messages, read in place in their chunks.

use std::sync::atomic::Ordering;

use rnet_core::MAX_MESSAGE_LEN_BYTES;
use rnet_ring::pins;
use rnet_ring::reader_admission::Gap;
use rnet_ring::record::{ChunkRef, Record};
use rustix::io::Errno;

use super::{ChannelError, NextRecord, Reader};
use crate::channel::pool::chunk_path;
use crate::channel::reader_stats;
use crate::channel::received::PinnedMessage;
use crate::os::files::io_error;
use crate::os::{clock, shortage};

/// Delay before a large message that could not be mapped is retried.
const RETRY_NS: u64 = 1_000_000_000;

impl Reader {
    /// A resource for reading a message in place is short: schedules a retry.
    #[cold]
    fn schedule_retry(
        &mut self,
        record: &Record,
        reference: ChunkRef,
        errno: Errno,
    ) -> ChannelError {
        let at_ns = clock::now_ns().saturating_add(RETRY_NS);
        self.next = NextRecord::RetryAt { record: *record, at_ns };
        let (path, topic) = (chunk_path(&self.location.path, reference.chunk), &self.meta.topic);
        let doing = "cannot read a large message in";
        let named = shortage::error_for(doing, &path, Some(topic), reference.len, errno);
        ChannelError::Shortage(Box::new(named.unwrap_or_else(|| io_error(doing, &path, errno))))
    }

    /// Counts a message that was lost because its chunk was reused or removed: `missing` if the chunk does
    /// not exist any more.
    #[cold]
    fn count_lost_chunk(&mut self, record: &Record, missing: bool) {
        if self.should_skip(record) {
            // The publisher was faster than this read, but the message is not wanted any more.
            self.skip(record.seq, record.time_ns);
            return;
        }
        // A chunk with a newer message shows that its publisher continued after this one. That must suffice:
        // a reader that queried the kernel for each message of its backlog would never catch up. The files
        // may be swept in any order before we learn that the publisher has left; its death precedes all that.
        let swept =
            || !self.location.path.exists() || !self.own.is_node_alive(&self.location.folder);
        let gone = self.has_left() || self.reliable || (missing && swept());
        let evicted = self.follower.gap(self.admissions()) == Gap::Detached;
        let page = self.slot.page();
        reader_stats::lost_chunk(page, evicted, gone);
        page.count.next_seq.store(record.seq.wrapping_add(1), Ordering::Relaxed);
    }

    /// Pins a large message; `Ok(None)` if it is lost, which is counted.
    pub(super) fn pin(&mut self, record: &Record) -> Result<Option<PinnedMessage>, ChannelError> {
        let bytes = self.batch.bytes(record.offset, record.len);
        let Some(reference) = ChunkRef::from_bytes(bytes) else {
            return Err(ChannelError::Corrupt("a chunk reference is malformed"));
        };
        if reference.len > MAX_MESSAGE_LEN_BYTES as u64 {
            return Err(ChannelError::Corrupt("a message exceeds the maximum message length"));
        }
        let chunk = match self.chunks.get(&self.location.path, self.publisher, reference.chunk) {
            Ok(Some(chunk)) => chunk,
            Ok(None) => {
                self.count_lost_chunk(record, true);
                return Ok(None);
            }
            Err(errno) => return Err(self.schedule_retry(record, reference, errno)),
        };
        if !chunk.holds(reference.len) {
            return Err(ChannelError::Corrupt("a message is longer than its chunk"));
        }
        let Some(pin) = self.slot.take_pin() else {
            if self.was_evicted() {
                // Its memory is no longer kept for us; do not wait for a pin before requesting admission
                // again.
                self.slot.cancel_pin_wait();
                self.count_lost_chunk(record, false);
                return Ok(None);
            }
            self.next = NextRecord::Withheld(*record);
            return Err(ChannelError::TooManyPins);
        };
        if !pins::try_pin(&self.slot.page().pins[pin], chunk.header(), reference) {
            self.slot.release_pin(pin);
            self.count_lost_chunk(record, false);
            return Ok(None);
        }
        Ok(Some(PinnedMessage { chunk, slot: self.slot.clone(), pin, len: reference.len as usize }))
    }
}
