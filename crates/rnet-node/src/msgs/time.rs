//! Times in messages, and as a single number.
//!
//! A message carries UTC time as `google.protobuf.Timestamp`: seconds and nanoseconds since 1970. robot-net
//! counts in ns, as one signed 64-bit number, which covers the years 1677 to 2262.

pub use prost_types::{Duration, Timestamp};

const NS_PER_S: i64 = 1_000_000_000;

/// The current time, UTC.
///
/// The clock for people and recordings: it can be set, and may jump. To measure the time between events, use
/// `rnet::now_ns`.
pub fn timestamp_now() -> Timestamp {
    Timestamp::from(std::time::SystemTime::now())
}

/// A time in ns since 1970-01-01 UTC as a `Timestamp`.
///
/// ```
/// use rnet::msgs::{Timestamp, timestamp_from_ns};
/// assert_eq!(timestamp_from_ns(-1), Timestamp { seconds: -1, nanos: 999_999_999 });
/// ```
pub fn timestamp_from_ns(ns: i64) -> Timestamp {
    let nanos = ns.rem_euclid(NS_PER_S) as i32;
    Timestamp { seconds: ns.div_euclid(NS_PER_S), nanos }
}

/// A `Timestamp` in ns since 1970-01-01 UTC; `None` if it is outside 1677 to 2262.
///
/// ```
/// use rnet::msgs::{timestamp_from_ns, timestamp_to_ns};
/// assert_eq!(timestamp_to_ns(&timestamp_from_ns(i64::MIN)), Some(i64::MIN));
/// ```
pub fn timestamp_to_ns(timestamp: &Timestamp) -> Option<i64> {
    to_ns(timestamp.seconds, timestamp.nanos)
}

/// A length of time in ns as a `Duration`: both its numbers have the sign of `ns`.
///
/// ```
/// use rnet::msgs::{Duration, duration_from_ns};
/// assert_eq!(duration_from_ns(-1_500_000_000), Duration { seconds: -1, nanos: -500_000_000 });
/// ```
pub fn duration_from_ns(ns: i64) -> Duration {
    Duration { seconds: ns / NS_PER_S, nanos: (ns % NS_PER_S) as i32 }
}

/// A `Duration` in ns; `None` if it is longer than 292 years.
///
/// ```
/// use rnet::msgs::{duration_from_ns, duration_to_ns};
/// assert_eq!(duration_to_ns(&duration_from_ns(-7)), Some(-7));
/// ```
pub fn duration_to_ns(duration: &Duration) -> Option<i64> {
    to_ns(duration.seconds, duration.nanos)
}

fn to_ns(seconds: i64, nanos: i32) -> Option<i64> {
    // Wider than the result: the seconds of `i64::MIN` ns alone are below it.
    let ns = i128::from(seconds) * i128::from(NS_PER_S) + i128::from(nanos);
    i64::try_from(ns).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ns_survive_round_trip() {
        for ns in [0, 1, -1, NS_PER_S, -NS_PER_S, NS_PER_S - 1, 1 - NS_PER_S, i64::MAX, i64::MIN] {
            let timestamp = timestamp_from_ns(ns);
            assert!((0..NS_PER_S as i32).contains(&timestamp.nanos), "{timestamp:?}");
            assert_eq!(timestamp_to_ns(&timestamp), Some(ns));
            let duration = duration_from_ns(ns);
            assert!(duration.seconds.signum() * i64::from(duration.nanos).signum() >= 0);
            assert_eq!(duration_to_ns(&duration), Some(ns));
        }
    }

    #[test]
    fn out_of_range_values_are_none() {
        let last = timestamp_from_ns(i64::MAX);
        let one_more = Timestamp { nanos: last.nanos + 1, ..last };
        assert_eq!(timestamp_to_ns(&one_more), None);
        assert_eq!(timestamp_to_ns(&Timestamp { seconds: i64::MIN, nanos: i32::MIN }), None);
        assert_eq!(duration_to_ns(&Duration { seconds: i64::MAX, nanos: i32::MAX }), None);
    }
}
