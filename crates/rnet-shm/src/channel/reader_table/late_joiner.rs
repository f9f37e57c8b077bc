//! The start position of a late joiner: where a reader that requests history begins in the log.

use std::sync::atomic::Ordering;

use rnet_ring::binding::HistoryRequest;
use rnet_ring::{LogReader, Pull};

use super::ReaderTable;

/// How many times the end of the log is read until its two words are consistent; a fast writer is between
/// their stores for nanoseconds.
const START_TRIES: u32 = 1_000_000;
const SPINS_PER_YIELD: u32 = 100;

impl ReaderTable {
    /// Position and sequence number from which a new reader reads: the end, or the start of the requested
    /// history, which is at or after `lowest`.
    ///
    /// Before the writer knows the reader, the result is only a lower bound: later newest messages are after
    /// it, and the writer may have dropped it by then. After the epoch was incremented, the result is exact:
    /// a push in flight that has not seen the reader yet never drops the newest messages that are kept for
    /// late joiners. It may drop older ones: a reader that requested those finds itself lapped, and starts
    /// with the oldest record.
    pub(crate) fn starting_point(&self, lowest: u64, past: HistoryRequest) -> (u64, u64) {
        let log = self.map.log();
        let line = &log.control.tail;
        let mut tries = 0;
        let (end, end_seq) = loop {
            if let Some(end) = log.end() {
                break end;
            }
            tries += 1;
            if tries > START_TRIES {
                // This process has corrupted its own log by truncating it; any number will do.
                break (line.tail.load(Ordering::Acquire), line.seq.load(Ordering::Relaxed));
            }
            if tries % SPINS_PER_YIELD == 0 {
                // The writer's thread may be waiting for this processor.
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        };
        let from_seq = match past {
            HistoryRequest::Newest(count) => end_seq.saturating_sub(count),
            HistoryRequest::From(seq) => seq,
        };
        if from_seq >= end_seq {
            return (end, end_seq);
        }
        let _scan = self.scan();
        let mut reader = LogReader::new(lowest.max(log.control.head.head.load(Ordering::Acquire)));
        if matches!(past, HistoryRequest::From(_)) {
            reader.resync_to_oldest();
        }
        let mut buf = vec![0u64; 2048];
        loop {
            let before = reader.position();
            if before >= end {
                return (end, end_seq);
            }
            match reader.next(&buf) {
                Ok(Some(record)) if record.seq >= from_seq => return (before, record.seq),
                Ok(Some(_)) => {}
                Ok(None) => match reader.pull(log, &mut buf) {
                    Pull::Batch | Pull::Lapped => {}
                    Pull::Empty | Pull::Corrupt(_) => return (end, end_seq),
                },
                Err(_) => return (end, end_seq),
            }
        }
    }
}
