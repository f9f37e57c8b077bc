//! The clocks: CLOCK_MONOTONIC stamps messages, CLOCK_BOOTTIME ends the time of keys, and the wall clock
//! tells people when something was. All processes of a host share them; only the last one can be set, so
//! nothing is decided by it.

use rustix::time::{ClockId, clock_gettime};

/// Now, in ns of CLOCK_MONOTONIC.
#[inline]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Now, in ns of CLOCK_BOOTTIME: as [`now_ns`], but it goes on while the machine is suspended.
pub fn boot_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A number for the boot that this is, whose CLOCK_BOOTTIME no other boot continues; 0 if it cannot be told.
pub fn boot_id() -> u64 {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    if id.is_empty() { 0 } else { rnet_core::fnv1a_64(id.trim().as_bytes()) }
}

/// Wall-clock time, in ns since 1970; for people, as it may be set at any time.
pub fn unix_ns() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Readings of which the tightest counts.
const OFFSET_READINGS: usize = 8;

/// By how much [`unix_ns`] is ahead of [`now_ns`], and by how much that may be wrong either way, both in ns.
pub fn wall_offset() -> (i64, u64) {
    let reading = || {
        let (before, unix, after) = (now_ns(), unix_ns(), now_ns());
        let width = after.saturating_sub(before);
        // The wall clock was read somewhere in between. Half a width more or less is below one step of a clock.
        ((unix as i64).wrapping_sub((before + width / 2) as i64), width / 2 + 1)
    };
    let readings = (0..OFFSET_READINGS).map(|_| reading());
    readings.min_by_key(|(_, uncertainty)| *uncertainty).unwrap_or((0, u64::MAX))
}

/// CLOCK_MONOTONIC for whoever asks for it all the time, never backwards.
///
/// Where the kernel itself keeps time by the processor's time stamp counter, this reads the
/// counter and extrapolates from the last time that it asked the kernel, which it does again every
/// millisecond: so it is off by less than 0.1 µs as a rule, and costs 10 ns instead of 24 (decision
/// 0009). Two stampers may differ by as much: stamps of two publishers that are closer than that
/// do not say which message was sent first.
#[derive(Debug)]
pub struct Stamper {
    last_ns: u64,
    #[cfg(target_arch = "x86_64")]
    counter: Option<counter::TscExtrapolation>,
}

impl Default for Stamper {
    fn default() -> Self {
        Stamper {
            last_ns: 0,
            #[cfg(target_arch = "x86_64")]
            counter: counter::is_tsc_the_clocksource().then(counter::TscExtrapolation::default),
        }
    }
}

impl Stamper {
    /// What [`Stamper::now_ns`] said last.
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Now, in ns of CLOCK_MONOTONIC.
    #[inline]
    pub fn now_ns(&mut self) -> u64 {
        #[cfg(target_arch = "x86_64")]
        let now = match &mut self.counter {
            Some(counter) => counter.now_ns(),
            None => now_ns(),
        };
        #[cfg(not(target_arch = "x86_64"))]
        let now = now_ns();
        self.last_ns = self.last_ns.max(now);
        self.last_ns
    }
}

#[cfg(target_arch = "x86_64")]
mod counter {
    use std::sync::atomic::{AtomicU8, Ordering};

    /// How long an extrapolation is good for.
    const VALID_FOR_NS: u64 = 1_000_000;
    /// The rate is taken over at least this long, and anew after as long again.
    const MIN_RATE_WINDOW_NS: u64 = 1_000_000;
    const RATE_REFRESH_NS: u64 = 1_000_000_000;
    /// An extrapolation that was wrong by more is not built upon: the machine was suspended or moved.
    const MAX_ERROR_NS: u64 = 2_000;
    /// A reading of both clocks that took more ticks, some 0.2 µs, was interrupted between them.
    const MAX_READING_TICKS: u64 = 500;
    const READINGS: usize = 4;

    #[inline]
    fn read() -> u64 {
        // SAFETY: every x86-64 processor has the instruction; it has no preconditions.
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    /// Whether the kernel found the counters of all processors steady and equal.
    pub(super) fn is_tsc_the_clocksource() -> bool {
        // No OnceLock: a forked child would wait for one that another thread was about to fill.
        static IS_TSC: AtomicU8 = AtomicU8::new(0);
        match IS_TSC.load(Ordering::Relaxed) {
            0 => {
                let yes = read_is_tsc();
                IS_TSC.store(1 + u8::from(yes), Ordering::Relaxed);
                yes
            }
            known => known == 2,
        }
    }

    fn read_is_tsc() -> bool {
        let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        std::fs::read_to_string(path).is_ok_and(|name| name.trim() == "tsc")
    }

    /// The counter and the kernel's clock at one moment.
    #[derive(Clone, Copy, Debug, Default)]
    struct ClockSample {
        ticks: u64,
        ns: u64,
    }

    impl ClockSample {
        /// The tightest of a few readings.
        fn take() -> ClockSample {
            let mut best = (u64::MAX, ClockSample::default());
            for _ in 0..READINGS {
                let before = read();
                let ns = super::now_ns();
                let width = read().wrapping_sub(before);
                if width < best.0 {
                    best = (width, ClockSample { ticks: before.wrapping_add(width / 2), ns });
                }
                if best.0 < MAX_READING_TICKS {
                    break;
                }
            }
            best.1
        }
    }

    #[derive(Debug, Default)]
    pub(super) struct TscExtrapolation {
        /// From where we reckon, and for how many ticks: 0 while the rate is unknown.
        from: ClockSample,
        valid_ticks: u64,
        /// Nanoseconds per tick, times 2^32.
        rate: u64,
        /// The other end of what the rate is taken over.
        start: ClockSample,
        /// The kernel has found the counters unsteady since.
        is_disabled: bool,
    }

    impl TscExtrapolation {
        #[inline]
        pub(super) fn now_ns(&mut self) -> u64 {
            let ticks = read().wrapping_sub(self.from.ticks);
            // A counter that went back makes this huge.
            if ticks < self.valid_ticks {
                return self.from.ns + (ticks.wrapping_mul(self.rate) >> 32);
            }
            self.resync()
        }

        #[cold]
        fn resync(&mut self) -> u64 {
            if self.is_disabled {
                return super::now_ns();
            }
            let sample = ClockSample::take();
            let predicted = (u128::from(sample.ticks.wrapping_sub(self.from.ticks))
                * u128::from(self.rate))
                >> 32;
            let passed = sample.ns.saturating_sub(self.from.ns);
            let right =
                u128::from(passed).abs_diff(predicted) < u128::from(MAX_ERROR_NS + passed / 10_000);
            if self.start.ns == 0 || (self.rate != 0 && !right) {
                let is_disabled = self.rate != 0 && !read_is_tsc();
                *self = TscExtrapolation {
                    from: sample,
                    start: sample,
                    is_disabled,
                    ..TscExtrapolation::default()
                };
                return sample.ns;
            }
            let (ticks, ns) =
                (sample.ticks.wrapping_sub(self.start.ticks), sample.ns - self.start.ns);
            if ns >= MIN_RATE_WINDOW_NS && ticks != 0 {
                let rate = (u128::from(ns) << 32) / u128::from(ticks);
                self.rate = u64::try_from(rate).unwrap_or(0);
                let good_for = (u128::from(ticks) * u128::from(VALID_FOR_NS)) / u128::from(ns);
                // The product of both must fit in 64 bits.
                let most = (1 << 63) / u128::from(self.rate.max(1));
                self.valid_ticks = good_for.min(most) as u64;
                if self.rate == 0 {
                    self.valid_ticks = 0;
                }
                if ns >= RATE_REFRESH_NS {
                    self.start = self.from;
                }
            }
            self.from = sample;
            sample.ns
        }
    }

    #[cfg(test)]
    impl TscExtrapolation {
        /// As if the machine had slept while the counter ran on.
        pub(super) fn simulate_suspend(&mut self) {
            self.from.ns = self.from.ns.saturating_sub(1_000_000_000);
            self.valid_ticks = 0;
        }
        pub(super) fn is_extrapolating(&self) -> bool {
            self.valid_ticks != 0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Between two readings of the kernel's clock, give or take what an extrapolation may be off.
    fn assert_right(stamper: &mut Stamper) {
        let before = now_ns();
        let stamp = stamper.now_ns();
        let after = now_ns();
        assert!(before <= stamp + 2_000 && stamp <= after + 2_000, "{before} {stamp} {after}");
    }

    #[test]
    fn the_wall_clock_is_where_the_offset_says() {
        let (offset_ns, uncertainty_ns) = wall_offset();
        let (before, unix, after) = (now_ns(), unix_ns(), now_ns());
        // NTP slews by 500 ppm at the most, and nobody sets the clock of a machine that tests.
        let slack = uncertainty_ns as i64 + 1_000_000;
        assert!(unix as i64 >= before as i64 + offset_ns - slack);
        assert!(unix as i64 <= after as i64 + offset_ns + slack);
        assert!(uncertainty_ns > 0);
    }

    #[test]
    fn a_stamper_keeps_to_the_kernels_clock_and_never_goes_back() {
        let mut stamper = Stamper::default();
        let (until, mut last) = (now_ns() + 30_000_000, 0);
        while now_ns() < until {
            assert_right(&mut stamper);
            let stamp = stamper.now_ns();
            assert!(stamp >= last);
            last = stamp;
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(counter) = &mut stamper.counter {
            assert!(counter.is_extrapolating(), "it never got to reckon");
            counter.simulate_suspend();
            assert_right(&mut stamper);
        }
        // Silence is longer than an extrapolation is good for.
        std::thread::sleep(std::time::Duration::from_millis(3)); // sleep: silence is what is tested
        assert_right(&mut stamper);
    }
}
