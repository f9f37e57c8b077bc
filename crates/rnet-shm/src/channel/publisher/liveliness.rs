//! Signs of life of a publisher: its newest message, and what it asserts without one.
//!
//! A message is a sign by itself, so deadlines and leases cost a send nothing: whoever watches one looks at
//! the log.

use std::sync::atomic::Ordering;

use super::PublisherMap;
use crate::channel::reader_table::ReaderTable;
use crate::os::clock;

/// The newest message of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewestMessage {
    /// Messages sent so far, this one included.
    pub sent: u64,
    /// When it was sent on this host, as its publisher says, CLOCK_MONOTONIC in ns. One of another host was sent
    /// when it came: deadlines and leases are about what comes.
    pub sent_ns: u64,
}

impl PublisherMap {
    /// The newest message; `None` before the first one, and for a moment while another is being committed.
    pub fn newest(&self) -> Option<NewestMessage> {
        let tail = &self.control().tail;
        let sent = tail.seq.load(Ordering::Acquire);
        // SYNC-COMMIT: see `LogWriter::push`. Both may be those of a message that is not committed yet.
        let last = tail.last.load(Ordering::Acquire);
        let sent_ns = self.log().sent_at(last, sent.checked_sub(1)?)?;
        // After the look at the log, which has seen the commit.
        let sent_ns = sent_ns.max(self.control().flow.forwarded_ns.load(Ordering::Acquire));
        Some(NewestMessage { sent, sent_ns })
    }

    /// When the publisher last asserted that it is alive, CLOCK_MONOTONIC in ns; 0 if it never has.
    pub fn asserted_ns(&self) -> u64 {
        self.control().flow.asserted_ns.load(Ordering::Acquire)
    }

    /// When the publisher last showed that it is alive, by a message or without, CLOCK_MONOTONIC in ns. A
    /// stamp from the future is a hostile one, and counts as now.
    pub fn last_alive_ns(&self, now_ns: u64) -> u64 {
        let newest_ns = self.newest().map_or(0, |newest| newest.sent_ns);
        self.asserted_ns().max(newest_ns).min(now_ns)
    }
}

/// What the publisher's own node notes in its page.
impl ReaderTable {
    /// The publisher's file, as others see it.
    pub fn map(&self) -> &PublisherMap {
        &self.map
    }

    /// Asserts that the publisher is alive.
    pub fn assert_alive(&self) {
        self.map.control().flow.asserted_ns.store(clock::now_ns(), Ordering::Release);
    }

    /// Counts periods of the publisher's deadline in which it sent nothing.
    pub fn count_deadline_missed(&self, periods: u64) {
        self.map.control().flow.deadline_missed.fetch_add(periods, Ordering::Relaxed);
    }

    /// Periods of the publisher's deadline so far in which it sent nothing.
    pub fn deadline_missed(&self) -> u64 {
        self.map.control().flow.deadline_missed.load(Ordering::Relaxed)
    }
}
