//! What a subscriber has had of a publisher of another host, whichever proxy has brought it.
//!
//! When the link between hosts changes hands, its new life opens a proxy of its own and repeats what it
//! does not know to have arrived. A record of a proxy says of which publisher it is and its number there.
//! So a reader drops what it has had, and a reader of the next proxy goes on from there
//! ([`Reader::resume_after`]). A repetition counts as nothing: it was counted when it came first. Records
//! without extension words never come here.

use std::sync::atomic::Ordering;

use rnet_core::Origin;
use rnet_ring::record::Record;

use super::Reader;

/// How far below what was had a number may be to be a repetition. One further below is of another numbering: so
/// who claims a large number for a publisher that is not his silences it for no longer than for so many.
const MAX_DUPLICATE_DISTANCE: u64 = 1 << 16;

/// What extension words make of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DuplicateCheck {
    /// It has none.
    NoExtension,
    /// It may name its origin, and is not a repetition.
    New,
    /// It was had before.
    Duplicate,
}

impl Reader {
    /// The last message that was had of the publisher for which this one is a proxy.
    pub fn last_origin(&self) -> Option<Origin> {
        self.last_origin
    }

    /// Messages up to this one were had by way of another proxy of the same publisher. So all that this one sends
    /// is wanted, and all that it knows to be missing: also what came before it has admitted us.
    pub fn resume_after(&mut self, last_origin: Origin) {
        self.last_origin = Some(last_origin);
        self.seen_lost = Default::default();
        self.is_resuming = self.is_asking();
        if !self.is_resuming && self.log.next_seq().is_some() {
            self.log.expect_from(0);
        }
    }

    /// What was had of the origin of the record, and its number.
    fn last_origin_of(&self, record: &Record) -> Option<(u64, u64)> {
        let last_origin = self.last_origin?;
        let origin = self.extension_of(record).meta.origin?;
        let same = (origin.host, origin.publisher) == (last_origin.host, last_origin.publisher);
        same.then_some((last_origin.seq, origin.seq))
    }

    pub(super) fn is_duplicate(&self, record: &Record) -> bool {
        let is_duplicate = |(last_seq, seq): (u64, u64)| {
            last_seq.checked_sub(seq).is_some_and(|below| below < MAX_DUPLICATE_DISTANCE)
        };
        self.last_origin_of(record).is_some_and(is_duplicate)
    }

    /// How many of the records that the log lost before this one were no repetitions.
    pub(super) fn lost_without_duplicates(&self, lost: u64, record: &Record) -> u64 {
        match self.last_origin_of(record) {
            Some((last_seq, seq)) if seq > last_seq => lost.min(seq - last_seq - 1),
            Some(_) if self.is_duplicate(record) => 0,
            _ => lost,
        }
    }

    /// Notes what the record has as its origin: it was handed out, or counted.
    #[cold]
    #[inline(never)]
    pub(super) fn note_origin(&mut self, record: &Record) {
        if self.meta.proxy.is_some()
            && let Some(origin) = self.extension_of(record).meta.origin
        {
            self.last_origin = Some(origin);
        }
    }

    /// Goes on behind a repetition.
    #[cold]
    pub(super) fn drop_duplicate(&mut self, record: &Record) {
        self.slot.page().count.next_seq.store(record.seq.wrapping_add(1), Ordering::Relaxed);
        self.finish_skip(record.kind);
    }

    /// What the publisher knew to be missing when it sent a repetition was counted when that came first.
    pub(super) fn skip_known_lost_of(&mut self, record: &Record) {
        let extension = self.extension_of(record);
        if let Some(gap) = extension.meta.gap {
            let seen = &mut self.seen_lost[gap.cause as usize];
            *seen = extension.known_lost.max(*seen);
        }
    }
}
