//! What a reader does not hand out though it was not lost, and how far it is behind.
//!
//! A reader that keeps the last few messages passes over a message once more than that many have
//! been committed from it on, as of the moment at which it would be handed out. What it passes over
//! is counted as skipped, and so is what the log lost before the reader looked, as far as it would
//! have been passed over anyway: a loss is only what the reader still wanted.
//!
//! A message that is older than its publisher's lifespan at that moment has expired, whatever else the reader
//! keeps. So has what the log lost before an expired message: it was sent earlier.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rnet_core::Backlog;
use rnet_ring::admission;
use rnet_ring::follower::Gap;
use rnet_ring::record::Record;
use rnet_ring::{MAX_COMMIT_RECORDS, RecordKind};

use super::duplicates::DuplicateCheck;
use super::{ChannelError, NextRecord, Reader};
use crate::channel::reader_stats::bump;
use crate::os::clock;

/// Which messages the user still wants.
#[derive(Debug)]
pub(super) struct HistoryFilter {
    /// How many unread ones; [`u64::MAX`] for all.
    keep_last: u64,
    /// How old one may be to be handed out, in ns; [`u64::MAX`] for any age.
    lifespan_ns: u64,
    /// Whether one of the two says that some messages are not handed out.
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
    /// Whether newer messages have taken the place of this one, or it has expired. A comparison for a
    /// reader that takes all; for others a look at the log's end and the clock as they are now, not as
    /// they were when the batch was copied: between two messages of a batch the user may have slept.
    #[inline]
    pub(super) fn should_skip(&self, record: &Record) -> bool {
        self.filter.is_active && self.is_superseded_or_expired(record.seq, record.time_ns)
    }

    /// Out of line, so that readers which take all pay for the comparison alone.
    #[inline(never)]
    fn is_superseded_or_expired(&self, seq: u64, sent_ns: u64) -> bool {
        self.is_superseded(seq) || self.has_expired(sent_ns)
    }

    /// Whether a message is older than its publisher's lifespan.
    fn has_expired(&self, sent_ns: u64) -> bool {
        self.filter.lifespan_ns != u64::MAX && self.is_too_old(sent_ns)
    }

    /// Whether a message that was handed out has expired since, which is counted: its user has waited before it was used.
    pub fn count_if_expired(&self, sent_ns: u64) -> bool {
        let expired = self.has_expired(sent_ns);
        if expired {
            bump(&self.slot.page().count.expired, 1);
        }
        expired
    }

    /// Out of line, so that the readers of publishers without a lifespan do not make room for the call. A
    /// stamp from the future is a hostile one.
    #[inline(never)]
    fn is_too_old(&self, sent_ns: u64) -> bool {
        clock::now_ns().saturating_sub(sent_ns) > self.filter.lifespan_ns
    }

    #[inline]
    fn is_superseded(&self, seq: u64) -> bool {
        let end = self.map.control().tail.seq.load(Ordering::Relaxed);
        let newer = end.saturating_sub(seq);
        // Of a reader that keeps all, never.
        newer > self.filter.keep_last
            && (newer - self.filter.keep_last > MAX_COMMIT_RECORDS
                || self.is_superseded_by_committed(seq))
    }

    /// The number at the end of the log is stored before the message is committed. A writer that
    /// died in between must not cost the reader the oldest of those that it keeps.
    #[cold]
    fn is_superseded_by_committed(&self, seq: u64) -> bool {
        let (log, keep) = (self.map.log(), self.filter.keep_last);
        match log.end() {
            Some((_, end)) => end.saturating_sub(seq) > keep,
            None => log.sent_at(self.log.position(), seq.saturating_add(keep)).is_some(),
        }
    }

    /// Counts a message that is passed over, and goes on behind it.
    #[cold]
    pub(super) fn skip(&mut self, seq: u64, sent_ns: u64) {
        let count = &self.slot.page().count;
        bump(self.skip_counter(sent_ns), 1);
        count.next_seq.store(seq.wrapping_add(1), Ordering::Relaxed);
    }

    /// Where a message is counted that is passed over.
    fn skip_counter(&self, sent_ns: u64) -> &AtomicU64 {
        let count = &self.slot.page().count;
        if self.has_expired(sent_ns) { &count.expired } else { &count.skipped }
    }

    /// Counts what is missing before a message, and says whether it is one that was had before.
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

    /// Goes to the newest message, which [`Reader::take`] then hands out and [`Reader::skip_withheld`]
    /// does not, and passes over those before it. Says when it was sent.
    pub fn find_newest(&mut self) -> Result<Option<u64>, ChannelError> {
        if !self.prepare()? {
            return Ok(None);
        }
        let newest = self.map.control().tail.last.load(Ordering::Acquire);
        if newest > self.log.position() {
            self.skip_withheld();
            self.log.seek_newest(self.map.log());
        }
        let mut record = match self.next_record()? {
            Some(record) => record,
            None => match self.found_nothing()? {
                Some(will) => will,
                None => return Ok(None),
            },
        };
        if self.has_will() {
            // That is newer.
            self.next = NextRecord::Withheld(record);
            self.skip_withheld();
            let Some(will) = self.found_nothing()? else { return Ok(None) };
            record = will;
        }
        let lost = self.log.take_lost();
        if lost != 0 {
            bump(self.skip_counter(record.time_ns), self.lost_without_duplicates(lost, &record));
        }
        if self.is_duplicate(&record) {
            // All that its publisher has sent so far was had.
            self.seen_lost = self.map.known_lost();
            self.drop_duplicate(&record);
            return Ok(None);
        }
        // Now: this record may be the last that is read of a publisher that has left.
        if self.has_unseen_lost() {
            self.count_known_lost();
        }
        self.count_known_lost_of(&record);
        self.slot.page().count.next_seq.store(record.seq, Ordering::Relaxed);
        if self.has_expired(record.time_ns) {
            // Nor is there a newer one.
            self.note_origin(&record);
            self.skip(record.seq, record.time_ns);
            self.finish_skip(record.kind);
            return Ok(None);
        }
        self.next = NextRecord::Withheld(record);
        Ok(Some(record.time_ns))
    }

    /// Passes over the message that [`Reader::find_newest`] went to, or that waits for a pin.
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

    /// Lets go of what was committed and not read yet, of a publisher that is gone: what was still wanted
    /// is counted as lost with it.
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

    /// How far it is behind its publisher.
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
