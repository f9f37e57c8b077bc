//! What a reader counts of itself, in its own page, for tools that look from outside.

use std::sync::atomic::{AtomicU64, Ordering};

use rnet_core::bucket_of;
use rnet_ring::layout::{LATENCY_BUCKETS, ReaderSlot};
use rnet_ring::record::Record;

/// Counts a message that is handed to the user.
#[inline]
pub(crate) fn taken(page: &ReaderSlot, record: &Record, len: u64, taken_ns: u64) {
    let count = &page.count;
    bump(&count.received, 1);
    bump(&count.bytes, len);
    count.next_seq.store(record.seq.wrapping_add(1), Ordering::Relaxed);
    count.newest_time_ns.store(record.time_ns, Ordering::Relaxed);
    // A stamp from the future is a hostile one.
    let latency = taken_ns.saturating_sub(record.time_ns);
    bump(&count.sum_latency_ns, latency);
    if latency > count.max_latency_ns.load(Ordering::Relaxed) {
        count.max_latency_ns.store(latency, Ordering::Relaxed);
    }
    bump(&page.latency[bucket_of(latency).min(LATENCY_BUCKETS - 1)], 1);
}

/// Counts a message whose chunk carries a newer one already, or went with its publisher. For a
/// reliable reader that was not let go only the second can be: its chunks are not reused.
#[cold]
pub(crate) fn lost_chunk(page: &ReaderSlot, detached: bool, gone: bool) {
    let count = &page.count;
    let cause = match (detached, gone) {
        (true, _) => &count.lost_detached,
        (false, true) => &count.lost_restart,
        (false, false) => &count.lost_overrun,
    };
    bump(cause, 1);
}

/// Adds to a counter that only this thread writes: a plain addition, not a locked one.
#[inline]
pub(crate) fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}
