//! The window of bytes in flight, controlled by delay as in TCP Vegas (Brakmo and Peterson, 1995). It is
//! small enough that the queue in the network delays the urgent lane by a few frames or a fraction of a
//! millisecond, and large enough that the cable is full.

use std::mem;

/// Smallest frame, in bytes: one that a cable carries as a whole.
const MIN_FRAME: u64 = 1400;
/// Longest frame: one that Zenoh hands to the kernel at once.
const MAX_FRAME: u64 = 60 << 10;
const MIN_WINDOW: u64 = 2 * MIN_FRAME;
/// Together with the unsent frames it is less than a stream keeps. At 10 Gbit/s it is a queue of less than
/// 3 ms.
const MAX_WINDOW: u64 = 7 << 19;
/// A larger window grows only if it delays frames: frames that have arrived and are not acknowledged yet
/// count as in flight, too.
const MAX_HALF_FULL_GROWTH: u64 = 512 << 10;
/// A frame is this part of the window.
const FRAMES_PER_WINDOW: u64 = 16;

/// Frames in the network's queue at which the window stops growing.
const QUEUED_LOW: u64 = 2;
const QUEUED_HIGH: u64 = 4;
/// From this number on, it shrinks to what the network holds without a queue.
const QUEUED_TOO_MANY: u64 = 8;
/// A queue that delays by less than this counts as short, like one of `QUEUED_LOW` frames, however many
/// frames it has.
const SHORT_QUEUE_NS: u64 = 300_000;
/// Valid up to this rate, in bytes per second. Beyond it hosts limit more often than cables do: frames that
/// wait in a host wait for its CPUs, in the connection of this lane, and delay no other lane.
const CABLE_RATE: u64 = 125_000_000;
/// The largest factor by which `SHORT_QUEUE_NS` grows with the rate.
const MAX_SHORT_QUEUE_FACTOR: u64 = 4;

/// A round takes a round trip plus this time: a queue delays all frames in such a time, a busy host only
/// some.
const ROUND_NS: u64 = 10_000_000;
/// The same until a queue is first seen.
const FIRST_ROUND_NS: u64 = 1_000_000;
/// After this many rounds without a queue the path has become wider, and the window grows by half per
/// round.
const WIDER_ROUNDS: u32 = 4;
/// An older smallest round trip is measured again: otherwise this link's own queue would count as part of
/// the cable.
const BASE_AGE_NS: u64 = 10_000_000_000;
/// Frames that are sent alone for that measurement.
const PROBE_FRAMES: usize = 8;
/// The largest delay by the hosts that does not count as a queue.
const MAX_NOISE_NS: u64 = 5_000_000;
/// After a pause of this length the network may have changed.
const IDLE_NS: u64 = 1_000_000_000;

/// Frames of which each leaves after the previous one was echoed.
#[derive(Debug)]
struct BaseProbe {
    /// The lowest stamp of these frames; unknown while other frames are in flight.
    from_ns: u64,
    /// How many were echoed.
    frames: usize,
    round_trips_ns: [u64; PROBE_FRAMES],
}

#[derive(Debug)]
pub struct Window {
    bytes: u64,
    /// The least delay that counts as noise.
    least_noise_ns: u64,
    /// The noise: how much later than the fastest the median of the frames that were sent alone came back.
    noise_ns: u64,
    /// Smallest round trip.
    base_ns: Option<u64>,
    /// When that was measured last.
    measured_ns: Option<u64>,
    /// Set while the base is measured again.
    probe: Option<BaseProbe>,
    /// Whether no queue was seen since the window was smallest.
    in_slow_start: bool,
    /// Rounds with a full window since a queue was last seen.
    growth_rounds: u32,
    /// Bytes sent in this round; then bytes per second in the earlier rounds.
    sent_bytes: u64,
    rate: u64,
    /// The last stamp given out before this round.
    round_after_ns: u64,
    round_since_ns: u64,
    /// Smallest round trip of frames that were sent in this round.
    smallest_ns: u64,
    /// Whether the window was more than half full in this round.
    limited: bool,
    /// When the last frame left.
    last_sent_ns: u64,
}

impl Window {
    pub fn new(noise_ns: u64) -> Self {
        Self {
            bytes: MIN_WINDOW,
            least_noise_ns: noise_ns,
            noise_ns,
            base_ns: None,
            measured_ns: None,
            probe: None,
            in_slow_start: true,
            growth_rounds: 0,
            sent_bytes: 0,
            rate: 0,
            round_after_ns: 0,
            round_since_ns: 0,
            smallest_ns: u64::MAX,
            limited: false,
            last_sent_ns: 0,
        }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn base_ns(&self) -> Option<u64> {
        self.base_ns
    }

    /// Restarts with the smallest window; the base stays.
    pub fn restart(&mut self) {
        self.bytes = MIN_WINDOW;
        self.in_slow_start = true;
        (self.growth_rounds, self.rate) = (0, 0);
        (self.smallest_ns, self.limited) = (u64::MAX, false);
    }

    /// Length at which a frame is full, in bytes.
    pub fn frame_len(&self) -> usize {
        (self.bytes / FRAMES_PER_WINDOW).clamp(MIN_FRAME, MAX_FRAME) as usize
    }

    /// Whether a frame may leave.
    pub fn admits(&mut self, now_ns: u64, under_way: usize, len: usize) -> bool {
        if under_way == 0 {
            if self.last_sent_ns + IDLE_NS < now_ns {
                self.restart();
            }
            return true;
        }
        let current = |measured_ns: u64| now_ns < measured_ns + BASE_AGE_NS;
        if self.probe.is_none() && !self.measured_ns.is_some_and(current) {
            let round_trips_ns = [0; PROBE_FRAMES];
            self.probe = Some(BaseProbe { from_ns: u64::MAX, frames: 0, round_trips_ns });
        }
        if self.probe.is_some() {
            return false;
        }
        let admits = (under_way + len) as u64 <= self.bytes;
        self.limited |= !admits;
        admits
    }

    /// Records that a frame of `len` bytes leaves. Returns whether it has to be acknowledged at once, given
    /// the bytes in flight and those since the last such request, both including this frame.
    pub fn on_send(&mut self, now_ns: u64, len: usize, under_way: usize, unasked: usize) -> bool {
        self.last_sent_ns = now_ns;
        self.sent_bytes += len as u64;
        if let Some(probe) = &mut self.probe {
            probe.from_ns = probe.from_ns.min(now_ns);
        }
        let full = under_way as u64 + MIN_FRAME > self.bytes;
        // With less in flight, the acknowledgement comes in time by itself, as rarely as possible. And a
        // window that is at most half used is wide enough, as with TCP (RFC 7661, section 4.3).
        let half = under_way as u64 >= self.bytes / 2;
        self.limited |= half && self.bytes < MAX_HALF_FULL_GROWTH;
        full || self.probe.is_some() || (half && unasked as u64 >= self.bytes / 4)
    }

    /// Adds a round trip, of the frame with the stamp `echo_ns`. The last stamp given out is `last_ns`.
    pub fn sample(&mut self, now_ns: u64, ns: u64, echo_ns: u64, last_ns: u64) {
        if self.probe.is_some() {
            self.measure(now_ns, ns, echo_ns);
            // Frames that are sent alone say nothing about the window.
            self.begin_round(now_ns, last_ns);
            return;
        }
        self.base_ns = Some(self.base_ns.map_or(ns, |base_ns| base_ns.min(ns)));
        if echo_ns <= self.round_after_ns {
            return;
        }
        self.smallest_ns = self.smallest_ns.min(ns);
        let round_ns = if self.in_slow_start { FIRST_ROUND_NS } else { ROUND_NS };
        let took_ns = now_ns - self.round_since_ns;
        if took_ns >= round_ns {
            let rate = u128::from(self.sent_bytes) * 1_000_000_000 / u128::from(took_ns);
            // One round may be slow because of a host.
            self.rate = (rate as u64).max(self.rate - self.rate / 16);
            self.adjust();
            self.begin_round(now_ns, last_ns);
        }
    }

    fn measure(&mut self, now_ns: u64, ns: u64, echo_ns: u64) {
        let Some(probe) = self.probe.as_mut().filter(|probe| probe.from_ns <= echo_ns) else {
            return;
        };
        probe.round_trips_ns[probe.frames] = ns;
        probe.frames += 1;
        if probe.frames == PROBE_FRAMES {
            probe.round_trips_ns.sort_unstable();
            let smallest_ns = probe.round_trips_ns[0];
            let noise_ns = probe.round_trips_ns[PROBE_FRAMES / 2] - smallest_ns;
            self.noise_ns = noise_ns.min(MAX_NOISE_NS).max(self.least_noise_ns);
            (self.base_ns, self.measured_ns) = (Some(smallest_ns), Some(now_ns));
            self.probe = None;
        }
    }

    fn begin_round(&mut self, now_ns: u64, last_ns: u64) {
        (self.round_since_ns, self.round_after_ns) = (now_ns, last_ns);
        (self.smallest_ns, self.limited, self.sent_bytes) = (u64::MAX, false, 0);
    }

    fn adjust(&mut self) {
        let Some(base_ns) = self.base_ns else { return };
        let (ns, empty_ns) = (self.smallest_ns.max(1), base_ns.saturating_add(self.noise_ns));
        // What the network would hold without a queue.
        let held = (u128::from(self.bytes) * u128::from(empty_ns.min(ns)) / u128::from(ns)) as u64;
        let queued = self.bytes - held;
        let frame = self.frame_len() as u64;
        let delay_ns = ns.saturating_sub(empty_ns);
        let short_ns =
            (u128::from(SHORT_QUEUE_NS) * u128::from(self.rate) / u128::from(CABLE_RATE)) as u64;
        let short_ns = short_ns.clamp(SHORT_QUEUE_NS, MAX_SHORT_QUEUE_FACTOR * SHORT_QUEUE_NS);
        let beyond =
            |frames: u64| queued >= frames * frame && delay_ns >= frames / QUEUED_LOW * short_ns;
        if !beyond(QUEUED_LOW) {
            if self.limited {
                self.growth_rounds = self.growth_rounds.saturating_add(1);
                self.bytes += match self.in_slow_start {
                    true => self.bytes,
                    false if self.growth_rounds > WIDER_ROUNDS => self.bytes / 2,
                    false => frame,
                };
            }
        } else {
            self.growth_rounds = 0;
            // The first queue may be momentary: a whole round has to show that it is long.
            if !mem::take(&mut self.in_slow_start) {
                if beyond(QUEUED_TOO_MANY) {
                    self.bytes = held + QUEUED_LOW * frame;
                } else if beyond(QUEUED_HIGH) {
                    self.bytes -= frame;
                }
            }
        }
        self.bytes = self.bytes.clamp(MIN_WINDOW, MAX_WINDOW);
    }
}
