//! Skipped messages, which a reader does not hand out although they were not lost, and a reader's backlog.
//!
//! A reader that keeps the last few messages skips a message once more than that many messages, including it,
//! have been committed, at the time when it would be handed out. A skipped message is counted as skipped. So
//! is what the log lost before the reader read it, as far as it would have been skipped anyway: a loss is
//! only what the reader still wanted.
//!
//! A message that is older than its publisher's lifespan at that time has expired, whatever else the reader
//! keeps. So has what the log lost before an expired message, because it was sent earlier.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rnet_core::Backlog;
use rnet_ring::admission;
use rnet_ring::reader_admission::Gap;
use rnet_ring::record::Record;
use rnet_ring::{MAX_COMMIT_RECORDS, RecordKind};

use super::duplicates::DuplicateCheck;
use super::{NextRecord, Reader};
use crate::channel::reader_stats::bump;
use crate::os::clock;

/// Which messages the user still wants.
#[derive(Debug)]
pub(super) struct HistoryFilter {
    /// How many unread ones; [`u64::MAX`] for all.
    keep_last: u64,
    /// Maximum age of a message that is handed out, in ns; [`u64::MAX`] for any age.
    lifespan_ns: u64,
    /// Whether one of the two limits applies.
    is_active: bool,
}

impl HistoryFilter {
    pub(super) fn new(keep_last: Option<u32>, lifespan: Option<Duration>) -> HistoryFilter {
        HistoryFilter {
            keep_last: keep_last.map_or(u64::MAX, u64::from),
            lifespan_ns: lifespan.map_or(u64::MAX, rnet_core::ns_saturating),
            is_active: keep_last.is_some() || lifespan.is_some(),
        }
    }
}

impl Reader {
    /// Whether newer messages have superseded this one, or it has expired. One comparison for a reader that
    /// takes all messages. For others, this reads the log's end and the clock now, not when the batch was
    /// copied: the user may have slept between two messages of a batch.
    #[inline]
    pub(super) fn should_skip(&self, record: &Record) -> bool {
        self.filter.is_active && self.is_superseded_or_expired(record.seq, record.time_ns)
    }

    /// Out of line, so that readers that take all messages pay only for the comparison.
    #[inline(never)]
    fn is_superseded_or_expired(&self, seq: u64, sent_ns: u64) -> bool {
        self.is_superseded(seq) || self.has_expired(sent_ns)
    }

    /// Whether a message is older than its publisher's lifespan.
    pub(super) fn has_expired(&self, sent_ns: u64) -> bool {
        self.filter.lifespan_ns != u64::MAX && self.is_too_old(sent_ns)
    }

    /// Whether a message that was handed out has expired since, because its user waited before using it;
    /// counts it if so.
    pub fn count_if_expired(&self, sent_ns: u64) -> bool {
        let expired = self.has_expired(sent_ns);
        if expired {
            bump(&self.slot.page().count.expired, 1);
        }
        expired
    }

    /// Out of line, so that readers of publishers without a lifespan do not set up the call. A stamp from the
    /// future is invalid.
    #[inline(never)]
    fn is_too_old(&self, sent_ns: u64) -> bool {
        clock::now_ns().saturating_sub(sent_ns) > self.filter.lifespan_ns
    }

    #[inline]
    fn is_superseded(&self, seq: u64) -> bool {
        let end = self.map.control().tail.seq.load(Ordering::Relaxed);
        let newer = end.saturating_sub(seq);
        // Never true for a reader that keeps all messages.
        newer > self.filter.keep_last
            && (newer - self.filter.keep_last > MAX_COMMIT_RECORDS
                || self.is_superseded_by_committed(seq))
    }

    /// The number at the end of the log is stored before the message is committed. A writer that died in
    /// between must not make the reader lose the oldest message that it keeps.
    #[cold]
    fn is_superseded_by_committed(&self, seq: u64) -> bool {
        let (log, keep) = (self.map.log(), self.filter.keep_last);
        match log.end() {
            Some((_, end)) => end.saturating_sub(seq) > keep,
            None => log.sent_at(self.log.position(), seq.saturating_add(keep)).is_some(),
        }
    }

    /// Counts a skipped message, and continues after it.
    #[cold]
    pub(super) fn skip(&mut self, seq: u64, sent_ns: u64) {
        let count = &self.slot.page().count;
        bump(self.skip_counter(sent_ns), 1);
        count.next_seq.store(seq.wrapping_add(1), Ordering::Relaxed);
    }

    /// The counter for a skipped message.
    pub(super) fn skip_counter(&self, sent_ns: u64) -> &AtomicU64 {
        let count = &self.slot.page().count;
        if self.has_expired(sent_ns) { &count.expired } else { &count.skipped }
    }

    /// Counts what is missing before a message, and returns whether the message is a duplicate.
    #[inline]
    pub(super) fn count_gap(&mut self, record: &Record) -> DuplicateCheck {
        let lost = self.log.take_lost();
        if lost != 0 || self.log.is_extended(record) {
            self.count_missing(lost, record)
        } else {
            DuplicateCheck::NoExtension
        }
    }

    #[cold]
    #[inline(never)]
    fn count_missing(&mut self, lost: u64, record: &Record) -> DuplicateCheck {
        if lost != 0 {
            self.count_lost(self.lost_without_duplicates(lost, record), record.seq, record.time_ns);
            self.count_known_lost();
        }
        if self.is_duplicate(record) {
            self.skip_known_lost_of(record);
            return DuplicateCheck::Duplicate;
        }
        self.count_known_lost_of(record);
        if self.log.is_extended(record) { DuplicateCheck::New } else { DuplicateCheck::NoExtension }
    }

    fn count_lost(&self, lost: u64, seq: u64, sent_ns: u64) {
        let count = &self.slot.page().count;
        if self.has_expired(sent_ns) {
            bump(&count.expired, lost);
            count.next_seq.store(seq, Ordering::Relaxed);
            return;
        }
        let end = self.map.control().tail.seq.load(Ordering::Relaxed);
        let unwanted = end
            .saturating_sub(self.filter.keep_last)
            .saturating_sub(seq.saturating_sub(lost))
            .min(lost);
        bump(&count.skipped, unwanted);
        let cause = match self.follower.gap(self.admissions()) {
            Gap::Detached => &count.lost_detached,
            Gap::Overrun => &count.lost_overrun,
        };
        bump(cause, lost - unwanted);
        count.next_seq.store(seq, Ordering::Relaxed);
    }

    /// Skips the message that [`Reader::find_newest`] found, or that waits for a pin.
    pub fn skip_withheld(&mut self) {
        let Some(record) = self.next.take() else { return };
        self.slot.cancel_pin_wait();
        self.note_origin(&record);
        self.skip(record.seq, record.time_ns);
        self.finish_skip(record.kind);
    }

    pub(super) fn finish_skip(&mut self, kind: RecordKind) {
        if self.reliable {
            self.publish_cursor_if_awaited(kind);
        }
    }

    /// Discards committed unread messages of a publisher that has left: those that were still wanted count as
    /// lost with it.
    pub fn discard_unread(&mut self) {
        let end = self.map.control().tail.tail.load(Ordering::Acquire);
        while !self.next.is_log() || self.log.position() < end {
            let Ok(Some(record)) = self.next_record() else { break };
            if self.count_gap(&record) == DuplicateCheck::Duplicate {
                self.drop_duplicate(&record);
                continue;
            }
            self.note_origin(&record);
            if self.should_skip(&record) {
                self.skip(record.seq, record.time_ns);
            } else {
                let count = &self.slot.page().count;
                bump(&count.lost_restart, 1);
                count.next_seq.store(record.seq.wrapping_add(1), Ordering::Relaxed);
            }
        }
        self.count_known_lost();
        if self.has_will() {
            bump(&self.slot.page().count.lost_restart, 1);
        }
    }

    /// Its backlog.
    pub fn behind(&self) -> Backlog {
        if self.is_asking()
            && let Some((_, grant, _)) = admission::find(self.admissions(), self.follower.request())
        {
            return self.map.behind(grant.start, grant.start_seq);
        }
        let position = self.log.position();
        match (&self.next, self.log.next_seq()) {
            (NextRecord::Withheld(record) | NextRecord::RetryAt { record, .. }, _) => Backlog {
                age_ns: clock::now_ns().saturating_sub(record.time_ns),
                ..self.map.behind(position, record.seq)
            },
            (NextRecord::Log, Some(next)) => self.map.behind(position, next),
            (NextRecord::Log, None) => Backlog::default(),
        }
    }
}
