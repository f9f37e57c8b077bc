//! Times of keys.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use rnet_monitor::documents::entry as of;

/// The current time in ns since 1970: the clock of the values shown to people.
pub fn unix_now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Time since this, by the wall clock as it is set now.
pub fn elapsed_since(unix_ns: u64) -> Duration {
    Duration::from_nanos(unix_now_ns().saturating_sub(unix_ns))
}
