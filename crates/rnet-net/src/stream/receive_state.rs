//! What was received, and when it has to be acknowledged.

use crate::wire::{ACK_AT_ONCE, Header};

use super::Accept;

/// The longest delay of an acknowledgement.
pub const ACK_DELAY_NS: u64 = 20_000_000;
/// The shortest delay if the sending thread is awake anyway.
const ACK_EARLY_NS: u64 = 10_000_000;
/// The most unacknowledged bytes. If the window is smaller, its sender asks earlier. A frame with the
/// credit of a channel follows each MiB of it and acknowledges as well. An acknowledgement wakes two
/// threads on either host, which costs as much as sending 128 KiB.
const ACK_BYTES: u64 = 5 << 18;

#[derive(Debug, Default)]
pub struct ReceiveState {
    /// Number of the next frame.
    next: u64,
    /// Highest received stamp, and when it came.
    newest: Option<(u64, u64)>,
    /// Bytes since the last acknowledgement.
    bytes: u64,
    /// When the last numbered frame came.
    numbered_at_ns: Option<u64>,
    /// When an acknowledgement has to leave.
    due_at_ns: Option<u64>,
}

impl ReceiveState {
    pub fn reset(&mut self) {
        (self.next, self.bytes) = (0, 0);
        self.request_ack();
    }

    /// Requests an acknowledgement at once.
    pub fn request_ack(&mut self) {
        self.due_at_ns = Some(0);
    }

    pub fn ack_due_at(&self) -> Option<u64> {
        self.due_at_ns
    }

    pub fn is_ack_due(&self, now_ns: u64) -> bool {
        self.due_at_ns.is_some_and(|due_ns| due_ns <= now_ns + (ACK_DELAY_NS - ACK_EARLY_NS))
    }

    /// When the last frame came that had to be acknowledged.
    pub fn numbered_at(&self) -> Option<u64> {
        self.numbered_at_ns
    }

    pub fn note_newest(&mut self, now_ns: u64, sent_ns: u64) {
        if self.newest.is_none_or(|(newest_ns, _)| newest_ns < sent_ns) {
            self.newest = Some((sent_ns, now_ns));
        }
    }

    /// Accepts a numbered frame.
    pub fn accept_numbered(&mut self, now_ns: u64, header: &Header) -> Accept {
        if header.number != self.next {
            self.request_ack();
            return if header.number < self.next { Accept::Duplicate } else { Accept::OutOfOrder };
        }
        self.next += 1;
        self.numbered_at_ns = Some(now_ns);
        self.bytes += u64::from(header.len);
        if header.flags & ACK_AT_ONCE != 0 || self.bytes >= ACK_BYTES {
            self.request_ack();
        } else if self.due_at_ns.is_none() {
            self.due_at_ns = Some(now_ns + ACK_DELAY_NS);
        }
        Accept::New
    }

    /// `next`, `echo_ns` and `held_ns` of a frame that leaves.
    pub fn acknowledgement(&mut self, now_ns: u64) -> (u64, u64, u64) {
        (self.bytes, self.due_at_ns) = (0, None);
        let (echo_ns, at_ns) = self.newest.unwrap_or((0, now_ns));
        (self.next, echo_ns, now_ns.saturating_sub(at_ns))
    }
}
