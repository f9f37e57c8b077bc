//! Time: `CLOCK_MONOTONIC`, which all processes of a machine share, and CPU time.

use crate::{Error, Result};

fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer.
    let code = unsafe { libc::clock_gettime(clock, &mut time) };
    (code == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Nanoseconds of `CLOCK_MONOTONIC`; comparable between processes of one machine.
#[inline]
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// Sleeps until `CLOCK_MONOTONIC` reads `due_ns`. Returns at once when that has passed.
pub fn sleep_until(due_ns: u64) {
    let due = libc::timespec {
        tv_sec: (due_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (due_ns % 1_000_000_000) as libc::c_long,
    };
    loop {
        // SAFETY: `due` is a valid time, and no remainder is asked for.
        let code = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &due,
                std::ptr::null_mut(),
            )
        };
        if code != libc::EINTR {
            return;
        }
    }
}

/// Lets the calling thread's sleeps end on time, not up to 50 µs later as is the kernel's default.
pub fn precise_sleep() {
    // SAFETY: sets a number of the calling thread, no memory is passed.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// CPU time in ns that a process has used so far, all its threads together.
///
/// # Errors
/// If the process does not exist.
pub fn cpu_ns(pid: u32) -> Result<u64> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is a valid place for the answer.
    let code = unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) };
    let read = if code == 0 { read(clock) } else { None };
    read.ok_or_else(|| Error::new(format!("process {pid} has no CPU clock: it has ended")))
}
