//! A writer that sleeps for room, and the readers that make it.
//!
//! The writer names how far a reader must be, shows a ticket and looks at the cursors once more; a
//! reader shows its cursor and looks for a ticket. Both pass a full fence between their store and
//! their load: either the writer sees the cursor, or the reader the ticket.

use crate::fail_point;
use crate::layout::FlowLine;
use crate::sync::{AtomicU64, Barrier, FullFences, Ordering};
use crate::wake;

/// The writer's side, before it sleeps: readers from `wanted` on are to wake it. What announces
/// its sleep after this passes a full fence.
pub fn set_wake_position(flow: &FlowLine, wanted: u64) {
    // SYNC-ROOM: before the ticket, whose release store shows it too.
    flow.wake_position.store(wanted, Ordering::Relaxed);
    fail_point!("backpressure.position");
}

/// The reader's side: shows that everything below `position` is done with. Returns whether to ring
/// the writer.
#[inline]
pub fn publish_cursor(cursor: &AtomicU64, position: u64, flow: &FlowLine, rung: &mut u64) -> bool {
    // SYNC-CURSOR: release, because our copies out of the log are over; pairs with
    // `ReaderRef::needed`.
    cursor.store(position, Ordering::Release);
    fail_point!("take.cursor");
    // SYNC-ROOM: pairs with the barrier of `wake::announce`.
    FullFences.light();
    position >= flow.wake_position.load(Ordering::Relaxed) && wake::must_ring(&flow.asleep, rung)
}
