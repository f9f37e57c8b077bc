//! How many bytes may be under way, by delay as in TCP Vegas (Brakmo and Peterson, 1995): few enough that what
//! queues in the network delays the urgent lane by a few frames, enough that the cable is full.

/// Smallest frame, in bytes: one that a cable takes as a whole.
const MIN_FRAME: u64 = 1400;
/// Longest frame of small messages.
const MAX_FRAME: u64 = 16 << 10;
/// From this window on, a large message is cut into the longest frames.
const JUMBO_WINDOW: u64 = 1 << 20;
const MIN_WINDOW: u64 = 2 * MIN_FRAME;
const MAX_WINDOW: u64 = 4 << 20;
/// A frame is this part of the window.
const FRAMES: u64 = 16;

/// Frames that may queue in the network before the window stops to grow, and before it shrinks.
const QUEUED_LOW: u64 = 2;
const QUEUED_HIGH: u64 = 4;
/// From here on it shrinks to what the network holds without a queue.
const QUEUED_FAR: u64 = 8;

/// The smallest round trip is measured anew when it is older: our own queue is otherwise taken for the cable.
const BASE_AGE_NS: u64 = 10_000_000_000;
/// Frames that are sent alone for that.
const LONE_FRAMES: u32 = 4;
/// After a pause of this length the network may be another.
const IDLE_NS: u64 = 1_000_000_000;

/// Frames of which each leaves when the one before has come back.
#[derive(Debug)]
struct Lone {
    /// Stamps of these frames are not below; not yet known while others are under way.
    from_ns: u64,
    /// How many have come back.
    frames: u32,
    smallest_ns: u64,
}

#[derive(Debug)]
pub struct Window {
    bytes: u64,
    noise_ns: u64,
    /// Smallest round trip, and when it was last seen.
    base: Option<(u64, u64)>,
    /// While the base is measured anew.
    lone: Option<Lone>,
    /// Smallest round trip since the last change of the window.
    smallest_ns: u64,
    /// The stamp whose echo ends this round.
    round_ends_ns: u64,
    /// Whether a frame had to wait for the window in this round.
    limited: bool,
    /// When the last frame left.
    left_ns: u64,
}

impl Window {
    pub fn new(noise_ns: u64) -> Self {
        Self {
            bytes: MIN_WINDOW,
            noise_ns,
            base: None,
            lone: None,
            smallest_ns: u64::MAX,
            round_ends_ns: 0,
            limited: false,
            left_ns: 0,
        }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn base_ns(&self) -> Option<u64> {
        self.base.map(|(ns, _)| ns)
    }

    /// Begins with the smallest window again; the base stays.
    pub fn restart(&mut self) {
        self.bytes = MIN_WINDOW;
        self.begin_round(self.round_ends_ns);
    }

    /// Length at which a frame is full, in bytes.
    pub fn frame_len(&self) -> usize {
        (self.bytes / FRAMES).clamp(MIN_FRAME, MAX_FRAME) as usize
    }

    /// Whether frames of the greatest length may leave.
    pub fn jumbo(&self) -> bool {
        self.bytes >= JUMBO_WINDOW
    }

    /// Whether a frame may leave.
    pub fn admits(&mut self, now_ns: u64, under_way: usize, len: usize) -> bool {
        if under_way == 0 {
            if self.left_ns + IDLE_NS < now_ns {
                self.restart();
            }
            return true;
        }
        if self.base.is_some_and(|(_, seen_ns)| seen_ns + BASE_AGE_NS < now_ns)
            && self.lone.is_none()
        {
            self.lone = Some(Lone { from_ns: u64::MAX, frames: 0, smallest_ns: u64::MAX });
        }
        if self.lone.is_some() {
            return false;
        }
        let admits = (under_way + len) as u64 <= self.bytes;
        self.limited |= !admits;
        admits
    }

    /// A frame leaves; whether it has to be acknowledged at once, given the bytes since the last such one.
    pub fn leaves(&mut self, now_ns: u64, under_way: usize, unasked: usize) -> bool {
        self.left_ns = now_ns;
        if let Some(lone) = &mut self.lone {
            lone.from_ns = lone.from_ns.min(now_ns);
        }
        let full = under_way as u64 + MIN_FRAME > self.bytes;
        full || self.lone.is_some() || unasked as u64 >= self.bytes / 4
    }

    /// A round trip was measured, of the frame with the stamp `echo_ns`. The last stamp given out is `last_ns`.
    pub fn sample(&mut self, now_ns: u64, ns: u64, echo_ns: u64, last_ns: u64) {
        if self.lone.is_some() {
            self.measure(now_ns, ns, echo_ns);
            // Frames alone say nothing of the window.
            self.begin_round(last_ns);
            return;
        }
        match &mut self.base {
            Some((base_ns, seen_ns)) if ns <= *base_ns + *base_ns / 16 => {
                (*base_ns, *seen_ns) = ((*base_ns).min(ns), now_ns);
            }
            Some(_) => {}
            None => self.base = Some((ns, now_ns)),
        }
        self.smallest_ns = self.smallest_ns.min(ns);
        if echo_ns > self.round_ends_ns {
            self.adjust(ns);
            self.begin_round(last_ns);
        }
    }

    fn measure(&mut self, now_ns: u64, ns: u64, echo_ns: u64) {
        let Some(lone) = self.lone.as_mut().filter(|lone| lone.from_ns <= echo_ns) else { return };
        lone.frames += 1;
        lone.smallest_ns = lone.smallest_ns.min(ns);
        if lone.frames == LONE_FRAMES {
            self.base = Some((lone.smallest_ns, now_ns));
            self.lone = None;
        }
    }

    fn begin_round(&mut self, last_ns: u64) {
        (self.smallest_ns, self.round_ends_ns, self.limited) = (u64::MAX, last_ns, false);
    }

    /// Once in a round trip. The smallest of its samples says that there is a queue; that there is none, the last
    /// one as well, which alone has seen what the last change did.
    fn adjust(&mut self, last_ns: u64) {
        let Some((base_ns, _)) = self.base else { return };
        let empty_ns = base_ns.saturating_add(self.noise_ns);
        // What the network would hold without a queue.
        let held = |ns: u64| {
            let held = u128::from(self.bytes) * u128::from(empty_ns) / u128::from(ns.max(1));
            u64::try_from(held).unwrap_or(u64::MAX).min(self.bytes)
        };
        let frame = self.frame_len() as u64;
        let queued = self.bytes - held(self.smallest_ns);
        if queued > QUEUED_FAR * frame {
            self.bytes = held(self.smallest_ns) + QUEUED_LOW * frame;
        } else if queued > QUEUED_HIGH * frame {
            self.bytes -= frame;
        } else if self.bytes - held(last_ns) < QUEUED_LOW * frame && self.limited {
            self.bytes += frame;
        }
        self.bytes = self.bytes.clamp(MIN_WINDOW, MAX_WINDOW);
    }
}
