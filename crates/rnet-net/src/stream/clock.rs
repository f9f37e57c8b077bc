//! How far the clocks of two hosts are apart: the four stamps of NTP (RFC 5905, section 8).
//!
//! A sample knows the offset to half its round trip, and to what both clocks may have drifted apart since the
//! peer's stamp. The sample of the least uncertainty counts; so one of a short round trip counts until a newer
//! one says more.

use crate::wire::Header;

/// What two clocks drift apart at most, without being taken for a step.
const DRIFT_PPM: u64 = 100;
/// Samples of the last 10 s: the best of each of these parts.
const PARTS: usize = 16;
const PART_NS: u64 = 625_000_000;

/// How far another host's `CLOCK_MONOTONIC` is ahead of this one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// What has to be added to a time of this host for one of the other, in ns.
    pub offset_ns: i64,
    /// The offset is at most so much more or less, in ns.
    pub uncertainty_ns: u64,
    /// Round trip of the sample that tells, in ns.
    pub round_trip_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at_ns: u64,
    offset_ns: i64,
    round_trip_ns: u64,
    held_ns: u64,
}

impl Sample {
    fn uncertainty_ns(&self, now_ns: u64) -> u64 {
        let age_ns = now_ns.saturating_sub(self.at_ns).saturating_add(self.held_ns);
        self.round_trip_ns.div_ceil(2).saturating_add(age_ns / (1_000_000 / DRIFT_PPM)).max(1)
    }
}

#[derive(Debug, Default)]
pub struct Clock {
    samples: [Option<Sample>; PARTS],
    steps: u64,
}

impl Clock {
    pub fn offset(&self, now_ns: u64) -> Option<ClockOffset> {
        let best = self.best(now_ns)?;
        Some(ClockOffset {
            offset_ns: best.offset_ns,
            uncertainty_ns: best.uncertainty_ns(now_ns),
            round_trip_ns: best.round_trip_ns,
        })
    }

    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn best(&self, now_ns: u64) -> Option<&Sample> {
        self.samples.iter().flatten().min_by_key(|sample| sample.uncertainty_ns(now_ns))
    }

    /// A frame came at `now_ns` that echoes one of ours; its stamps were found possible.
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
                self.samples = [None; PARTS];
                self.steps += 1;
            }
        }
        let part = &mut self.samples[(now_ns / PART_NS) as usize % PARTS];
        let better = |known: &Sample| {
            now_ns.saturating_sub(known.at_ns) >= PART_NS
                || sample.uncertainty_ns(now_ns) <= known.uncertainty_ns(now_ns)
        };
        if part.as_ref().is_none_or(better) {
            *part = Some(sample);
        }
    }
}
