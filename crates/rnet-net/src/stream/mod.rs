//! The stream between two links on one lane: numbered frames, acknowledgement, retransmission, and the
//! window. docs/design/wire.md, sections 3, 5 and 6.
//!
//! A stream begins at number 0 when both sides know each other's term. Until then a side only introduces
//! itself, by frames of acknowledgement with `to_term` 0. So a numbered frame is always meant for one
//! holder of the link, and data pushed in one pair of terms arrives in it or not at all.
//!
//! A frame is lost if a later one was received and it was not: the network keeps the order of a lane. The
//! sender then goes back to it. A time-out retransmits only one frame, whose acknowledgement shows where to
//! continue, so that a network that is merely slow does not get everything again.

mod clock;
mod receive_state;
mod round_trip;
mod send_queue;
mod window;

use std::ops::Deref;
use std::sync::Arc;

use rnet::Lane;

use crate::wire::{ACK_AT_ONCE, ACK_ONLY, HEADER_LEN, Header, Item, PlainData, VERSION};

use clock::ClockEstimator;
pub use clock::{ClockDrift, ClockOffset};
use receive_state::{ACK_DELAY_NS, ReceiveState};
use round_trip::RoundTrip;
use send_queue::SendQueue;
use window::Window;

/// The first interval at which a link introduces itself to one that does not answer.
const INTRODUCE_FIRST_NS: u64 = 50_000_000;
/// The longest such interval: each is twice the previous one, up to this.
const INTRODUCE_MAX_NS: u64 = 500_000_000;

/// After this time without data, a lane sends an acknowledgement, which shows that it is present.
pub const PULSE_NS: u64 = 100_000_000;
/// A peer that has sent nothing for this long is quiet.
pub const QUIET_NS: u64 = 250_000_000;
/// The interval of frames to a quiet peer: longer than the network keeps a silent connection. A frame that
/// waits for such a connection would keep the network from ending it (docs/design/wire.md, section 2).
const PROBE_NS: u64 = 1_100_000_000;

/// The time in which clocks drift apart by a microsecond at most.
const OFFSET_HOLDS_NS: u64 = 10_000_000;

/// Limits of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of frames that are kept until they are acknowledged.
    pub unacknowledged_bytes: usize,
    /// Bytes of these that wait to be handed to the network.
    pub unsent_bytes: usize,
    /// Delay that does not count as a queue in the network, in ns; `None` for a stream without a window.
    pub noise_ns: Option<u64>,
}

impl Limits {
    /// The limits of a lane.
    pub fn of(lane: Lane) -> Self {
        let noise_ns = match lane {
            Lane::Urgent => None,
            Lane::Bulk => Some(100_000),
        };
        Self { unacknowledged_bytes: 4 << 20, unsent_bytes: 256 << 10, noise_ns }
    }
}

/// A frame to hand to the network.
#[derive(Clone, Debug)]
pub struct Frame(Arc<Vec<u8>>);

impl AsRef<[u8]> for Frame {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for Frame {
    fn from(bytes: Vec<u8>) -> Frame {
        Frame(Arc::new(bytes))
    }
}

impl Deref for Frame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Why an item was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The other link was not heard yet; [`Accept::NewPeerTerm`] reports that it was.
    #[error("no link of the other host has been found")]
    NoPeer,
    /// The queue is full. There may be capacity after the next [`Stream::poll`] or [`Stream::accept`].
    #[error("the queue for the other host is full")]
    Full,
    /// The item does not fit into a frame: a message has to be split.
    #[error("an item of {0} bytes is longer than a frame: it must be split")]
    TooLong(usize),
}

/// The result of accepting a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// The next frame of its stream: read its items.
    New,
    /// A pure acknowledgement.
    Acknowledgement,
    /// Its items were read before.
    Duplicate,
    /// An earlier frame is missing. This one will be sent again.
    OutOfOrder,
    /// From a link, or for one, that no longer holds its role.
    Stale,
    /// The first frame of a new holder. Both directions restart: pushed and unacknowledged items are
    /// dropped and have to be pushed again. Do not read the frame's items; it is sent again.
    NewPeerTerm,
    /// It acknowledges what was never sent, or has a number without a receiver: disconnect the peer.
    Corrupt,
}

/// Counters of a stream since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Frames handed out, including retransmitted ones and acknowledgements.
    pub frames_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Frames that were retransmitted.
    pub frames_repeated: u64,
    /// Received frames that were [`Accept::New`].
    pub frames_received: u64,
    /// Bytes of all frames received in these terms.
    pub bytes_received: u64,
    /// Frames dropped because of a new holder.
    pub frames_dropped: u64,
    /// Bytes that may be in flight; 0 for a stream without a window.
    pub window_bytes: u64,
    /// Unacknowledged bytes, including those not sent yet.
    pub unacknowledged_bytes: u64,
    /// Since when the oldest sent frame is unacknowledged, in ns of the caller's clock.
    pub unacknowledged_since_ns: Option<u64>,
    /// Round trip, smoothed, in ns.
    pub round_trip_ns: Option<u64>,
    /// Smallest round trip since its last new measurement, in ns.
    pub base_ns: Option<u64>,
}

/// Both directions between two links, on one lane. All times are ns of one monotonic clock.
#[derive(Debug)]
pub struct Stream {
    own_term: u64,
    /// 0 until it is known.
    peer_term: u64,
    send_queue: SendQueue,
    receive_state: ReceiveState,
    window: Option<Window>,
    round_trip: RoundTrip,
    clock: ClockEstimator,
    /// The clock offset for stamps of messages, and until when it is valid.
    offset: Option<(ClockOffset, u64)>,
    /// The last stamp given out: each frame has its own.
    last_sent_ns: u64,
    /// The highest stamp of this link that was echoed.
    last_echo_ns: u64,
    introduce_at_ns: u64,
    introduce_wait_ns: u64,
    /// When the last frame of the peer came.
    heard_ns: u64,
    /// Whether the peer sends pulses: then silence means that it is quiet.
    pulses: bool,
    /// While the peer is quiet: nothing leaves before this.
    probe_at_ns: u64,
    stats: Stats,
}

impl Stream {
    /// Creates the stream of the link that holds its host's role in `own_term`, which is not 0.
    pub fn new(own_term: u64, limits: Limits) -> Self {
        Self {
            own_term,
            peer_term: 0,
            send_queue: SendQueue::new(limits),
            receive_state: ReceiveState::default(),
            window: limits.noise_ns.map(Window::new),
            round_trip: RoundTrip::default(),
            clock: ClockEstimator::default(),
            offset: None,
            last_sent_ns: 0,
            last_echo_ns: 0,
            introduce_at_ns: 0,
            introduce_wait_ns: INTRODUCE_FIRST_NS,
            heard_ns: 0,
            pulses: true,
            probe_at_ns: 0,
            stats: Stats::default(),
        }
    }

    /// Term of the other link, once it is known.
    pub fn peer_term(&self) -> Option<u64> {
        (self.peer_term != 0).then_some(self.peer_term)
    }

    /// Whether [`push`](Self::push) accepts an item that fits into a frame.
    pub fn has_room(&self) -> bool {
        self.peer_term != 0 && self.send_queue.has_room(self.window.as_ref())
    }

    /// Whether an item was pushed and is not handed out, or has to be sent again.
    pub fn has_unsent(&self) -> bool {
        self.send_queue.has_unsent()
    }

    /// Adds an item to the frame that is being filled.
    ///
    /// # Errors
    /// If there is no peer or no capacity, or the item is longer than a frame. No part of it is then added.
    #[inline]
    pub fn push(&mut self, item: &Item<'_>) -> Result<(), PushError> {
        if self.peer_term == 0 {
            return Err(PushError::NoPeer);
        }
        self.send_queue.push(item, self.window.as_ref())
    }

    /// Adds an item that belongs to the previous one, with or without capacity.
    ///
    /// # Errors
    /// If there is no peer, or the item is longer than a frame. No part of it is then added.
    #[inline]
    pub fn push_along(&mut self, item: &Item<'_>) -> Result<(), PushError> {
        if self.peer_term == 0 {
            return Err(PushError::NoPeer);
        }
        self.send_queue.push_along(item, self.window.as_ref())
    }

    /// Like [`push_along`](Self::push_along), for a message with the common fields only.
    ///
    /// # Errors
    /// The same.
    #[inline]
    pub fn push_plain(&mut self, plain: PlainData<'_>) -> Result<(), PushError> {
        if self.peer_term == 0 {
            return Err(PushError::NoPeer);
        }
        self.send_queue.push_plain(plain, self.window.as_ref())
    }

    /// The number after the frame with the last pushed item.
    pub fn end(&self) -> u64 {
        self.send_queue.end()
    }

    /// Whether all frames before this number were acknowledged.
    pub fn has_acknowledged(&self, end: u64) -> bool {
        self.send_queue.has_acknowledged(end)
    }

    /// Allows the frame that is being filled to leave now.
    pub fn flush(&mut self) {
        self.send_queue.flush();
    }

    /// How many bytes a [`Fragment`](crate::wire::Fragment) should carry now.
    pub fn fragment_len(&self) -> usize {
        send_queue::fragment_len(self.window.as_ref())
    }

    /// The next frame for the network: a new one, a retransmitted one, or an acknowledgement. Hand it to
    /// the network before the next call of `poll`. `None` if nothing may leave now. To a quiet peer one
    /// frame leaves at intervals, and the others are kept.
    pub fn poll(&mut self, now_ns: u64) -> Option<Frame> {
        if self.peer_term == 0 {
            if now_ns < self.introduce_at_ns {
                return None;
            }
            self.introduce_at_ns = now_ns + self.introduce_wait_ns;
            self.introduce_wait_ns = (2 * self.introduce_wait_ns).min(INTRODUCE_MAX_NS);
            return Some(self.acknowledgement(now_ns));
        }
        if now_ns < self.probe_at_ns {
            return None;
        }
        let is_quiet = self.pulses && now_ns.saturating_sub(self.heard_ns) >= QUIET_NS;
        let frame = self.next_frame(now_ns, is_quiet)?;
        if is_quiet {
            self.probe_at_ns = now_ns + PROBE_NS;
        }
        Some(frame)
    }

    /// Chooses the next frame. If `ack_now` is set, a numbered frame is to be acknowledged at once.
    fn next_frame(&mut self, now_ns: u64, ack_now: bool) -> Option<Frame> {
        let Some(next) = self.send_queue.next(now_ns, self.window.as_mut(), &mut self.round_trip)
        else {
            return self.receive_state.is_ack_due(now_ns).then(|| self.acknowledgement(now_ns));
        };
        let flags = if next.ack_now || ack_now { ACK_AT_ONCE } else { 0 };
        let sent_ns = self.stamp(now_ns);
        let header = self.header(now_ns, sent_ns, flags, next.number, next.len);
        self.stats.frames_repeated += u64::from(next.repeated);
        let bytes = self.send_queue.hand_out(next, now_ns, header);
        Some(self.count(bytes))
    }

    /// Makes the next [`poll`](Self::poll) return a frame, once the other link is known.
    pub fn request_ack(&mut self) {
        self.receive_state.request_ack();
    }

    /// The newest stamp of this link that was echoed, in ns of the caller's clock; 0 if none was.
    pub fn last_echo_ns(&self) -> u64 {
        self.last_echo_ns
    }

    /// When [`poll`](Self::poll) has to be called again if nothing is pushed, flushed or accepted before.
    pub fn wake_at(&self) -> Option<u64> {
        if self.peer_term == 0 {
            return Some(self.introduce_at_ns);
        }
        let at_ns = [self.send_queue.repeat_at(), self.receive_state.ack_due_at()]
            .into_iter()
            .flatten()
            .min();
        at_ns.map(|at_ns| at_ns.max(self.probe_at_ns))
    }

    /// Until when nothing leaves, because the peer is quiet; 0 if it is not.
    pub fn paused_until(&self) -> u64 {
        self.probe_at_ns
    }

    /// Introduces itself at long intervals from now on: the peer was lost, and frames may wait in the
    /// network until the connection ends.
    pub fn introduce_slowly(&mut self, now_ns: u64) {
        self.introduce_wait_ns = INTRODUCE_MAX_NS;
        self.introduce_at_ns = now_ns + INTRODUCE_MAX_NS;
    }

    /// Sets whether the peer sends pulses. A peer of an earlier release, which is silent while idle, is
    /// never quiet.
    pub fn expect_pulses(&mut self, pulses: bool) {
        self.pulses = pulses;
        if !pulses {
            self.probe_at_ns = 0;
        }
    }

    /// Records that the network has connected to the peer, or that its frame came: it is not quiet.
    pub fn note_heard(&mut self, now_ns: u64) {
        (self.heard_ns, self.probe_at_ns) = (now_ns, 0);
    }

    /// When to call `poll` again if frames continue to arrive at the recent rate: planning for that once
    /// costs less than a wake-up for each frame that has to be acknowledged.
    pub fn planned_poll_at(&self, now_ns: u64) -> Option<u64> {
        let numbered_at_ns = self.receive_state.numbered_at()?;
        (now_ns.saturating_sub(numbered_at_ns) < ACK_DELAY_NS).then_some(now_ns + ACK_DELAY_NS)
    }

    /// Accepts a frame with this header.
    pub fn accept(&mut self, now_ns: u64, header: &Header) -> Accept {
        let Header { from_term, to_term, .. } = *header;
        if from_term == 0 || from_term < self.peer_term || to_term > self.own_term {
            return Accept::Stale;
        }
        if to_term != 0 && to_term < self.own_term {
            // The peer does not know this link yet.
            if self.peer_term == from_term {
                self.receive_state.request_ack();
            } else {
                self.introduce_at_ns = 0;
            }
            return Accept::Stale;
        }
        self.note_heard(now_ns);
        self.receive_state.note_newest(now_ns, header.sent_ns);
        self.stats.bytes_received += u64::from(header.len);
        if from_term > self.peer_term {
            self.reset(from_term);
            return Accept::NewPeerTerm;
        }
        let only = header.flags & ACK_ONLY != 0;
        if to_term == 0 {
            self.receive_state.request_ack();
            return if only { Accept::Acknowledgement } else { Accept::Corrupt };
        }
        if !self.send_queue.can_acknowledge(header.next) {
            return Accept::Corrupt;
        }
        self.take_acknowledgement(now_ns, header);
        if only {
            return Accept::Acknowledgement;
        }
        let accept = self.receive_state.accept_numbered(now_ns, header);
        self.stats.frames_received += u64::from(accept == Accept::New);
        accept
    }

    /// The offset of the other host's clock, once it was measured.
    pub fn clock(&self, now_ns: u64) -> Option<ClockOffset> {
        self.clock.offset(now_ns)
    }

    /// The same for stamps of messages: it is updated after each measurement, and not for each frame.
    pub fn clock_for_stamps(&mut self, now_ns: u64) -> Option<ClockOffset> {
        if self.offset.is_none_or(|(_, until_ns)| until_ns <= now_ns) {
            // Its uncertainty is valid for the same time.
            let until_ns = now_ns + OFFSET_HOLDS_NS;
            self.offset = self.clock.offset(until_ns).map(|clock| (clock, until_ns));
        }
        self.offset.map(|(clock, _)| clock)
    }

    /// How often one of the two clocks has jumped or drifted faster than the uncertainty allows, and the
    /// last change of the offset, in ns.
    pub fn steps(&self) -> (u64, i64) {
        self.clock.steps()
    }

    /// The drift of the other host's clock, once it was measured.
    pub fn drift(&self, now_ns: u64) -> Option<ClockDrift> {
        self.clock.drift(now_ns)
    }

    /// Counters.
    pub fn stats(&self) -> Stats {
        Stats {
            window_bytes: self.window.as_ref().map_or(0, Window::bytes),
            unacknowledged_bytes: self.send_queue.queued_bytes() as u64,
            unacknowledged_since_ns: self.send_queue.unacknowledged_since(),
            round_trip_ns: self.round_trip.smoothed_ns(),
            base_ns: self.window.as_ref().and_then(Window::base_ns),
            ..self.stats
        }
    }

    fn reset(&mut self, peer_term: u64) {
        self.stats.frames_dropped += self.send_queue.reset();
        self.receive_state.reset();
        if let Some(window) = &mut self.window {
            window.restart();
        }
        self.peer_term = peer_term;
        self.introduce_wait_ns = INTRODUCE_FIRST_NS;
    }

    /// Frees arrived frames, goes back to lost ones, and measures the round trip.
    fn take_acknowledgement(&mut self, now_ns: u64, header: &Header) {
        let echo_ns = header.echo_ns;
        let possible = echo_ns != 0 && echo_ns <= self.last_sent_ns && echo_ns <= now_ns;
        let sample = (possible && echo_ns > self.last_echo_ns)
            .then(|| (now_ns - echo_ns).checked_sub(header.held_ns))
            .flatten();
        if let Some(round_trip_ns) = sample {
            self.last_echo_ns = echo_ns;
            self.round_trip.sample(round_trip_ns);
            self.clock.sample(now_ns, header);
            self.offset = None;
            if let Some(window) = &mut self.window {
                window.sample(now_ns, round_trip_ns, echo_ns, self.last_sent_ns);
            }
        }
        let lost = self.send_queue.acknowledge(
            now_ns,
            header.next,
            if possible { echo_ns } else { 0 },
            &mut self.round_trip,
        );
        if lost && let Some(window) = &mut self.window {
            window.restart();
        }
    }

    fn acknowledgement(&mut self, now_ns: u64) -> Frame {
        let sent_ns = self.stamp(now_ns);
        let header = self.header(now_ns, sent_ns, ACK_ONLY, 0, HEADER_LEN);
        let mut bytes = vec![0; HEADER_LEN];
        header.encode(&mut bytes);
        self.count(Arc::new(bytes))
    }

    fn count(&mut self, bytes: Arc<Vec<u8>>) -> Frame {
        self.stats.frames_sent += 1;
        self.stats.bytes_sent += bytes.len() as u64;
        Frame(bytes)
    }

    /// Two frames that are polled at the same time get different stamps, so that an echo identifies one.
    fn stamp(&mut self, now_ns: u64) -> u64 {
        self.last_sent_ns = now_ns.max(self.last_sent_ns + 1);
        self.last_sent_ns
    }

    /// Every frame acknowledges.
    fn header(&mut self, now_ns: u64, sent_ns: u64, flags: u8, number: u64, len: usize) -> Header {
        let (next, echo_ns, held_ns) = self.receive_state.acknowledgement(now_ns);
        Header {
            version: VERSION,
            flags,
            len: len as u32,
            from_term: self.own_term,
            to_term: self.peer_term,
            number,
            next,
            sent_ns,
            echo_ns,
            held_ns,
        }
    }
}
