//! What the publisher itself knows to be missing from what it sends: the loss of a link, for example.
//!
//! A reader counts it where it meets the record that says so, where the log lost records, and where it
//! finds nothing more. The publisher's sums tell what was counted already, so a gap counts once, and no
//! record that was overrun takes one with it.

use std::sync::atomic::Ordering;

use rnet_ring::record::Record;

use super::Reader;
use crate::channel::extension::Extension;
use crate::channel::reader_stats::{bump, loss_counters};

impl Reader {
    /// Whether the publisher knows of more than was counted.
    #[inline]
    pub(super) fn has_unseen_lost(&self) -> bool {
        self.map.known_lost().iter().zip(&self.seen_lost).any(|(now, seen)| now > seen)
    }

    /// What the publisher knows to be missing, by cause, as far as it was counted or not promised.
    pub fn known_lost(&self) -> [u64; 4] {
        self.seen_lost
    }

    /// When the publisher last asserted that it is alive, CLOCK_MONOTONIC in ns; 0 if it never has.
    pub fn asserted_ns(&self) -> u64 {
        self.map.asserted_ns()
    }

    /// Counts all that the publisher knows of by now.
    #[cold]
    pub fn count_known_lost(&mut self) {
        for (at, sum) in self.map.known_lost().into_iter().enumerate() {
            self.count_known_lost_to(at, sum);
        }
    }

    /// What the extension words say of the record that was read last.
    #[inline]
    pub(super) fn extension_of(&self, record: &Record) -> Extension {
        self.batch.extension(record, self.log.extension_len(record))
    }

    /// Counts what a record says.
    pub(super) fn count_known_lost_of(&mut self, record: &Record) {
        let extension = self.extension_of(record);
        if let Some(gap) = extension.meta.gap {
            self.count_known_lost_to(gap.cause as usize, extension.known_lost);
        }
    }

    fn count_known_lost_to(&mut self, at: usize, sum: u64) {
        let seen = &mut self.seen_lost[at];
        let counter = loss_counters(self.slot.page())[at];
        // A sum that is absurd fills the counter, and does not turn it round.
        let room = u64::MAX - counter.load(Ordering::Relaxed);
        bump(counter, sum.saturating_sub(*seen).min(room));
        *seen = sum.max(*seen);
    }
}
