//! The way of a message through its channel: records out of the log, batch by batch, each counted and made
//! the current one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rnet_core::bucket_of;
use rnet_ring::layout::LATENCY_BUCKETS;
use rnet_ring::record::Record;
use rnet_ring::{Pull, RecordKind, fail_point};

use super::duplicates::DuplicateCheck;
use super::{ChannelError, Reader};
use crate::channel::extension::{Extension, ORIGIN_WORDS};
use crate::channel::reader_stats::bump;
use crate::channel::received::Batch;
use crate::os::clock;

/// Records and pulls without a message for the user after which a take gives its caller a turn: a
/// publisher that streams nothing but gaps must not hold up a lane or a time-out.
const MAX_EMPTY_PULLS: usize = 1 << 16;
/// A reader in pursuit that found less than this pauses, so that the writer gets ahead.
const BACKOFF_LEN_BYTES: usize = 2048;
/// Batches that are further apart are not of a pursuit: the user works between them.
const BACKOFF_NS: u64 = 20_000;
/// Length of that pause, in spin-loop hints: about a microsecond.
const BACKOFF_SPINS: u32 = 32;
/// Batches kept for reuse while samples of earlier ones are still held.
const SPARE_BATCHES: usize = 4;

impl Reader {
    /// [`Reader::take`] in its common case: a small message that was copied with those before it.
    /// `false` says nothing; then ask `take`.
    #[inline]
    pub fn take_plain(&mut self) -> bool {
        if self.follower.is_awaiting_admission() || !self.next.is_log() || self.pinned.is_some() {
            return false;
        }
        let Some(record) = self.log.next_fast(&self.batch.0) else {
            return self.last_origin.is_some() && self.take_forwarded();
        };
        if self.should_skip(&record) {
            self.skip(record.seq, record.time_ns);
            return false;
        }
        self.deliver(record, record.len as u64);
        true
    }

    /// As [`Reader::take_plain`], of a message of another host that follows the one that was had last of its
    /// publisher there, and names its origin alone.
    #[inline(never)]
    fn take_forwarded(&mut self) -> bool {
        let Some(last_origin) = &mut self.last_origin else { return false };
        let Some(seq) = last_origin.seq.checked_add(1) else { return false };
        let next = rnet_core::Origin { seq, ..*last_origin };
        let fits = |words: &[u64; ORIGIN_WORDS]| Extension::origin_alone(words) == Some(next);
        let Some(record) = self.log.next_fast_extended(&self.batch.0, fits) else { return false };
        *last_origin = next;
        if self.should_skip(&record) {
            self.skip(record.seq, record.time_ns);
            return false;
        }
        self.deliver(record, record.len as u64);
        true
    }

    /// Counts a message that was handed out as skipped instead: its user passes over it for a newer one.
    pub fn count_as_skipped(&mut self) {
        let (stats, count) = (&mut self.reader_stats, &self.slot.page().count);
        stats.received = stats.received.wrapping_sub(1);
        count.received.store(stats.received, Ordering::Relaxed);
        bump(&count.skipped, 1);
    }

    /// Counts a message and makes it the current one.
    #[inline]
    fn deliver(&mut self, record: Record, len: u64) {
        fail_point!("take.record");
        let (stats, page) = (&mut self.reader_stats, self.slot.page());
        let count = &page.count;
        stats.received = stats.received.wrapping_add(1);
        count.received.store(stats.received, Ordering::Relaxed);
        fail_point!("take.received");
        stats.bytes = stats.bytes.wrapping_add(len);
        count.bytes.store(stats.bytes, Ordering::Relaxed);
        fail_point!("take.bytes");
        count.next_seq.store(record.seq.wrapping_add(1), Ordering::Relaxed);
        fail_point!("take.next_seq");
        count.newest_time_ns.store(record.time_ns, Ordering::Relaxed);
        fail_point!("take.newest");
        // A stamp from the future is a hostile one.
        let latency = self.taken_ns.saturating_sub(record.time_ns);
        stats.sum_latency_ns = stats.sum_latency_ns.wrapping_add(latency);
        count.sum_latency_ns.store(stats.sum_latency_ns, Ordering::Relaxed);
        fail_point!("take.latency");
        if latency > stats.max_latency_ns {
            stats.max_latency_ns = latency;
            count.max_latency_ns.store(latency, Ordering::Relaxed);
        }
        bump(&page.latency[bucket_of(latency).min(LATENCY_BUCKETS - 1)], 1);
        fail_point!("take.counted");
        self.current = record;
        if self.reliable {
            self.publish_cursor_if_awaited(record.kind);
        }
    }

    /// Goes on to the next message, which [`Reader::current`] then hands out. `Ok(false)`:
    /// nothing now. After `Corrupt` or `Refused` the channel is of no more use.
    pub fn take(&mut self) -> Result<bool, ChannelError> {
        if !self.prepare()? {
            return Ok(false);
        }
        for _ in 0..MAX_EMPTY_PULLS {
            let record = match self.next_record()? {
                Some(record) => record,
                None => match self.found_nothing()? {
                    Some(will) => will,
                    None => return Ok(false),
                },
            };
            let words = self.count_gap(&record);
            if words == DuplicateCheck::Duplicate {
                self.drop_duplicate(&record);
                continue;
            }
            if self.should_skip(&record) {
                self.note_origin(&record);
                self.skip(record.seq, record.time_ns);
                continue;
            }
            let len = match record.kind {
                RecordKind::Inline => {
                    self.pinned = None;
                    record.len
                }
                RecordKind::Chunk => match self.pin(&record)? {
                    Some(pinned) => {
                        let len = pinned.len;
                        self.pinned = Some(pinned);
                        len
                    }
                    None => {
                        self.note_origin(&record);
                        continue;
                    }
                },
            };
            self.deliver(record, len as u64);
            if words == DuplicateCheck::New {
                self.note_origin(&record);
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// What every look begins with; `false` if nothing can be had for now.
    pub(super) fn prepare(&mut self) -> Result<bool, ChannelError> {
        // While the message of the last take is still known: it may have read as zeros.
        self.check_all_truncated()?;
        // Here and not when the next message is there: until then the publisher would miss it.
        self.pinned = None;
        if self.follower.is_awaiting_admission() && !self.try_begin()? {
            return Ok(false);
        }
        Ok(!self.must_pause())
    }

    /// What a look ends with that found nothing in the log: were we let go, or is it the turn of the last will?
    pub(super) fn found_nothing(&mut self) -> Result<Option<Record>, ChannelError> {
        let evicted = self.was_evicted();
        // A truncated page says that we were let go, or that there is nothing.
        self.check_truncated()?;
        if evicted { Err(self.handle_eviction()) } else { Ok(self.take_will()) }
    }

    /// The record that was withheld, or the log's next.
    pub(super) fn next_record(&mut self) -> Result<Option<Record>, ChannelError> {
        if !self.next.is_log()
            && let Some(record) = self.next.take()
        {
            self.slot.cancel_pin_wait();
            return Ok(Some(record));
        }
        for _ in 0..MAX_EMPTY_PULLS {
            match self.log.next(&self.batch.0) {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) => {}
                Err(what) => return Err(ChannelError::Corrupt(what)),
            }
            self.publish_cursor();
            self.back_off();
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
                    let at_once = now_ns.saturating_sub(self.taken_ns) < BACKOFF_NS;
                    self.contention = if at_once { self.contention.saturating_add(1) } else { 0 };
                    self.taken_ns = now_ns;
                }
                Pull::Empty => {
                    self.contention = 0;
                    if self.has_unseen_lost() {
                        self.count_known_lost();
                    }
                    return Ok(None);
                }
                Pull::Lapped if self.was_evicted() => {
                    self.check_truncated()?;
                    return Err(self.handle_eviction());
                }
                Pull::Lapped => self.contention = 0,
                Pull::Corrupt(what) => return Err(ChannelError::Corrupt(what)),
            }
        }
        Ok(None)
    }

    /// Its user has seen that there is nothing, and waits: what comes then is not taken on the heels of the writer.
    pub fn reset_contention(&mut self) {
        self.contention = 0;
    }

    /// Lets a writer in full flight get ahead. A reader on its heels takes one message at a time
    /// and fights it for every cache line, which costs both several times the pause. Before the
    /// look, not after it: each look takes the line from the writer.
    #[inline]
    fn back_off(&self) {
        if self.contention > 1 && self.log.batch_len_bytes() < BACKOFF_LEN_BYTES {
            for _ in 0..BACKOFF_SPINS {
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
}
