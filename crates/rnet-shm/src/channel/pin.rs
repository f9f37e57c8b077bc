//! Large messages, read in place in their chunks.

use std::sync::atomic::Ordering;

use rnet_core::MAX_MESSAGE_LEN_BYTES;
use rnet_ring::follower::Gap;
use rnet_ring::pins;
use rnet_ring::record::{ChunkRef, Record};
use rustix::io::Errno;

use super::{ChannelError, Next, Reader};
use crate::files::io_error;
use crate::pool::chunk_path;
use crate::taken::Pinned;
use crate::{clock, reader_stats, shortage};

/// How long a large message waits that could not be mapped, before it is tried again.
const RETRY_NS: u64 = 1_000_000_000;

impl Reader {
    /// What it takes to read a message in place cannot be had: it is tried again in a while.
    #[cold]
    fn run_short(&mut self, record: &Record, reference: ChunkRef, errno: Errno) -> ChannelError {
        let at_ns = clock::now_ns().saturating_add(RETRY_NS);
        self.next = Next::RetryAt { record: *record, at_ns };
        let (path, topic) = (chunk_path(&self.origin.path, reference.chunk), &self.meta.topic);
        let doing = "cannot read a large message in";
        let named = shortage::named(doing, &path, Some(topic), reference.len, errno);
        ChannelError::Short(Box::new(named.unwrap_or_else(|| io_error(doing, &path, errno))))
    }

    /// Counts a message that was lost because its chunk went on without it: `missing` if there is no
    /// such chunk any more.
    #[cold]
    fn lose_chunk(&mut self, record: &Record, missing: bool) {
        if self.passes_over(record) {
            // The publisher was faster than this look, but the message is not wanted any more.
            self.skip(record.seq, record.time_ns);
            return;
        }
        // One that carries a newer message says that its publisher outlived this one. That has to
        // be enough: a reader that asked the kernel for each message that it is behind would never
        // catch up. The files may be swept before we are told that the publisher is gone, in any
        // order; that it is dead comes before all that.
        let swept = || !self.origin.path.exists() || !self.own.sees_alive(&self.origin.folder);
        let gone = self.has_left() || self.reliable || (missing && swept());
        let let_go = self.follower.gap(self.admissions()) == Gap::Detached;
        let page = self.slot.page();
        reader_stats::lost_chunk(page, let_go, gone);
        page.count.next_seq.store(record.seq.wrapping_add(1), Ordering::Relaxed);
    }

    /// Takes hold of a large message; `Ok(None)` if it is lost, which is counted.
    pub(super) fn pin(&mut self, record: &Record) -> Result<Option<Pinned>, ChannelError> {
        let bytes = self.batch.bytes(record.offset, record.len);
        let Some(reference) = ChunkRef::from_bytes(bytes) else {
            return Err(ChannelError::Corrupt("a chunk reference is malformed"));
        };
        if reference.len > MAX_MESSAGE_LEN_BYTES as u64 {
            return Err(ChannelError::Corrupt("a message exceeds the maximum message length"));
        }
        let chunk = match self.chunks.get(&self.origin.path, self.publisher, reference.chunk) {
            Ok(Some(chunk)) => chunk,
            Ok(None) => {
                self.lose_chunk(record, true);
                return Ok(None);
            }
            Err(errno) => return Err(self.run_short(record, reference, errno)),
        };
        if !chunk.holds(reference.len) {
            return Err(ChannelError::Corrupt("a message is longer than its chunk"));
        }
        let Some(pin) = self.slot.take_pin() else {
            if self.was_let_go() {
                // Its memory is kept for us no more, and we are not to wait before we ask again.
                self.slot.forget_pin();
                self.lose_chunk(record, false);
                return Ok(None);
            }
            self.next = Next::Withheld(*record);
            return Err(ChannelError::TooManyPins);
        };
        if !pins::try_pin(&self.slot.page().pins[pin], chunk.header(), reference) {
            self.slot.give_pin(pin);
            self.lose_chunk(record, false);
            return Ok(None);
        }
        Ok(Some(Pinned { chunk, slot: self.slot.clone(), pin, len: reference.len as usize }))
    }
}
