//! A writer that waits for capacity, and the readers that free it.
//!
//! The writer publishes the required reader position, publishes a ticket and checks the cursors once more. A
//! reader publishes its cursor and checks for a ticket. Both pass a full fence between store and load: either
//! the writer sees the cursor, or the reader sees the ticket.

use crate::fail_point;
use crate::layout::FlowLine;
use crate::sync::{AtomicU64, Barrier, FullFences, Ordering};
use crate::wake;

/// Writer side, before it sleeps: readers at or past `wanted` must wake it. The announcement of the sleep
/// that follows passes a full fence.
pub fn set_wake_position(flow: &FlowLine, wanted: u64) {
    // SYNC-ROOM: stored before the ticket, whose release store publishes it too.
    flow.wake_position.store(wanted, Ordering::Relaxed);
    fail_point!("backpressure.position");
}

/// Reader side: publishes that everything below `position` has been read. Returns whether to ring the writer.
#[inline]
pub fn publish_cursor(cursor: &AtomicU64, position: u64, flow: &FlowLine, rung: &mut u64) -> bool {
    // SYNC-CURSOR: release, because the copies out of the log are complete; pairs with `ReaderRef::needed`.
    cursor.store(position, Ordering::Release);
    fail_point!("take.cursor");
    // SYNC-ROOM: pairs with the barrier of `wake::announce`.
    FullFences.light();
    position >= flow.wake_position.load(Ordering::Relaxed) && wake::must_ring(&flow.asleep, rung)
}
