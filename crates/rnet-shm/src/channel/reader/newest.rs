//! The newest message of a publisher, for a subscriber that wants no older one: `latest`.

use std::sync::atomic::Ordering;

use super::{ChannelError, NextRecord, Reader};
use crate::channel::reader_stats::bump;

impl Reader {
    /// Finds the newest message, which [`Reader::take`] then hands out and [`Reader::skip_withheld`] skips,
    /// and skips those before it. Returns when it was sent.
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
            // This record is newer.
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
            // Everything that its publisher has sent so far was received.
            self.seen_lost = self.map.known_lost();
            self.drop_duplicate(&record);
            return Ok(None);
        }
        // Counted now: this record may be the last one of a publisher that has left.
        if self.has_unseen_lost() {
            self.count_known_lost();
        }
        self.count_known_lost_of(&record);
        self.slot.page().count.next_seq.store(record.seq, Ordering::Relaxed);
        if self.has_expired(record.time_ns) {
            // A newer record does not exist either.
            self.note_origin(&record);
            self.skip(record.seq, record.time_ns);
            self.finish_skip(record.kind);
            return Ok(None);
        }
        self.next = NextRecord::Withheld(record);
        Ok(Some(record.time_ns))
    }
}
