//! How far a reader is, as the writer sees it.

use std::sync::atomic::Ordering;

use rnet_ring::{RecordKind, backpressure, fail_point};

use super::Reader;

/// What the writer has been shown, and what of it was seen.
#[derive(Debug, Default)]
pub(super) struct PublishedCursor {
    position: u64,
    /// [`rnet_ring::layout::FlowLine::full`] when the cursor was last shown for it.
    full: u64,
    rung: u64,
}

impl Reader {
    /// Shows the writer how far we are, and wakes it if it waits for that.
    #[inline]
    pub(super) fn publish_cursor(&mut self) {
        let position = self.log.position();
        if position == self.published.position || self.follower.is_awaiting_admission() {
            return;
        }
        self.published.position = position;
        let (cursor, flow) = (&self.slot.page().cursor.cursor, &self.map.control().flow);
        if !self.reliable {
            cursor.store(position, Ordering::Release);
            fail_point!("take.shown");
        } else if backpressure::publish_cursor(cursor, position, flow, &mut self.published.rung) {
            fail_point!("take.wakes");
            self.location.bells.ring(flow.bell.load(Ordering::Relaxed));
        }
    }

    /// Shows the cursor in the middle of a batch if the writer has found the log full since: a
    /// reader that goes on, however slowly, must not look as if it stood still. After a large
    /// message always, because its memory may be needed long before the batch is used up.
    #[inline]
    pub(super) fn publish_cursor_if_awaited(&mut self, kind: RecordKind) {
        let flow = &self.map.control().flow;
        let full = flow.full.load(Ordering::Relaxed);
        let asleep = flow.asleep.load(Ordering::Relaxed) != 0;
        let position = self.log.position();
        let enough = asleep && position >= flow.wake_position.load(Ordering::Relaxed);
        if enough || full != self.published.full || kind == RecordKind::Chunk {
            self.published.full = full;
            self.publish_cursor();
        } else if asleep {
            // Not enough to wake the writer, which looks for itself when its patience is over.
            self.slot.page().cursor.cursor.store(position, Ordering::Release);
        }
    }
}
