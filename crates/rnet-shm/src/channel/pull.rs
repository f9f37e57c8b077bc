//! Records out of the log, batch by batch, and large messages out of their chunks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rnet_core::MAX_MESSAGE_LEN_BYTES;
use rnet_ring::follower::Gap;
use rnet_ring::record::{ChunkRef, Record};
use rnet_ring::{Pull, fail_point, pins};

use rustix::io::Errno;

use super::{ChannelError, MAX_FRUITLESS, Reader};
use crate::files::io_error;
use crate::pool::chunk_path;
use crate::taken::{Batch, Pinned};
use crate::{clock, reader_stats, shortage};

/// A reader in pursuit that found less than this pauses, so that the writer gets ahead.
const CHASE_LEN_BYTES: usize = 2048;
/// Batches that are further apart are not of a pursuit: the user works between them.
const CHASE_NS: u64 = 20_000;
/// Length of that pause, in spin-loop hints: about a microsecond.
const CHASE_PAUSES: u32 = 32;
/// How long a large message waits that could not be mapped, before it is tried again.
const RETRY_NS: u64 = 1_000_000_000;
/// Batches kept for reuse while samples of earlier ones are still held.
const SPARE_BATCHES: usize = 4;

impl Reader {
    pub(super) fn next_record(&mut self) -> Result<Option<Record>, ChannelError> {
        if let Some(record) = self.withheld.take() {
            self.slot.forget_pin();
            return Ok(Some(record));
        }
        for _ in 0..MAX_FRUITLESS {
            match self.log.next(&self.batch.0) {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) => {}
                Err(what) => return Err(ChannelError::Corrupt(what)),
            }
            self.show_cursor();
            self.keep_distance();
            if Arc::get_mut(&mut self.batch).is_none() {
                self.change_batch();
            }
            let Some(batch) = Arc::get_mut(&mut self.batch) else { return Ok(None) };
            let pulled = self.log.pull(self.map.log(), &mut batch.0);
            // Before the copy is believed: what was cut off reads as zeros.
            self.check_truncated()?;
            match pulled {
                Pull::Batch => {
                    fail_point!("take.pulled");
                    let now_ns = clock::now_ns();
                    let at_once = now_ns.saturating_sub(self.taken_ns) < CHASE_NS;
                    self.pursuit = if at_once { self.pursuit.saturating_add(1) } else { 0 };
                    self.taken_ns = now_ns;
                }
                Pull::Empty => {
                    self.pursuit = 0;
                    if self.has_unseen_lost() {
                        self.count_known_lost();
                    }
                    return Ok(None);
                }
                Pull::Lapped if self.was_let_go() => {
                    self.check_truncated()?;
                    return Err(self.be_let_go());
                }
                Pull::Lapped => self.pursuit = 0,
                Pull::Corrupt(what) => return Err(ChannelError::Corrupt(what)),
            }
        }
        Ok(None)
    }

    /// Lets a writer in full flight get ahead. A reader on its heels takes one message at a time
    /// and fights it for every cache line, which costs both several times the pause. Before the
    /// look, not after it: each look takes the line from the writer.
    #[inline]
    fn keep_distance(&self) {
        if self.pursuit > 1 && self.log.batch_len_bytes() < CHASE_LEN_BYTES {
            for _ in 0..CHASE_PAUSES {
                std::hint::spin_loop();
            }
        }
    }

    /// Samples of the present batch are still held: goes on with another.
    #[cold]
    fn change_batch(&mut self) {
        let free = self.spare.iter_mut().position(|batch| Arc::get_mut(batch).is_some());
        let next = free.map_or_else(Batch::new, |at| self.spare.swap_remove(at));
        let held = std::mem::replace(&mut self.batch, next);
        if self.spare.len() < SPARE_BATCHES {
            self.spare.push(held);
        }
    }

    /// What it takes to read a message in place cannot be had: it is tried again in a while.
    #[cold]
    fn run_short(&mut self, record: &Record, reference: ChunkRef, errno: Errno) -> ChannelError {
        self.withheld = Some(*record);
        self.retry_at_ns = clock::now_ns().saturating_add(RETRY_NS);
        let (path, topic) = (chunk_path(&self.path, reference.chunk), &self.meta.topic);
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
        let swept = || !self.path.exists() || !self.own.sees_alive(&self.folder);
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
            return Err(ChannelError::Corrupt("a message is longer than a message may be"));
        }
        let chunk = match self.chunks.get(&self.path, self.publisher, reference.chunk) {
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
            self.withheld = Some(*record);
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
