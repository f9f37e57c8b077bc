//! Liveliness of a publisher: its newest message, and its explicit assertions.
//!
//! A message is itself a sign of life, so deadlines and leases add no cost to a send: their watchers read the
//! log.

use std::sync::atomic::Ordering;

use super::PublisherMap;
use crate::channel::reader_table::ReaderTable;
use crate::os::clock;

/// The newest message of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewestMessage {
    /// Number of messages sent so far, including this one.
    pub sent: u64,
    /// When it was sent on this host, according to its publisher, CLOCK_MONOTONIC in ns. For a message of
    /// another host, its arrival time: deadlines and leases apply to arrivals.
    pub sent_ns: u64,
}

impl PublisherMap {
    /// The newest message; `None` before the first one, and briefly while another is being committed.
    pub fn newest(&self) -> Option<NewestMessage> {
        let tail = &self.control().tail;
        let sent = tail.seq.load(Ordering::Acquire);
        // SYNC-COMMIT: see `LogWriter::push`. Both values may belong to a message that is not committed yet.
        let last = tail.last.load(Ordering::Acquire);
        let sent_ns = self.log().sent_at(last, sent.checked_sub(1)?)?;
        // After the read of the log, which has seen the commit.
        let sent_ns = sent_ns.max(self.control().flow.forwarded_ns.load(Ordering::Acquire));
        Some(NewestMessage { sent, sent_ns })
    }

    /// When the publisher last asserted that it is alive, CLOCK_MONOTONIC in ns; 0 if it never has.
    pub fn asserted_ns(&self) -> u64 {
        self.control().flow.asserted_ns.load(Ordering::Acquire)
    }

    /// When the publisher last showed that it is alive, by a message or an assertion, CLOCK_MONOTONIC in ns.
    /// A stamp from the future is invalid and counts as now.
    pub fn last_alive_ns(&self, now_ns: u64) -> u64 {
        let newest_ns = self.newest().map_or(0, |newest| newest.sent_ns);
        self.asserted_ns().max(newest_ns).min(now_ns)
    }
}

/// What the publisher's own node records in its page.
impl ReaderTable {
    /// The publisher's file, as others see it.
    pub fn map(&self) -> &PublisherMap {
        &self.map
    }

    /// Asserts that the publisher is alive.
    pub fn assert_alive(&self) {
        self.map.control().flow.asserted_ns.store(clock::now_ns(), Ordering::Release);
    }

    /// Counts deadline periods in which the publisher sent nothing.
    pub fn count_deadline_missed(&self, periods: u64) {
        self.map.control().flow.deadline_missed.fetch_add(periods, Ordering::Relaxed);
    }

    /// Number of deadline periods so far in which the publisher sent nothing.
    pub fn deadline_missed(&self) -> u64 {
        self.map.control().flow.deadline_missed.load(Ordering::Relaxed)
    }
}
