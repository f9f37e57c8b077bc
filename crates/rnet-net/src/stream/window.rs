//! How many bytes may be under way, by delay as in TCP Vegas (Brakmo and Peterson, 1995): few enough that what
//! queues in the network delays the urgent lane by a few frames or a fraction of a millisecond, enough that the
//! cable is full.

use std::mem;

/// Smallest frame, in bytes: one that a cable takes as a whole.
const MIN_FRAME: u64 = 1400;
/// Longest frame: one that Zenoh hands to the kernel at once.
const MAX_FRAME: u64 = 60 << 10;
const MIN_WINDOW: u64 = 2 * MIN_FRAME;
/// With what waits to be sent it is less than a stream keeps. At 10 Gbit/s it is a queue of less than 3 ms.
const MAX_WINDOW: u64 = 7 << 19;
/// A longer window grows only where it keeps frames back: what has arrived and is not acknowledged yet is under way, too.
const MAX_HALF_FULL_GROWTH: u64 = 512 << 10;
/// A frame is this part of the window.
const FRAMES_PER_WINDOW: u64 = 16;

/// Frames that may queue in the network before the window stops to grow, and before it shrinks.
const QUEUED_LOW: u64 = 2;
const QUEUED_HIGH: u64 = 4;
/// From here on it shrinks to what the network holds without a queue.
const QUEUED_TOO_MANY: u64 = 8;
/// A queue that delays by less than this is as short as one of `QUEUED_LOW` frames, however many they are.
const SHORT_QUEUE_NS: u64 = 300_000;
/// Up to this rate, in bytes per second. Beyond it hosts limit more often than cables do: what waits in a host waits
/// for its processors, in the connection of this lane, and delays nobody else.
const CABLE_RATE: u64 = 125_000_000;
/// By how much `SHORT_QUEUE_NS` may grow with the rate.
const MAX_SHORT_QUEUE_FACTOR: u64 = 4;

/// A round takes a round trip, and this long: a queue delays all frames of such a time, a host that is busy some.
const ROUND_NS: u64 = 10_000_000;
/// Until a queue is first seen.
const FIRST_ROUND_NS: u64 = 1_000_000;
/// After so many rounds without a queue the path has become wider, and the window grows by half in a round.
const WIDER_ROUNDS: u32 = 4;
/// The smallest round trip is measured anew when it is older: our own queue is otherwise taken for the cable.
const BASE_AGE_NS: u64 = 10_000_000_000;
/// Frames that are sent alone for that.
const PROBE_FRAMES: usize = 8;
/// How late the hosts may be without that being taken for a queue.
const MAX_NOISE_NS: u64 = 5_000_000;
/// After a pause of this length the network may be another.
const IDLE_NS: u64 = 1_000_000_000;

/// Frames of which each leaves when the one before has come back.
#[derive(Debug)]
struct BaseProbe {
    /// Stamps of these frames are not below; not yet known while others are under way.
    from_ns: u64,
    /// How many have come back.
    frames: usize,
    round_trips_ns: [u64; PROBE_FRAMES],
}

#[derive(Debug)]
pub struct Window {
    bytes: u64,
    /// At least so much is noise.
    least_noise_ns: u64,
    /// What is: by how much the median of frames that were sent alone came back later than the fastest of them.
    noise_ns: u64,
    /// Smallest round trip.
    base_ns: Option<u64>,
    /// When that was measured last.
    measured_ns: Option<u64>,
    /// While the base is measured anew.
    probe: Option<BaseProbe>,
    /// Whether no queue was seen since the window was smallest.
    in_slow_start: bool,
    /// Rounds since a queue was last seen in which the window was full.
    growth_rounds: u32,
    /// Bytes that have left in this round, and per second in the rounds before.
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

    /// Begins with the smallest window again; the base stays.
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

    /// A frame of `len` bytes leaves; whether it has to be acknowledged at once, given the bytes under way and those
    /// since the last such one, with its own.
    pub fn on_send(&mut self, now_ns: u64, len: usize, under_way: usize, unasked: usize) -> bool {
        self.last_sent_ns = now_ns;
        self.sent_bytes += len as u64;
        if let Some(probe) = &mut self.probe {
            probe.from_ns = probe.from_ns.min(now_ns);
        }
        let full = under_way as u64 + MIN_FRAME > self.bytes;
        // Where less is under way the acknowledgement comes in time by itself, as seldom as can be. And a window that
        // is used no more than half is wide enough, as with TCP (RFC 7661, section 4.3).
        let half = under_way as u64 >= self.bytes / 2;
        self.limited |= half && self.bytes < MAX_HALF_FULL_GROWTH;
        full || self.probe.is_some() || (half && unasked as u64 >= self.bytes / 4)
    }

    /// A round trip was measured, of the frame with the stamp `echo_ns`. The last stamp given out is `last_ns`.
    pub fn sample(&mut self, now_ns: u64, ns: u64, echo_ns: u64, last_ns: u64) {
        if self.probe.is_some() {
            self.measure(now_ns, ns, echo_ns);
            // Frames alone say nothing of the window.
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
            // One round may be slow for reasons of a host.
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
            // The first queue may be a moment's: a whole round has to say that it is long.
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
