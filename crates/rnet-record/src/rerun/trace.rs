//! The values of a field, recorded and of the re-run, for a plot.

/// Points that are kept of a field; then the lesser half of them goes.
const MAX_POINTS: usize = 4096;

/// Values of one field over the time of the recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Topic of the messages.
    pub topic: String,
    /// Their field.
    pub field: String,
    /// When the recorded message was sent, in ns since 1970 UTC, and both values. Of many points those are left that
    /// differ the most from each other.
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
    fn many_points_are_bounded_and_the_worst_is_kept() {
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
