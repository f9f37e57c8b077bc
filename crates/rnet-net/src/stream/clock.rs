//! The clock offset between two hosts, from the four stamps of NTP (RFC 5905, section 8).
//!
//! The uncertainty of a sample is half its round trip, plus the possible drift of both clocks since the
//! peer's stamp. The sample with the least uncertainty counts, so a sample with a short round trip counts
//! until a newer one is more certain.

use crate::wire::Header;

/// The largest drift between two clocks that does not count as a step.
const MAX_DRIFT_PPM: u64 = 100;
/// Samples of the last 10 s: the best of each of these parts.
const SAMPLE_SLOTS: usize = 16;
const SLOT_NS: u64 = 625_000_000;
/// The time over which the drift is measured; at most twice this time.
const DRIFT_PERIOD_NS: u64 = 300_000_000_000;

/// The offset of another host's `CLOCK_MONOTONIC` from this host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// Added to a time of this host, it gives the time of the other, in ns.
    pub offset_ns: i64,
    /// The largest error of the offset, in ns.
    pub uncertainty_ns: u64,
    /// Round trip of the decisive sample, in ns.
    pub round_trip_ns: u64,
}

impl ClockOffset {
    /// The change of the offset since it was `before`, `passed_ns` ago, if that exceeds both uncertainties
    /// and the possible drift: one clock was set, or its host was suspended.
    pub fn step_since(&self, before: &ClockOffset, passed_ns: u64) -> Option<i64> {
        let allowed_ns = self.uncertainty_ns.saturating_add(before.uncertainty_ns);
        let allowed_ns = allowed_ns.saturating_add(drift_ns(passed_ns));
        let apart_ns = self.offset_ns.abs_diff(before.offset_ns);
        (apart_ns > allowed_ns).then(|| self.offset_ns.saturating_sub(before.offset_ns))
    }
}

/// The largest drift between two clocks in this time, in ns.
fn drift_ns(passed_ns: u64) -> u64 {
    passed_ns / (1_000_000 / MAX_DRIFT_PPM)
}

/// The rate of another host's clock relative to this one's: 0.00001 is 10 ppm faster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockDrift {
    /// Seconds that it gains in a second.
    pub rate: f64,
    /// The largest error of the rate.
    pub uncertainty: f64,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at_ns: u64,
    offset_ns: i64,
    round_trip_ns: u64,
    held_ns: u64,
}

impl Sample {
    /// Half its round trip: the largest error of the offset at that moment.
    fn error_ns(&self) -> u64 {
        self.round_trip_ns.div_ceil(2)
    }

    fn uncertainty_ns(&self, now_ns: u64) -> u64 {
        let age_ns = now_ns.saturating_sub(self.at_ns).saturating_add(self.held_ns);
        self.error_ns().saturating_add(drift_ns(age_ns)).max(1)
    }
}

#[derive(Debug, Default)]
pub struct ClockEstimator {
    samples: [Option<Sample>; SAMPLE_SLOTS],
    /// An old sample, against which the drift is measured.
    reference: Option<Sample>,
    steps: u64,
    /// The change of the offset at the last step, in ns.
    last_step_ns: i64,
}

impl ClockEstimator {
    pub fn offset(&self, now_ns: u64) -> Option<ClockOffset> {
        let best = self.best(now_ns)?;
        Some(ClockOffset {
            offset_ns: best.offset_ns,
            uncertainty_ns: best.uncertainty_ns(now_ns),
            round_trip_ns: best.round_trip_ns,
        })
    }

    /// The number of steps, and the change of the offset at the last one, in ns.
    pub fn steps(&self) -> (u64, i64) {
        (self.steps, self.last_step_ns)
    }

    /// The drift, once two samples measure it better than the drift allowance.
    pub fn drift(&self, now_ns: u64) -> Option<ClockDrift> {
        let (early, late) = (self.reference.as_ref()?, self.best(now_ns)?);
        let passed_ns = late.at_ns.checked_sub(early.at_ns).filter(|passed_ns| *passed_ns > 0)?;
        let of = |ns: f64| ns / passed_ns as f64;
        let drift = ClockDrift {
            rate: of(late.offset_ns.saturating_sub(early.offset_ns) as f64),
            uncertainty: of((late.error_ns() + early.error_ns()) as f64),
        };
        (drift.uncertainty * 1e6 < MAX_DRIFT_PPM as f64).then_some(drift)
    }

    fn best(&self, now_ns: u64) -> Option<&Sample> {
        self.samples.iter().flatten().min_by_key(|sample| sample.uncertainty_ns(now_ns))
    }

    /// Adds a sample from a frame that came at `now_ns` and echoes a frame of this link; its stamps were
    /// found plausible.
    pub fn sample(&mut self, now_ns: u64, header: &Header) {
        let [sent, echo, held, now] =
            [header.sent_ns, header.echo_ns, header.held_ns, now_ns].map(i128::from);
        let there = ((sent - held - echo) + (sent - now)).div_euclid(2);
        let sample = Sample {
            at_ns: now_ns,
            offset_ns: there.clamp(i64::MIN.into(), i64::MAX.into()) as i64,
            round_trip_ns: (now_ns - header.echo_ns).saturating_sub(header.held_ns),
            held_ns: header.held_ns,
        };
        if let Some(best) = self.best(now_ns) {
            let apart_ns = best.offset_ns.abs_diff(sample.offset_ns);
            let allowed_ns =
                best.uncertainty_ns(now_ns).saturating_add(sample.uncertainty_ns(now_ns));
            if apart_ns > allowed_ns {
                self.last_step_ns = sample.offset_ns.saturating_sub(best.offset_ns);
                self.samples = [None; SAMPLE_SLOTS];
                self.reference = None;
                self.steps += 1;
            }
        }
        let is_old = |early: &Sample| now_ns.saturating_sub(early.at_ns) > 2 * DRIFT_PERIOD_NS;
        if self.reference.as_ref().is_none_or(is_old) {
            // A drift measured an hour ago, at another temperature, does not apply now.
            let known = self.samples.iter().flatten().min_by_key(|sample| sample.at_ns);
            self.reference = Some(known.copied().unwrap_or(sample));
        }
        let part = &mut self.samples[(now_ns / SLOT_NS) as usize % SAMPLE_SLOTS];
        let better = |known: &Sample| {
            now_ns.saturating_sub(known.at_ns) >= SLOT_NS
                || sample.uncertainty_ns(now_ns) <= known.uncertainty_ns(now_ns)
        };
        if part.as_ref().is_none_or(better) {
            *part = Some(sample);
        }
    }
}
