//! Durations as integers, for messages and shared memory. Other crates read the clocks.

use std::time::Duration;

/// Milliseconds, rounded up so that a short time does not read as "0 ms"; saturates at [`u64::MAX`].
///
/// ```
/// use std::time::Duration;
/// assert_eq!(rnet_core::ms_ceil(Duration::from_micros(1_200)), 2);
/// ```
pub fn ms_ceil(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Nanoseconds; saturates at [`u64::MAX`] (584 years).
pub fn ns_saturating(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_up_and_saturates() {
        assert_eq!(ms_ceil(Duration::ZERO), 0);
        assert_eq!(ms_ceil(Duration::from_nanos(1)), 1);
        assert_eq!(ms_ceil(Duration::from_millis(250)), 250);
        assert_eq!(ms_ceil(Duration::MAX), u64::MAX);
        assert_eq!(ns_saturating(Duration::from_micros(3)), 3_000);
        assert_eq!(ns_saturating(Duration::MAX), u64::MAX);
    }
}
