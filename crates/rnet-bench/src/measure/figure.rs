//! Figures: the median of several runs with its range, and latencies in a histogram.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The middle one of several runs, and the two at the ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RunSpread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl RunSpread {
    /// Of values in any order, those that are no numbers left out; `None` of none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<RunSpread> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| !value.is_nan()).collect();
        values.sort_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(RunSpread { median, min, max })
    }

    /// `1.2 us  [1.1 us - 1.4 us]`, or the one value of a single run.
    pub fn show(&self, unit: impl Fn(f64) -> String) -> String {
        let (median, min, max) = (unit(self.median), unit(self.min), unit(self.max));
        if self.min == self.max { median } else { format!("{median}  [{min} - {max}]") }
    }
}

/// Longest latency that is told from a longer one: a minute.
const LONGEST_NS: u64 = 60_000_000_000;
/// Latencies are told apart to three digits.
const DIGITS: u8 = 3;

/// Latencies in ns, by how often they came.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "Vec<(u64, u64)>", from = "Vec<(u64, u64)>")]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Latencies {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
        Latencies(histogram.expect("the bounds are constants in the range that is allowed"))
    }
}

impl From<Latencies> for Vec<(u64, u64)> {
    fn from(latencies: Latencies) -> Vec<(u64, u64)> {
        let recorded = latencies.0.iter_recorded();
        recorded.map(|r| (r.value_iterated_to(), r.count_at_value())).collect()
    }
}

impl From<Vec<(u64, u64)>> for Latencies {
    fn from(counts: Vec<(u64, u64)>) -> Latencies {
        let mut latencies = Latencies::default();
        for (ns, count) in counts {
            latencies.0.saturating_record_n(ns, count);
        }
        latencies
    }
}

impl Latencies {
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    pub fn add(&mut self, other: &Latencies) {
        for recorded in other.0.iter_recorded() {
            self.0.saturating_record_n(recorded.value_iterated_to(), recorded.count_at_value());
        }
    }

    pub fn mean_ns(&self) -> f64 {
        self.0.mean()
    }

    pub fn percentiles(&self) -> Percentiles {
        let at = |q: f64| self.0.value_at_quantile(q);
        Percentiles {
            count: self.0.len(),
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: self.0.max(),
        }
    }
}

/// Percentiles of latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    pub count: u64,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    pub max_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_runs() {
        let spread = RunSpread::of([3.0, f64::NAN, 1.0, 2.0]).unwrap();
        assert_eq!((spread.median, spread.min, spread.max), (2.0, 1.0, 3.0));
        assert_eq!(RunSpread::of([4.0, 2.0]).unwrap().median, 3.0);
        assert_eq!(RunSpread::of([f64::NAN]), None);
        assert_eq!(spread.show(|v| format!("{v:.0}")), "2  [1 - 3]");
        assert_eq!(RunSpread::of([5.0]).unwrap().show(|v| format!("{v:.0}")), "5");
    }

    #[test]
    fn latencies_go_through_a_pipe_unharmed() {
        let mut latencies = Latencies::default();
        for ns in (0..1000).chain([u64::MAX]) {
            latencies.record(ns);
        }
        let text = serde_json::to_string(&latencies).unwrap();
        let back: Latencies = serde_json::from_str(&text).unwrap();
        assert_eq!(back.percentiles(), latencies.percentiles());
        let percentiles = back.percentiles();
        assert_eq!((percentiles.count, percentiles.p50_ns), (1001, 500));
        assert!(percentiles.max_ns >= LONGEST_NS, "{percentiles:?}");
        assert_eq!(Latencies::default().percentiles(), Percentiles::default());
    }
}
