//! The latency histogram: the bucket of a duration, and quantiles of the counts.
//!
//! Shared memory holds the counts as [`HIST_BUCKETS`] plain `u64`s; this module contains only the arithmetic.
//! The first 8 buckets hold the values 0 to 7 ns exactly. From 8 ns on, each octave (a factor of two) is
//! divided into 8 equal buckets. A bucket is therefore at most 12.5 % wide, from nanoseconds to 2^54 ns (208
//! days). The last bucket counts longer times. This is the log-linear layout of HdrHistogram (Gil Tene) with
//! three bits of precision: finding the bucket takes a count of leading zeros, a shift and an add, without a
//! table or a data-dependent branch.

/// Number of buckets: 8 exact ones and 51 octaves of 8.
pub const HIST_BUCKETS: usize = 416;

const SUB_BITS: u32 = 3;
const SUB_BUCKETS: usize = 1 << SUB_BITS;

/// The bucket of a time in nanoseconds; always below [`HIST_BUCKETS`].
///
/// ```
/// use rnet_core::{bucket_high, bucket_low, bucket_of};
/// let i = bucket_of(1_000);
/// assert!(bucket_low(i) <= 1_000 && 1_000 <= bucket_high(i));
/// ```
#[inline]
pub const fn bucket_of(ns: u64) -> usize {
    if ns < SUB_BUCKETS as u64 {
        return ns as usize;
    }
    let shift = ns.ilog2() - SUB_BITS;
    let index = (shift as usize + 1) * SUB_BUCKETS + ((ns >> shift) as usize & (SUB_BUCKETS - 1));
    if index < HIST_BUCKETS { index } else { HIST_BUCKETS - 1 }
}

/// The smallest time of bucket `index`, in nanoseconds. An index past the end selects the last bucket.
pub const fn bucket_low(index: usize) -> u64 {
    let index = if index < HIST_BUCKETS { index } else { HIST_BUCKETS - 1 };
    if index < SUB_BUCKETS {
        return index as u64;
    }
    let shift = index / SUB_BUCKETS - 1;
    ((SUB_BUCKETS + index % SUB_BUCKETS) as u64) << shift
}

/// The largest time of bucket `index`, in nanoseconds, inclusive; [`u64::MAX`] for the last one.
pub const fn bucket_high(index: usize) -> u64 {
    if index + 1 >= HIST_BUCKETS { u64::MAX } else { bucket_low(index + 1) - 1 }
}

/// The `q`-quantile (0.0 to 1.0; other values are clamped) of the counted times, in nanoseconds. The result
/// is the upper bound of its bucket and never below the true value. `None` if nothing was counted or `q` is
/// NaN.
///
/// ```
/// let mut counts = vec![0_u64; rnet_core::HIST_BUCKETS];
/// counts[rnet_core::bucket_of(5)] = 99;
/// counts[rnet_core::bucket_of(7)] = 1;
/// assert_eq!(rnet_core::quantile(&counts, 0.5), Some(5));
/// assert_eq!(rnet_core::quantile(&counts, 1.0), Some(7));
/// ```
pub fn quantile(counts: &[u64], q: f64) -> Option<u64> {
    // u128: the counts come from shared memory and may have any value.
    let total: u128 = counts.iter().map(|&n| u128::from(n)).sum();
    if total == 0 || q.is_nan() {
        return None;
    }
    let rank = ((q.clamp(0.0, 1.0) * total as f64).ceil() as u128).clamp(1, total);
    let mut seen = 0_u128;
    for (index, &n) in counts.iter().enumerate() {
        seen += u128::from(n);
        if seen >= rank {
            return Some(bucket_high(index));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_values_are_exact_and_large_ones_saturate() {
        for ns in 0..8 {
            assert_eq!(bucket_of(ns), ns as usize);
            assert_eq!((bucket_low(ns as usize), bucket_high(ns as usize)), (ns, ns));
        }
        assert_eq!(bucket_of(8), 8);
        assert_eq!(bucket_of(15), 15);
        assert_eq!(bucket_of(16), 16);
        assert_eq!(bucket_of((1 << 54) - 1), HIST_BUCKETS - 1);
        assert_eq!(bucket_of(1 << 54), HIST_BUCKETS - 1);
        assert_eq!(bucket_of(u64::MAX), HIST_BUCKETS - 1);
        assert_eq!(bucket_high(HIST_BUCKETS - 1), u64::MAX);
        assert_eq!(bucket_low(usize::MAX), bucket_low(HIST_BUCKETS - 1));
    }

    #[test]
    fn buckets_are_contiguous() {
        for index in 0..HIST_BUCKETS - 1 {
            assert_eq!(bucket_high(index) + 1, bucket_low(index + 1));
            assert_eq!(bucket_of(bucket_low(index)), index);
            assert_eq!(bucket_of(bucket_high(index)), index);
        }
    }

    #[test]
    fn quantiles_of_empty_and_hostile_counts() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[0; HIST_BUCKETS], 0.5), None);
        assert_eq!(quantile(&[1], f64::NAN), None);
        assert_eq!(quantile(&[u64::MAX; HIST_BUCKETS], 2.0), Some(u64::MAX));
        assert_eq!(quantile(&[u64::MAX; HIST_BUCKETS], -1.0), Some(0));
    }

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket(ns in any::<u64>(), cut in 0_u32..64) {
            let ns = ns >> cut;
            let index = bucket_of(ns);
            prop_assert!(index < HIST_BUCKETS);
            prop_assert!(bucket_low(index) <= ns && ns <= bucket_high(index));
        }

        #[test]
        fn a_bucket_is_at_most_an_eighth_wide(ns in 0_u64..1 << 53) {
            let index = bucket_of(ns);
            prop_assert!((bucket_high(index) - bucket_low(index)) * 8 <= bucket_low(index));
        }

        #[test]
        fn a_quantile_is_the_bucket_of_the_true_one(
            mut values in prop::collection::vec(0_u64..1 << 40, 1..200),
            q in 0.0_f64..=1.0,
        ) {
            let mut counts = vec![0_u64; HIST_BUCKETS];
            for &v in &values { counts[bucket_of(v)] += 1; }
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let truth = values[rank - 1];
            prop_assert_eq!(quantile(&counts, q), Some(bucket_high(bucket_of(truth))));
        }
    }
}
