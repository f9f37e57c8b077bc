//! Messages that the publisher itself knows to be missing from its stream, for example lost on a link.
//!
//! A reader counts them when it meets the record that reports them, when the log lost records, and when it
//! finds no more messages. The publisher's totals show what was already counted, so a gap counts once, and an
//! overrun record does not hide one.

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

    /// The publisher's known lost messages that were counted or not promised, by cause.
    pub fn known_lost(&self) -> [u64; 4] {
        self.seen_lost
    }

    /// When the publisher last asserted that it is alive, CLOCK_MONOTONIC in ns; 0 if it never has.
    pub fn asserted_ns(&self) -> u64 {
        self.map.asserted_ns()
    }

    /// Counts all losses that the publisher knows of by now.
    #[cold]
    pub fn count_known_lost(&mut self) {
        for (at, sum) in self.map.known_lost().into_iter().enumerate() {
            self.count_known_lost_to(at, sum);
        }
    }

    /// The extension words of the record that was read last.
    #[inline]
    pub(super) fn extension_of(&self, record: &Record) -> Extension {
        self.batch.extension(record, self.log.extension_len(record))
    }

    /// Counts the losses that a record reports.
    pub(super) fn count_known_lost_of(&mut self, record: &Record) {
        let extension = self.extension_of(record);
        if let Some(gap) = extension.meta.gap {
            self.count_known_lost_to(gap.cause as usize, extension.known_lost);
        }
    }

    fn count_known_lost_to(&mut self, at: usize, sum: u64) {
        let seen = &mut self.seen_lost[at];
        let counter = loss_counters(self.slot.page())[at];
        // An absurd total saturates the counter instead of wrapping it.
        let room = u64::MAX - counter.load(Ordering::Relaxed);
        bump(counter, sum.saturating_sub(*seen).min(room));
        *seen = sum.max(*seen);
    }
}
