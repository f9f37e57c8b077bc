//! How a thread passes the time until the next message or change: awake while that pays, by the clock when they
//! keep time, else asleep until it is woken. What pays is learnt by [`PeriodEstimator`].
//!
//! Subscribers, watches of the state, wait sets and dispatch threads wait so, for what [`crate::wait_source`] shows.

use std::cell::Cell;
use std::time::Duration;

use rnet_core::Wait;
use rnet_shm::os::bell::{Bells, SleepMode, WakeReason};
use rnet_shm::os::clock;
use rnet_shm::os::cpu::{self, ShortSlice};

use crate::period_estimator::{PeriodEstimator, Plan};
use crate::reply_estimator::ReplyEstimator;

/// Looks at the clock once per this many turns of a spin.
const SPINS_PER_CLOCK_READ: u32 = 32;
/// The same of a first spin, some 2 µs: most replies come sooner, and those that would come in the middle of the look, which
/// takes a third of the time that they do, are late by it.
const FIRST_SPINS_PER_CLOCK_READ: u32 = 128;

thread_local! {
    /// When a wait of this thread ended last, for traces: of several subscribers that one wait is for, and of none.
    static WOKEN_NS: Cell<u64> = const { Cell::new(0) };
}

/// A wait of this thread ends now, for a trace of what it was for.
pub fn note_woken() {
    WOKEN_NS.set(clock::now_ns());
}

/// When a wait of this thread ended last, CLOCK_MONOTONIC in ns; 0 if none has.
pub fn woken_ns() -> u64 {
    WOKEN_NS.get()
}

/// What can be waited for.
pub trait WaitTarget {
    /// Whether there is something; it is looked at again behind the wait.
    fn poll(&mut self) -> bool;
    /// Sleeps until there may be something.
    fn sleep(&mut self, sleep: SleepMode, limit: Duration) -> WakeReason;
}

/// The period of what comes to one target, and what was learnt of the last wait.
#[derive(Debug, Default)]
pub struct WaitStrategy {
    /// Whether it may change what the scheduler does with the thread.
    tunes: bool,
    period: PeriodEstimator,
    /// Of a target at which replies are waited for.
    replies: Option<ReplyEstimator>,
    /// Whether what comes next was waited for, and whether awake.
    waited: bool,
    awake: bool,
    /// When the last wait began, and when it ended.
    since_ns: u64,
    ended_ns: u64,
    /// Whether that wait has begun with a first spin, which found nothing: the next one is the rest of it.
    spun_first: bool,
    /// Of the thread that slept last.
    short_slice: Option<ShortSlice>,
}

impl WaitStrategy {
    /// Of a target at one of these bells.
    pub fn of(bells: &Bells) -> WaitStrategy {
        WaitStrategy { tunes: bells.tunes_threads(), ..WaitStrategy::default() }
    }

    /// What comes is the answer to what was sent right before the wait.
    pub fn expect_replies(&mut self) {
        self.replies = Some(ReplyEstimator::default());
    }

    /// Something has come that was sent at `sent_ns`, and is number `count` of what came, skipped ones included.
    pub fn record_arrival(&mut self, sent_ns: u64, count: u64) {
        self.period.note_sent(sent_ns);
        if !std::mem::take(&mut self.waited) {
            return;
        }
        // Not until now: a dispatch thread may have run callbacks since the wait ended.
        let latency_ns = self.ended_ns.saturating_sub(sent_ns);
        if let Some(replies) = &mut self.replies {
            replies.record_latency(self.ended_ns.saturating_sub(self.since_ns));
        }
        self.period.learn(sent_ns, count);
        if self.awake {
            self.period.note_awake_latency(latency_ns);
        }
        // What was sent before has not been waited for.
        if sent_ns >= self.since_ns {
            self.period.note_delay(self.ended_ns, latency_ns);
        }
    }

    /// The first part of an adaptive wait, if that is to be passed awake: looks at nothing but whether `come`, and now
    /// and then for what else ends the wait. Whether it has come; [`WaitStrategy::record_arrival_at`] is told of it, and of the moment.
    /// If not, [`WaitStrategy::wait`] is the rest of the wait.
    pub fn spin_first(&mut self, come: impl Fn() -> bool, other: impl Fn() -> bool) -> bool {
        if come() {
            // It was not waited for.
            (self.waited, self.spun_first) = (false, false);
            return true;
        }
        let since_ns = clock::now_ns();
        (self.since_ns, self.awake, self.waited) = (since_ns, false, true);
        self.spun_first = true;
        let mut looked_ns = since_ns;
        while let Plan::Spin(_) = self.plan(looked_ns, since_ns) {
            for _ in 0..FIRST_SPINS_PER_CLOCK_READ {
                if come() {
                    self.spun_first = false;
                    return true;
                }
                std::hint::spin_loop();
            }
            if other() {
                break;
            }
            let now_ns = clock::now_ns();
            self.period.note_delay(now_ns, now_ns.saturating_sub(looked_ns));
            looked_ns = now_ns;
        }
        false
    }

    /// A wait that began with a first spin is over, perhaps before the rest of it has begun.
    pub fn end_first_spin(&mut self) {
        if std::mem::take(&mut self.spun_first) {
            self.ended_ns = clock::now_ns();
        }
    }

    /// As [`WaitStrategy::record_arrival`], of what a first spin has found, which was taken at `taken_ns`: that is when the wait ended.
    pub fn record_arrival_at(&mut self, taken_ns: u64, sent_ns: u64, count: u64) {
        self.ended_ns = taken_ns;
        self.record_arrival(sent_ns, count);
    }

    /// What to do in an adaptive wait that began at `since_ns`.
    fn plan(&self, now_ns: u64, since_ns: u64) -> Plan {
        match self.replies.as_ref().map(|replies| replies.awake_until(since_ns)) {
            Some(until) if now_ns < until => Plan::Spin(until),
            _ => self.period.plan(now_ns, since_ns),
        }
    }

    /// Has this thread go before those that compute, once it is woken.
    pub fn keep_short_slice(&mut self, whom: cpu::SliceLen) {
        if self.tunes {
            ShortSlice::keep(&mut self.short_slice, whom);
        }
    }

    /// Waits until there may be something at the target, for `limit` at the most.
    pub fn wait(
        &mut self,
        target: &mut impl WaitTarget,
        wait: Wait,
        limit: Duration,
    ) -> WakeReason {
        let woken = self.wait_for(target, wait, limit);
        self.ended_ns = clock::now_ns();
        WOKEN_NS.set(self.ended_ns);
        woken
    }

    fn wait_for(
        &mut self,
        target: &mut impl WaitTarget,
        wait: Wait,
        limit: Duration,
    ) -> WakeReason {
        let began_ns = clock::now_ns();
        let since_ns = if std::mem::take(&mut self.spun_first) { self.since_ns } else { began_ns };
        (self.since_ns, self.awake, self.waited) = (since_ns, false, wait == Wait::Adaptive);
        let end_ns = began_ns.saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        loop {
            let now_ns = clock::now_ns();
            if now_ns >= end_ns {
                return WakeReason::TimedOut;
            }
            let left = |to_ns: u64| match to_ns.min(end_ns) {
                u64::MAX => Duration::MAX,
                to_ns => Duration::from_nanos(to_ns.saturating_sub(now_ns)),
            };
            let plan = match wait {
                Wait::Spin => Plan::Spin(u64::MAX),
                Wait::Block => Plan::Sleep,
                Wait::Adaptive => self.plan(now_ns, since_ns),
            };
            match plan {
                Plan::Sleep => {
                    self.awake = false;
                    return target.sleep(SleepMode::UntilRung, left(end_ns));
                }
                Plan::Spin(to_ns) => {
                    let (ready, gap_ns) = spin(target, to_ns.min(end_ns));
                    self.period.note_delay(clock::now_ns(), gap_ns);
                    if ready {
                        return WakeReason::Ready;
                    }
                }
                Plan::Doze(to_ns) => {
                    let sleep = if self.tunes { SleepMode::Timed } else { SleepMode::UntilRung };
                    let woken = target.sleep(sleep, left(to_ns));
                    let now_ns = clock::now_ns();
                    if now_ns < to_ns {
                        // Somebody rang, or it was the user's time that was over.
                        self.awake = false;
                        return woken;
                    }
                    self.awake = true;
                    self.period.note_doze(now_ns, now_ns - to_ns);
                    if woken == WakeReason::Signal {
                        return woken;
                    }
                    if target.poll() {
                        return WakeReason::Ready;
                    }
                }
            }
        }
    }
}

/// Looks until there is something or the time is over; returns whether there is, and the longest time
/// between two looks at the clock.
fn spin(target: &mut impl WaitTarget, until_ns: u64) -> (bool, u64) {
    let (mut looked_ns, mut gap_ns) = (clock::now_ns(), 0);
    loop {
        for _ in 0..SPINS_PER_CLOCK_READ {
            if target.poll() {
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

    /// A target at which something is from a time on.
    struct ReadyFrom {
        at_ns: u64,
        slept: Vec<bool>,
        polled: u32,
    }

    impl WaitTarget for ReadyFrom {
        fn poll(&mut self) -> bool {
            self.polled += 1;
            clock::now_ns() >= self.at_ns
        }
        fn sleep(&mut self, sleep: SleepMode, limit: Duration) -> WakeReason {
            let precise = sleep == SleepMode::Timed;
            self.slept.push(precise);
            let end_ns = clock::now_ns() + limit.as_nanos() as u64;
            while precise && clock::now_ns() < end_ns {
                std::hint::spin_loop();
            }
            if self.poll() { WakeReason::Ready } else { WakeReason::TimedOut }
        }
    }

    /// What a wait strategy does that has learnt changes of this period.
    fn waits(period_ns: u64) -> ReadyFrom {
        let mut wait_strategy = WaitStrategy { tunes: true, ..WaitStrategy::default() };
        // The last one was half a period ago.
        let start_ns = clock::now_ns() - 100 * period_ns + period_ns / 2;
        for n in 0..100 {
            wait_strategy.period.learn(start_ns + n * period_ns, n + 1);
        }
        let mut target =
            ReadyFrom { at_ns: start_ns + 100 * period_ns, slept: Vec::new(), polled: 0 };
        wait_strategy.wait(&mut target, Wait::Adaptive, Duration::from_secs(1));
        target
    }

    #[test]
    fn a_flood_is_awaited_awake_and_what_is_rare_asleep() {
        // Again where the machine has held this thread up until the flood seems to be over.
        let mut tries = (0..1000).map(|_| waits(20_000));
        assert!(tries.any(|flood| flood.polled > 0 && flood.slept.is_empty()));
        assert_eq!(waits(50_000_000).slept, [false]);
        let mut none = ReadyFrom { at_ns: u64::MAX, slept: Vec::new(), polled: 0 };
        assert_eq!(
            WaitStrategy::default().wait(&mut none, Wait::Adaptive, Duration::ZERO),
            WakeReason::TimedOut
        );
        assert_eq!((none.polled, none.slept.len()), (0, 0), "there is no time to look");
    }

    /// Whether a wait strategy takes its core for contested after a change that it awaited awake, and a callback of
    /// 500 µs.
    fn is_contested_after_a_callback() -> bool {
        let mut wait_strategy = WaitStrategy { tunes: true, ..WaitStrategy::default() };
        let now_ns = clock::now_ns();
        (0..100).for_each(|n| wait_strategy.period.learn(now_ns - 2_000_000 + n * 20_000, n + 1));
        let mut target = ReadyFrom { at_ns: clock::now_ns() + 5_000, slept: Vec::new(), polled: 0 };
        wait_strategy.wait(&mut target, Wait::Adaptive, Duration::from_secs(1));
        while clock::now_ns() < target.at_ns + 500_000 {
            std::hint::spin_loop();
        }
        wait_strategy.record_arrival(target.at_ns, 101);
        // Longer than nothing is known of the core at first, shorter than it is contested then.
        wait_strategy.period.is_contested(clock::now_ns() + 500_000_000)
    }

    #[test]
    fn a_callback_is_no_latency() {
        // Again where the machine has held this thread up.
        assert!((0..1000).any(|_| !is_contested_after_a_callback()));
    }

    #[test]
    fn what_keeps_time_is_dozed_for_and_then_awaited_awake() {
        // Again where the machine has held this thread up for half a period.
        let mut tries = (0..1000).map(|_| waits(2_000_000));
        assert!(tries.any(|target| target.slept == [true] && target.polled > 1));
    }
}
