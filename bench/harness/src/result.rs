//! Measurements, as in the raw data.

use hdrhistogram::Histogram;

/// Measurements of one worker in one phase.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct PhaseResult {
    /// One for each of its publishers that had a load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<Sent>,
    /// One for each of its subscriptions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub received: Vec<Received>,
    /// Round trips: bytes, ns; in the order of sending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub round_trips: Vec<(usize, u64)>,
    /// Messages that were not back within a second, or came back changed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round_trips_lost: u64,
    /// Key-value calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Calls>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A publisher's results of a phase.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Sent {
    /// The topic.
    pub topic: String,
    /// Messages.
    pub count: u64,
    /// From before the first to after the last, ns.
    pub elapsed_ns: u64,
    /// How far behind its schedule the sender was at worst, ns; 0 without a schedule.
    pub lag_max_ns: u64,
}

/// A subscription's results of a phase.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Received {
    /// The topic.
    pub topic: String,
    /// Messages, each counted once; those out of order are not among them.
    pub count: u64,
    /// Sent (as the publishers' End says) and not received.
    pub lost: u64,
    /// Received again, or after a later one (and then counted as lost, too).
    pub out_of_order: u64,
    /// With wrong content.
    pub corrupt: u64,
    /// Later than the phase's limit, but not too late.
    pub late: u64,
    /// Later than the phase's second limit.
    pub too_late: u64,
    /// From the first to the last arrival, ns.
    pub span_ns: u64,
    /// From the call to send to the arrival.
    pub latency: Distribution,
}

/// Key-value calls of one client in one phase.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Calls {
    /// [`Call::name`](crate::spec::Call::name).
    pub call: String,
    /// Calls answered; of additions, those that succeeded.
    pub count: u64,
    /// Compare-and-set: how often it was tried for all of these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tries: u64,
    /// The number at the key, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Of the values got that were set in the phase: how many differed from the one before.
    pub distinct: u64,
    /// Gets of a missing key, and wrong values.
    pub wrong: u64,
    /// How long it took, ns.
    pub elapsed_ns: u64,
    /// From the call to its answer, of the calls that were timed: see [`crate::client`]. Empty where
    /// many calls are in flight at a time.
    pub latency: Distribution,
    /// Of those: from being set to arriving here.
    pub age: Distribution,
}

/// Times in ns: a histogram with values kept to 1 %, and the exact least, greatest and sum.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Distribution {
    /// How many.
    pub count: u64,
    /// The least; 0 when there is none.
    pub min: u64,
    /// The greatest; nothing is left out.
    pub max: u64,
    /// The sum.
    pub sum: u64,
    /// Alternately a value (upper end of its bucket) and its count, ascending.
    pub buckets: Vec<u64>,
}

/// Collects times for a [`Distribution`].
pub struct Recorder {
    histogram: Histogram<u64>,
    min: u64,
    max: u64,
    sum: u64,
}

impl Default for Recorder {
    fn default() -> Self {
        let histogram =
            Histogram::new_with_bounds(1, 120_000_000_000, 2).expect("bounds are right");
        Self { histogram, min: u64::MAX, max: 0, sum: 0 }
    }
}

impl Recorder {
    /// Records one time in ns.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        self.sum += ns;
    }

    /// The recorded values; afterwards the recorder is empty.
    pub fn take(&mut self) -> Distribution {
        let count = self.histogram.len();
        let buckets = self
            .histogram
            .iter_recorded()
            .flat_map(|v| [v.value_iterated_to(), v.count_at_value()])
            .collect();
        let min = if count == 0 { 0 } else { self.min };
        let taken = Distribution { count, min, max: self.max, sum: self.sum, buckets };
        self.histogram.reset();
        (self.min, self.max, self.sum) = (u64::MAX, 0, 0);
        taken
    }
}

impl Distribution {
    /// The value that a share `q` of all is not above; 0 when there is none.
    pub fn quantile(&self, q: f64) -> u64 {
        let rank = ((self.count as f64 * q).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for pair in self.buckets.chunks_exact(2) {
            seen += pair[1];
            if seen >= rank {
                return pair[0].min(self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_percent_and_the_ends_exact() {
        let mut recorder = Recorder::default();
        (1..=10_000u64).for_each(|i| recorder.record(i * 1000));
        let d = recorder.take();
        assert_eq!((d.count, d.min, d.max), (10_000, 1000, 10_000_000));
        for q in [0.01, 0.5, 0.9, 0.99, 0.999] {
            let exact = q * 1e7;
            let got = d.quantile(q) as f64;
            assert!((got - exact).abs() <= exact * 0.01, "{q}: {got}");
        }
        assert_eq!(d.quantile(1.0), d.max);
        assert_eq!(recorder.take().count, 0);
    }
}
