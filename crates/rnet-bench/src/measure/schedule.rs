//! When the next message is due.

use std::num::NonZeroU64;

use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec};

/// Between messages that are closer than this the sender spins: going to sleep and being woken
/// takes as long.
const SPIN_BELOW_NS: f64 = 50_000.0;

/// A schedule with a fixed period. A message that is late is sent at once and the schedule kept,
/// so that a stall of the sender does not thin out the load behind it.
#[derive(Debug)]
pub struct Schedule {
    start_ns: u64,
    period_ns: f64,
    /// How late the sender was at worst.
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

/// Lets sleeps of this thread end on time and not up to 50 us later, which is the kernel's default.
pub fn sleep_precisely() {
    // Where it is refused the schedule is coarser, which `behind_max_ns` shows.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

pub fn sleep_until(due_ns: u64) {
    let due = Timespec {
        tv_sec: (due_ns / 1_000_000_000) as i64,
        tv_nsec: (due_ns % 1_000_000_000) as _,
    };
    while rnet::now_ns() < due_ns {
        // Interrupted by a signal it goes on.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &due);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_message_leaves_before_it_is_due() {
        for period_ns in [20_000.0, 200_000.0] {
            let mut schedule = Schedule::new(rnet::now_ns(), period_ns);
            for number in 0..20 {
                schedule.wait(number);
                assert!(rnet::now_ns() >= schedule.due_ns(number));
            }
        }
    }
}
