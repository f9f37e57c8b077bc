//! When a timer or a rate is due: at multiples of its period after its start.
//!
//! A late tick does not move the next one, so the schedule does not drift. A tick may be taken late until the
//! next one is due; ticks not taken by then are skipped and counted, and do not come in a burst.
//! `rcl_timer_call` of ROS 2 does the same.

use std::time::Duration;

use rnet_core::{Error, Result, time::ns_saturating};

/// One tick of a timer or of a `rnet::Rate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tick {
    /// Number of the tick in the schedule: tick 1 is due one period after the start. Skipped ticks count.
    pub number: u64,
    /// When the tick was due, in ns of the time of the timer's or rate's node (`rnet::Node::now`), or of
    /// `rnet::now_ns` without a node. After a jump of a simulated time it is counted back from the new time,
    /// to 0 at the least.
    pub due_ns: u64,
    /// How late the tick was taken, in ns.
    pub late_ns: u64,
    /// Number of ticks skipped since the last tick taken.
    pub missed: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Schedule {
    next: Option<u64>,
    /// 0 for a single tick.
    period_ns: u64,
    number: u64,
}

impl Schedule {
    /// Ticks every `period` from `now_ns`.
    pub fn periodic(what: &str, period: Duration, now_ns: u64) -> Result<Schedule> {
        if period.is_zero() {
            let why = "the period is 0 s; it must be longer".to_owned();
            return Err(Error::bad_value(what, why));
        }
        let period_ns = ns_saturating(period);
        Ok(Schedule { next: Some(now_ns.saturating_add(period_ns)), period_ns, number: 0 })
    }

    /// One tick, `delay` after `now_ns`.
    pub fn once(delay: Duration, now_ns: u64) -> Schedule {
        let next = now_ns.saturating_add(ns_saturating(delay));
        Schedule { next: Some(next), period_ns: 0, number: 0 }
    }

    /// When the next tick is due; `None` if no tick follows.
    pub fn due_ns(&self) -> Option<u64> {
        self.next
    }

    /// The tick that is due at `now_ns`, if any. The next tick is due later than `now_ns`.
    pub fn take(&mut self, now_ns: u64) -> Option<Tick> {
        let first_ns = self.next.filter(|due_ns| *due_ns <= now_ns)?;
        let missed = (now_ns - first_ns).checked_div(self.period_ns).unwrap_or(0);
        let due_ns = first_ns + missed * self.period_ns;
        self.number = self.number.saturating_add(missed).saturating_add(1);
        self.next = (self.period_ns > 0).then(|| due_ns.saturating_add(self.period_ns));
        Some(Tick { number: self.number, due_ns, late_ns: now_ns - due_ns, missed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn each_10_ms() -> Schedule {
        Schedule::periodic("a test", Duration::from_millis(10), 1_000 * MS).unwrap()
    }

    #[test]
    fn late_tick_does_not_move_next_one() {
        let mut schedule = each_10_ms();
        assert_eq!(schedule.take(1_009 * MS), None);
        for n in 1..1_000 {
            let due_ns = (1_000 + 10 * n) * MS;
            let late_ns = n % 10 * MS;
            let tick = schedule.take(due_ns + late_ns).unwrap();
            assert_eq!(tick, Tick { number: n, due_ns, late_ns, missed: 0 });
            assert_eq!(schedule.take(due_ns + late_ns), None);
        }
    }

    #[test]
    fn missed_ticks_are_counted_and_not_sent_in_burst() {
        let mut schedule = each_10_ms();
        let tick = schedule.take(1_047 * MS).unwrap();
        assert_eq!(tick, Tick { number: 4, due_ns: 1_040 * MS, late_ns: 7 * MS, missed: 3 });
        assert_eq!(schedule.take(1_047 * MS), None);
        assert_eq!(schedule.due_ns(), Some(1_050 * MS));
    }

    #[test]
    fn single_tick_ends_schedule() {
        let mut schedule = Schedule::once(Duration::from_millis(1), 0);
        assert_eq!(schedule.take(MS - 1), None);
        let tick = schedule.take(5 * MS).unwrap();
        assert_eq!(tick, Tick { number: 1, due_ns: MS, late_ns: 4 * MS, missed: 0 });
        assert_eq!((schedule.due_ns(), schedule.take(u64::MAX)), (None, None));
    }

    #[test]
    fn unreachable_times_are_harmless() {
        assert!(Schedule::periodic("a test", Duration::ZERO, 0).is_err());
        let mut schedule = Schedule::periodic("a test", Duration::MAX, 5).unwrap();
        assert_eq!(schedule.take(u64::MAX - 1), None);
        let mut schedule = Schedule::periodic("a test", Duration::from_nanos(1), 0).unwrap();
        assert_eq!(schedule.take(u64::MAX).unwrap().missed, u64::MAX - 1);
        assert_eq!(schedule.due_ns(), Some(u64::MAX));
    }
}
