//! What a reader counts of itself, in its own page, for tools that look from outside.

use std::sync::atomic::{AtomicU64, Ordering};

use rnet_ring::layout::ReaderSlot;

/// The sums of what was handed to the user, as they stand in the reader's page. They are kept here
/// as well, because to read them back from there would cost the message path more.
#[derive(Debug, Default)]
pub(crate) struct ReaderStats {
    pub received: u64,
    pub bytes: u64,
    pub sum_latency_ns: u64,
    pub max_latency_ns: u64,
}

impl ReaderStats {
    /// Goes on from what the page says, which its owner alone writes.
    pub(crate) fn of(page: &ReaderSlot) -> ReaderStats {
        let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ReaderStats {
            received: now(&page.count.received),
            bytes: now(&page.count.bytes),
            sum_latency_ns: now(&page.count.sum_latency_ns),
            max_latency_ns: now(&page.count.max_latency_ns),
        }
    }
}

/// The counters of losses, in the order of `LossCause::ALL`.
pub(crate) fn loss_counters(page: &ReaderSlot) -> [&AtomicU64; 4] {
    let count = &page.count;
    [&count.lost_overrun, &count.lost_link, &count.lost_restart, &count.lost_detached]
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
