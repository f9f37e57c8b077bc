//! Frames that are being filled, that wait to be sent, or that wait to be acknowledged.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use crate::wire::{Encoder, HEADER_LEN, Header, Item, MAX_FRAME_LEN, PlainData};

use super::round_trip::RoundTrip;
use super::window::Window;
use super::{Limits, PushError};

/// Length at which a frame is full, without a window.
const FULL_FRAME_LEN: usize = 16 << 10;
/// The longest fields of a `Fragment`.
const FRAGMENT_FIELDS: usize = 96;
/// The same for a message without metadata.
const MESSAGE_FIELDS: usize = 48;
/// Bytes that may wait to be sent, however small the window is.
const MIN_UNSENT_BYTES: usize = 16 << 10;
/// Buffers that are kept for later frames.
const MAX_SPARE_BUFFERS: usize = 64;

/// How many bytes a fragment should carry.
pub fn fragment_len(window: Option<&Window>) -> usize {
    window.map_or(MAX_FRAME_LEN, Window::frame_len) - HEADER_LEN - FRAGMENT_FIELDS
}

/// The next frame to send.
#[derive(Debug)]
pub struct NextFrame {
    at: usize,
    pub number: u64,
    pub len: usize,
    /// Has to be acknowledged at once.
    pub ack_now: bool,
    pub repeated: bool,
}

#[derive(Debug)]
struct QueuedFrame {
    bytes: Arc<Vec<u8>>,
    /// Its last stamp; 0 if it was not sent.
    sent_ns: u64,
    /// When it was first sent.
    first_ns: u64,
}

#[derive(Debug)]
pub struct SendQueue {
    limits: Limits,
    encoder: Encoder,
    /// Empty, or a header and items.
    filling: Vec<u8>,
    /// The frame that is being filled may leave.
    flushed: bool,
    /// Full frames that are not acknowledged, in order.
    frames: VecDeque<QueuedFrame>,
    /// Number of the first of these.
    first: u64,
    /// The number after the highest that was ever sent.
    sent_end: u64,
    /// How many of `frames` are in flight; the others wait to be sent, or to be sent again.
    under_way: usize,
    queued_bytes: usize,
    under_way_bytes: usize,
    /// Bytes sent since an acknowledgement was last requested.
    bytes_since_ack_request: usize,
    /// When the first frame in flight is retransmitted.
    repeat_at_ns: Option<u64>,
    spare: Vec<Vec<u8>>,
}

impl SendQueue {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            encoder: Encoder::default(),
            filling: Vec::new(),
            flushed: false,
            frames: VecDeque::new(),
            first: 0,
            sent_end: 0,
            under_way: 0,
            queued_bytes: 0,
            under_way_bytes: 0,
            bytes_since_ack_request: 0,
            repeat_at_ns: None,
            spare: Vec::new(),
        }
    }

    /// Drops everything; returns the number of dropped frames.
    pub fn reset(&mut self) -> u64 {
        let dropped = self.frames.len() + usize::from(!self.filling.is_empty());
        let (limits, spare) = (self.limits, mem::take(&mut self.spare));
        *self = Self { spare, ..Self::new(limits) };
        dropped as u64
    }

    pub fn queued_bytes(&self) -> usize {
        self.queued_bytes + self.filling.len()
    }

    pub fn unacknowledged_since(&self) -> Option<u64> {
        self.frames.front().filter(|frame| frame.sent_ns != 0).map(|frame| frame.first_ns)
    }

    pub fn repeat_at(&self) -> Option<u64> {
        self.repeat_at_ns
    }

    #[inline]
    pub fn has_room(&self, window: Option<&Window>) -> bool {
        let queued_bytes = self.queued_bytes();
        let unsent_limit = match window {
            Some(window) => (2 * window.bytes() as usize).max(MIN_UNSENT_BYTES),
            None => usize::MAX,
        };
        queued_bytes < self.limits.unacknowledged_bytes
            && queued_bytes - self.under_way_bytes < unsent_limit.min(self.limits.unsent_bytes)
    }

    /// Whether anything waits to be sent.
    pub fn has_unsent(&self) -> bool {
        self.under_way < self.frames.len() || !self.filling.is_empty()
    }

    #[inline]
    pub fn push(&mut self, item: &Item<'_>, window: Option<&Window>) -> Result<(), PushError> {
        if !self.has_room(window) {
            return Err(PushError::Full);
        }
        self.push_along(item, window)
    }

    /// Adds an item that belongs to the previous one, for which there was capacity.
    #[inline]
    pub fn push_along(
        &mut self,
        item: &Item<'_>,
        window: Option<&Window>,
    ) -> Result<(), PushError> {
        let full_len = window.map_or(FULL_FRAME_LEN, Window::frame_len);
        let before = self.filling.len();
        self.encode(item);
        if self.filling.len() > full_len && before > 0 {
            self.filling.truncate(before);
            self.seal();
            self.encode(item);
        }
        let len = self.filling.len();
        if len > MAX_FRAME_LEN {
            self.filling.clear();
            return Err(PushError::TooLong(len - HEADER_LEN));
        }
        if len >= full_len {
            self.seal();
        }
        Ok(())
    }

    /// Like [`SendQueue::push_along`], for a message with the common fields only.
    #[inline]
    pub fn push_plain(
        &mut self,
        plain: PlainData<'_>,
        window: Option<&Window>,
    ) -> Result<(), PushError> {
        let full_len = window.map_or(FULL_FRAME_LEN, Window::frame_len);
        let len = self.filling.len();
        if len == 0 || len + MESSAGE_FIELDS + plain.payload.len() >= full_len {
            return self.push_along(&Item::Data(plain.into()), window);
        }
        self.encoder.encode_plain(plain, &mut self.filling);
        Ok(())
    }

    #[inline]
    fn encode(&mut self, item: &Item<'_>) {
        if self.filling.is_empty() {
            // Without reserved capacity: very many small ones may be kept.
            self.filling = self.spare.pop().unwrap_or_default();
            self.filling.clear();
            self.filling.resize(HEADER_LEN, 0);
            self.encoder = Encoder::default();
        }
        self.encoder.encode(item, &mut self.filling);
    }

    fn seal(&mut self) {
        let bytes = mem::take(&mut self.filling);
        self.flushed = false;
        self.queued_bytes += bytes.len();
        self.frames.push_back(QueuedFrame { bytes: Arc::new(bytes), sent_ns: 0, first_ns: 0 });
    }

    pub fn end(&self) -> u64 {
        self.first + self.frames.len() as u64 + u64::from(!self.filling.is_empty())
    }

    pub fn has_acknowledged(&self, end: u64) -> bool {
        self.first >= end
    }

    pub fn flush(&mut self) {
        self.flushed = !self.filling.is_empty();
    }

    /// The frame that must leave now.
    pub fn next(
        &mut self,
        now_ns: u64,
        window: Option<&mut Window>,
        round_trip: &mut RoundTrip,
    ) -> Option<NextFrame> {
        if self.repeat_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            round_trip.timed_out();
            self.repeat_at_ns = Some(now_ns + round_trip.time_out_ns());
            let len = self.frames[0].bytes.len();
            return Some(NextFrame {
                at: 0,
                number: self.first,
                len,
                ack_now: true,
                repeated: true,
            });
        }
        let at = self.under_way;
        let len = match self.frames.get(at) {
            Some(frame) => frame.bytes.len(),
            None if self.flushed => self.filling.len(),
            None => return None,
        };
        let mut ack_now = false;
        if let Some(window) = window {
            if !window.admits(now_ns, self.under_way_bytes, len) {
                return None;
            }
            self.bytes_since_ack_request += len;
            ack_now = window.on_send(
                now_ns,
                len,
                self.under_way_bytes + len,
                self.bytes_since_ack_request,
            );
        }
        if at == self.frames.len() {
            self.seal();
        }
        let repeated = self.frames[at].sent_ns != 0;
        ack_now |= repeated;
        if ack_now {
            self.bytes_since_ack_request = 0;
        }
        self.under_way += 1;
        self.under_way_bytes += len;
        self.repeat_at_ns.get_or_insert(now_ns + round_trip.time_out_ns());
        Some(NextFrame { at, number: self.first + at as u64, len, ack_now, repeated })
    }

    /// Writes the header of the frame that leaves.
    pub fn hand_out(&mut self, next: NextFrame, now_ns: u64, header: Header) -> Arc<Vec<u8>> {
        let frame = &mut self.frames[next.at];
        if !next.repeated {
            frame.first_ns = now_ns;
        }
        frame.sent_ns = header.sent_ns;
        self.sent_end = self.sent_end.max(next.number + 1);
        // Copies it if the caller still has the earlier frame.
        header.encode(Arc::make_mut(&mut frame.bytes).as_mut_slice());
        Arc::clone(&frame.bytes)
    }

    /// Whether the peer can expect this number next.
    pub fn can_acknowledge(&self, next: u64) -> bool {
        next <= self.sent_end
    }

    /// Applies an acknowledgement: the peer expects `next`, and the newest frame that it has received has
    /// the stamp `echo_ns`. Returns whether a frame was lost.
    pub fn acknowledge(
        &mut self,
        now_ns: u64,
        next: u64,
        echo_ns: u64,
        round_trip: &mut RoundTrip,
    ) -> bool {
        let before = self.first;
        while self.first < next {
            self.free_first();
        }
        if self.first != before {
            round_trip.progress();
            self.repeat_at_ns = None;
        }
        let lost = self.under_way > 0
            && next == self.first
            && self.frames.front().is_some_and(|first| first.sent_ns < echo_ns);
        if lost {
            (self.under_way, self.under_way_bytes) = (0, 0);
        }
        if self.under_way == 0 {
            self.repeat_at_ns = None;
        } else {
            self.repeat_at_ns.get_or_insert(now_ns + round_trip.time_out_ns());
        }
        lost
    }

    fn free_first(&mut self) {
        let Some(first) = self.frames.pop_front() else { return };
        let len = first.bytes.len();
        self.first += 1;
        self.queued_bytes -= len;
        if self.under_way > 0 {
            self.under_way -= 1;
            self.under_way_bytes -= len;
        }
        if self.spare.len() < MAX_SPARE_BUFFERS
            && let Ok(buffer) = Arc::try_unwrap(first.bytes)
        {
            self.spare.push(buffer);
        }
    }
}
