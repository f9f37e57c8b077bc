//! The clock that stamps messages: CLOCK_MONOTONIC, which all processes of a host share.

use rustix::time::{ClockId, clock_gettime};

/// Now, in ns of CLOCK_MONOTONIC.
#[inline]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Wall-clock time, in ns since 1970.
pub fn unix_ns() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
