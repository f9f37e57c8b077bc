//! A schedule of messages.

use std::num::NonZeroU64;

use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec};

/// If messages are closer than this, the sender spins: going to sleep and being woken takes as long.
const SPIN_BELOW_NS: f64 = 50_000.0;

/// A schedule with a fixed period. A late message is sent at once and the schedule is kept, so that a stall
/// of the sender does not reduce the load after it.
#[derive(Debug)]
pub struct Schedule {
    start_ns: u64,
    period_ns: f64,
    /// The sender's largest delay.
    pub behind_max_ns: u64,
}

impl Schedule {
    pub fn new(start_ns: u64, period_ns: f64) -> Schedule {
        Schedule { start_ns, period_ns, behind_max_ns: 0 }
    }

    pub fn due_ns(&self, number: u64) -> u64 {
        self.start_ns + (self.period_ns * number as f64) as u64
    }

    /// Waits until message `number` is due.
    pub fn wait(&mut self, number: u64) {
        let due_ns = self.due_ns(number);
        if self.period_ns < SPIN_BELOW_NS {
            while rnet::now_ns() < due_ns {
                std::hint::spin_loop();
            }
        } else {
            sleep_until(due_ns);
        }
        self.behind_max_ns = self.behind_max_ns.max(rnet::now_ns().saturating_sub(due_ns));
    }
}

/// Makes sleeps of this thread end on time, instead of up to 50 us later, the kernel's default.
pub fn sleep_precisely() {
    // If it is refused, the schedule is coarser, which `behind_max_ns` shows.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

pub fn sleep_until(due_ns: u64) {
    let due = Timespec {
        tv_sec: (due_ns / 1_000_000_000) as i64,
        tv_nsec: (due_ns % 1_000_000_000) as _,
    };
    while rnet::now_ns() < due_ns {
        // A sleep interrupted by a signal continues.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &due);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_not_sent_before_due_time() {
        for period_ns in [20_000.0, 200_000.0] {
            let mut schedule = Schedule::new(rnet::now_ns(), period_ns);
            for number in 0..20 {
                schedule.wait(number);
                assert!(rnet::now_ns() >= schedule.due_ns(number));
            }
        }
    }
}
