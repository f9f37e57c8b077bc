//! A reader's backlog, computed from the log.

use std::sync::atomic::{AtomicU64, Ordering};

use rnet_core::Backlog;
use rnet_ring::layout::{ADMISSION_ACTIVE, Admission, ReaderSlot};

use super::PublisherMap;
use crate::os::clock;

impl PublisherMap {
    /// The backlog of a reader that has consumed everything below the position `from` and every message whose
    /// number is below `next_seq`.
    pub fn behind(&self, from: u64, next_seq: u64) -> Backlog {
        let log = self.log();
        let messages = log.control.tail.seq.load(Ordering::Acquire).saturating_sub(next_seq);
        let sent_ns = if messages == 0 { None } else { log.sent_at(from, next_seq) };
        // A stamp from the future is invalid.
        let age = |sent_ns: u64| clock::now_ns().saturating_sub(sent_ns);
        Backlog { messages, age_ns: sent_ns.map_or(0, age) }
    }

    /// Like [`PublisherMap::behind`], for another thread's reader, from its page. If the reader has not read
    /// yet, its backlog is what was sent since its admission.
    pub fn behind_of(&self, page: &ReaderSlot) -> Backlog {
        let word = |word: &AtomicU64| word.load(Ordering::Acquire);
        let us = word(&page.bind.subscription);
        let is_ours =
            |a: &&Admission| word(&a.state) == ADMISSION_ACTIVE && word(&a.subscription) == us;
        let admission = self.admissions().iter().find(is_ours);
        let next = word(&page.count.next_seq);
        match admission.map(|a| word(&a.start_seq)).max((next > 0).then_some(next)) {
            Some(next) => self.behind(word(&page.cursor.cursor), next),
            None => Backlog::default(),
        }
    }
}
