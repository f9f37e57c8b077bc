//! Sleeping by the clock alone: nobody rings for it.

use std::time::Duration;

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec};

use crate::os::clock::now_ns;
use crate::os::cpu::PreciseTimers;

/// No sleep is longer.
const MAX_TIMED_SLEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// Sleeps for so long, as closely as the kernel can, but no longer than a day. Returns `false` if a
/// signal ended the sleep.
pub fn sleep_for(limit: Duration) -> bool {
    let _precise = PreciseTimers::enable();
    let end = Duration::from_nanos(now_ns()) + limit.min(MAX_TIMED_SLEEP);
    let end = Timespec { tv_sec: end.as_secs() as i64, tv_nsec: i64::from(end.subsec_nanos()) };
    clock_nanosleep_absolute(ClockId::Monotonic, &end) != Err(rustix::io::Errno::INTR)
}
