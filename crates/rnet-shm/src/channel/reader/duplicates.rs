//! Detection of messages of another host's publisher that were already received through any proxy.
//!
//! When the link between hosts changes its process, the new process opens its own proxy and repeats messages
//! whose arrival is unconfirmed. A record of a proxy contains its publisher and its number there. So a reader
//! drops what it has already received, and a reader of the next proxy continues from there
//! ([`Reader::resume_after`]). A duplicate is not counted: it was counted on first arrival. Records without
//! extension words are not checked.

use std::sync::atomic::Ordering;

use rnet_core::Origin;
use rnet_ring::record::Record;

use super::Reader;

/// Maximum distance of a duplicate's number below the last received one. A number further below belongs to
/// another numbering. So a peer that claims a large number for another publisher can suppress at most that
/// many of its messages.
const MAX_DUPLICATE_DISTANCE: u64 = 1 << 16;

/// The classification of a record by its extension words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DuplicateCheck {
    /// It has none.
    NoExtension,
    /// It may contain its origin, and is not a duplicate.
    New,
    /// It was already received.
    Duplicate,
}

impl Reader {
    /// The last message that was received from the publisher that this proxy represents.
    pub fn last_origin(&self) -> Option<Origin> {
        self.last_origin
    }

    /// Messages up to this one were received through another proxy of the same publisher. So everything that
    /// this proxy sends is relevant, and everything that it knows to be missing, including what came before
    /// our admission.
    pub fn resume_after(&mut self, last_origin: Origin) {
        self.last_origin = Some(last_origin);
        self.seen_lost = Default::default();
        self.is_resuming = self.is_asking();
        if !self.is_resuming && self.log.next_seq().is_some() {
            self.log.expect_from(0);
        }
    }

    /// The last received number of the record's origin, and the record's number.
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

    /// How many of the records that the log lost before this one were not duplicates.
    pub(super) fn lost_without_duplicates(&self, lost: u64, record: &Record) -> u64 {
        match self.last_origin_of(record) {
            Some((last_seq, seq)) if seq > last_seq => lost.min(seq - last_seq - 1),
            Some(_) if self.is_duplicate(record) => 0,
            _ => lost,
        }
    }

    /// Stores the origin of a record that was handed out or counted.
    #[cold]
    #[inline(never)]
    pub(super) fn note_origin(&mut self, record: &Record) {
        if self.meta.proxy.is_some()
            && let Some(origin) = self.extension_of(record).meta.origin
        {
            self.last_origin = Some(origin);
        }
    }

    /// Skips a duplicate.
    #[cold]
    pub(super) fn drop_duplicate(&mut self, record: &Record) {
        self.slot.page().count.next_seq.store(record.seq.wrapping_add(1), Ordering::Relaxed);
        self.finish_skip(record.kind);
    }

    /// Skips the known gaps of a duplicate: they were counted on its first arrival.
    pub(super) fn skip_known_lost_of(&mut self, record: &Record) {
        let extension = self.extension_of(record);
        if let Some(gap) = extension.meta.gap {
            let seen = &mut self.seen_lost[gap.cause as usize];
            *seen = extension.known_lost.max(*seen);
        }
    }
}
