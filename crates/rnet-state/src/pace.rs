//! How a watch passes the time until the next change: awake while that pays, by the clock when changes keep
//! time, else asleep until it is woken. The same rules as of subscribers, learnt by [`PeriodEstimator`].

use std::time::Duration;

use rnet_shm::bell::Woken;
use rnet_shm::clock;
use rnet_shm::cpu::{self, ShortSlice};
use rnet_shm::node::OwnNode;

use rnet_node::period_estimator::{PeriodEstimator, Plan};

/// Looks at the clock once per this many turns of a spin.
const SPINS_PER_LOOK: u32 = 32;

/// A change that says it was written longer ago, in ns, is timed by its arrival: the clocks do not agree.
const OLDEST_NS: u64 = 1_000_000_000;

/// What can be waited for.
pub(super) trait Place {
    /// Whether there is something; it is looked at again behind the wait.
    fn poll(&mut self) -> bool;
    /// Sleeps until there may be something; with `precise` the limit is kept as closely as the kernel can.
    fn sleep(&mut self, limit: Duration, precise: bool) -> Woken;
}

/// The period of the changes of one place, and what was learnt of the last wait.
#[derive(Default)]
pub(super) struct Pace {
    /// Whether it may change what the scheduler does with the thread.
    tunes: bool,
    period: PeriodEstimator,
    changes: u64,
    /// Whether the change that comes next was waited for, and whether awake.
    waited: bool,
    awake: bool,
    /// When the last wait began.
    since_ns: u64,
    /// Of the thread that waited last.
    short_slice: Option<ShortSlice>,
}

impl Pace {
    /// Of a place of this node.
    pub(super) fn of(own: &OwnNode) -> Pace {
        Pace { tunes: own.bells().tunes_threads(), ..Pace::default() }
    }

    /// A change has come, and with it so many that were skipped.
    pub(super) fn came(&mut self, written_unix_ns: u64, skipped: u64) {
        self.changes = self.changes.wrapping_add(1).wrapping_add(skipped);
        if !std::mem::take(&mut self.waited) {
            return;
        }
        let (now_ns, unix_ns) = (clock::now_ns(), clock::unix_ns());
        let latency_ns = unix_ns.saturating_sub(written_unix_ns);
        let latency_ns = if latency_ns > OLDEST_NS { 0 } else { latency_ns };
        let written_ns = now_ns.saturating_sub(latency_ns);
        self.period.learn(written_ns, self.changes);
        if self.awake {
            self.period.met(latency_ns);
        }
        if written_ns >= self.since_ns {
            self.period.held_up(now_ns, latency_ns);
        }
    }

    /// Waits until there may be something at the place, for `limit` at the most.
    pub(super) fn wait(&mut self, place: &mut impl Place, limit: Duration) -> Woken {
        if self.tunes {
            // As who waits for urgent messages: somebody who computes is not to hold a change up.
            ShortSlice::keep(&mut self.short_slice, cpu::For::Urgent);
        }
        let since_ns = clock::now_ns();
        self.since_ns = since_ns;
        let end_ns = since_ns.saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        (self.awake, self.waited) = (false, true);
        loop {
            let now_ns = clock::now_ns();
            if now_ns >= end_ns {
                return Woken::TimedOut;
            }
            let left = |to_ns: u64| Duration::from_nanos(to_ns.min(end_ns).saturating_sub(now_ns));
            match self.period.plan(now_ns, since_ns) {
                Plan::Sleep => {
                    self.awake = false;
                    return place.sleep(left(end_ns), false);
                }
                Plan::Spin(to_ns) => {
                    let (ready, gap_ns) = spin(place, to_ns.min(end_ns));
                    self.period.held_up(clock::now_ns(), gap_ns);
                    if ready {
                        return Woken::Look;
                    }
                }
                Plan::Doze(to_ns) => {
                    let woken = place.sleep(left(to_ns), self.tunes);
                    let now_ns = clock::now_ns();
                    if now_ns < to_ns {
                        // Somebody rang, or it was the user's time that was over.
                        self.awake = false;
                        return woken;
                    }
                    self.awake = true;
                    self.period.dozed(now_ns, now_ns - to_ns);
                    if woken == Woken::Signal || place.poll() {
                        return woken;
                    }
                }
            }
        }
    }
}

/// Looks until there is something or the time is over; returns whether there is, and the longest time
/// between two looks at the clock.
fn spin(place: &mut impl Place, until_ns: u64) -> (bool, u64) {
    let (mut looked_ns, mut gap_ns) = (clock::now_ns(), 0);
    loop {
        for _ in 0..SPINS_PER_LOOK {
            if place.poll() {
                return (true, gap_ns);
            }
            std::hint::spin_loop();
        }
        let now_ns = clock::now_ns();
        gap_ns = gap_ns.max(now_ns.saturating_sub(looked_ns));
        looked_ns = now_ns;
        if now_ns >= until_ns {
            return (false, gap_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place at which something is from a time on.
    struct From {
        at_ns: u64,
        slept: Vec<bool>,
        polled: u32,
    }

    impl Place for From {
        fn poll(&mut self) -> bool {
            self.polled += 1;
            clock::now_ns() >= self.at_ns
        }
        fn sleep(&mut self, limit: Duration, precise: bool) -> Woken {
            self.slept.push(precise);
            let end_ns = clock::now_ns() + limit.as_nanos() as u64;
            while precise && clock::now_ns() < end_ns {
                std::hint::spin_loop();
            }
            if self.poll() { Woken::Look } else { Woken::TimedOut }
        }
    }

    /// What a pace does that has learnt changes of this period.
    fn waits(period_ns: u64) -> From {
        let mut pace = Pace { tunes: true, ..Pace::default() };
        // The last one was half a period ago.
        let start_ns = clock::now_ns() - 100 * period_ns + period_ns / 2;
        for n in 0..100 {
            pace.period.learn(start_ns + n * period_ns, n + 1);
        }
        let mut place = From { at_ns: start_ns + 100 * period_ns, slept: Vec::new(), polled: 0 };
        pace.wait(&mut place, Duration::from_secs(1));
        place
    }

    #[test]
    fn a_flood_is_awaited_awake_and_what_is_rare_asleep() {
        let flood = waits(20_000);
        assert!(flood.polled > 0 && flood.slept.is_empty(), "{:?}", flood.slept);
        assert_eq!(waits(50_000_000).slept, [false]);
        let mut none = From { at_ns: u64::MAX, slept: Vec::new(), polled: 0 };
        assert_eq!(Pace::default().wait(&mut none, Duration::ZERO), Woken::TimedOut);
        assert_eq!((none.polled, none.slept.len()), (0, 0), "there is no time to look");
    }

    #[test]
    fn what_keeps_time_is_dozed_for_and_then_awaited_awake() {
        // Again where the machine has held this thread up for half a period.
        let mut tries = (0..1000).map(|_| waits(2_000_000));
        assert!(tries.any(|place| place.slept == [true] && place.polled > 1));
    }
}
