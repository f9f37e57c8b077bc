//! The recorded and new values of a field, for a plot.

/// Maximum number of points of a field; beyond it, the half with the smaller differences is dropped.
const MAX_POINTS: usize = 4096;

/// Values of a field over the time of the recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Topic of the messages.
    pub topic: String,
    /// Path of the field.
    pub field: String,
    /// Send time of the recorded message in ns since 1970 UTC, and both values. Beyond the limit, the points
    /// with the largest differences are kept.
    pub points: Vec<(u64, f64, f64)>,
}

impl Trace {
    pub(super) fn add(&mut self, at_ns: u64, recorded: f64, rerun: f64) {
        if self.points.len() >= MAX_POINTS {
            let by = |point: &(u64, f64, f64)| (point.1 - point.2).abs();
            let pairs = self.points.chunks(2);
            self.points = pairs
                .filter_map(|pair| {
                    pair.iter().copied().reduce(|a, b| if by(&b) > by(&a) { b } else { a })
                })
                .collect();
        }
        self.points.push((at_ns, recorded, rerun));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_points_and_keeps_the_worst() {
        let mut trace = Trace::default();
        for n in 0..100_000u64 {
            let off = if n == 31_337 { 1.0 } else { 0.0 };
            trace.add(n, 2.0, 2.0 + off);
        }
        assert!(trace.points.len() <= MAX_POINTS);
        assert!(trace.points.contains(&(31_337, 2.0, 3.0)));
        assert!(trace.points.is_sorted_by_key(|point| point.0));
    }
}
