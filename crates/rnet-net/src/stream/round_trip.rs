//! The round trip of an acknowledgement, and when it is overdue (RFC 6298).

use super::receive_state::ACK_DELAY_NS;

const MIN_NS: u64 = 20_000_000;
const MAX_NS: u64 = 250_000_000;
/// The time-out before the first measurement.
const FIRST_NS: u64 = 100_000_000;

#[derive(Debug, Default)]
pub struct RoundTrip {
    /// Smoothed round trip and its variation, in ns.
    smoothed: Option<(u64, u64)>,
    /// Time-outs since the last progress.
    time_outs: u32,
}

impl RoundTrip {
    pub fn smoothed_ns(&self) -> Option<u64> {
        self.smoothed.map(|(smoothed_ns, _)| smoothed_ns)
    }

    pub fn sample(&mut self, ns: u64) {
        let (smoothed_ns, variation_ns) = match self.smoothed {
            None => (ns, ns / 2),
            Some((smoothed_ns, variation_ns)) => (
                smoothed_ns - smoothed_ns / 8 + ns / 8,
                variation_ns - variation_ns / 4 + smoothed_ns.abs_diff(ns) / 4,
            ),
        };
        self.smoothed = Some((smoothed_ns, variation_ns));
    }

    /// How long to wait for an acknowledgement. It doubles after each time-out, up to a limit, so that a
    /// restored cable is noticed soon.
    pub fn time_out_ns(&self) -> u64 {
        let measured = |(smoothed_ns, variation_ns): (u64, u64)| {
            smoothed_ns.saturating_add(variation_ns.saturating_mul(4))
        };
        let ns = self.smoothed.map_or(FIRST_NS, measured).max(MIN_NS) + ACK_DELAY_NS;
        (ns.saturating_mul(1 << self.time_outs.min(8))).min(MAX_NS.max(ns))
    }

    pub fn timed_out(&mut self) {
        self.time_outs = self.time_outs.saturating_add(1);
    }

    pub fn progress(&mut self) {
        self.time_outs = 0;
    }
}
