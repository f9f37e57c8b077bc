//! The loop in which a thread waits for the next message or change: awake while that pays, with timed sleeps
//! if they are periodic, otherwise asleep until it is woken. [`PeriodEstimator`] learns what pays.
//!
//! Subscribers, state watches, wait sets and dispatch threads wait this way for the sources of
//! [`crate::wait_source`].

use std::cell::Cell;
use std::time::Duration;

use rnet_core::Wait;
use rnet_shm::os::bell::{Bells, SleepMode, WakeReason};
use rnet_shm::os::clock;
use rnet_shm::os::cpu::{self, ShortSlice};

use crate::reply_estimator::ReplyEstimator;
use crate::spin_or_sleep::{PeriodEstimator, Plan};

/// Turns of a spin between two reads of the clock.
const SPINS_PER_CLOCK_READ: u32 = 32;
/// The same for a first spin, some 2 µs: most replies arrive sooner. A reply that arrives during a check,
/// which takes a third of that time, is late by it.
const FIRST_SPINS_PER_CLOCK_READ: u32 = 128;

thread_local! {
    /// End of the last wait of this thread, for traces; shared by all subscribers, because one wait may be
    /// for several.
    static WOKEN_NS: Cell<u64> = const { Cell::new(0) };
}

/// Notes that a wait of this thread ends now, for a trace of the message.
pub fn note_woken() {
    WOKEN_NS.set(clock::now_ns());
}

/// End of the last wait of this thread, CLOCK_MONOTONIC in ns; 0 without one.
pub fn woken_ns() -> u64 {
    WOKEN_NS.get()
}

/// A target of a wait.
pub trait WaitTarget {
    /// Whether something may be available; the caller checks again after the wait.
    fn poll(&mut self) -> bool;
    /// Sleeps until something may be available.
    fn sleep(&mut self, sleep: SleepMode, limit: Duration) -> WakeReason;
}

/// The period of a target's messages, and the state of the last wait.
#[derive(Debug, Default)]
pub struct WaitStrategy {
    /// Whether it may change the scheduling of the thread.
    tunes: bool,
    period: PeriodEstimator,
    /// Set for a target at which replies are awaited.
    replies: Option<ReplyEstimator>,
    /// Whether the next message was waited for, and whether awake.
    waited: bool,
    awake: bool,
    /// Start and end of the last wait.
    since_ns: u64,
    ended_ns: u64,
    /// Whether the wait started with a first spin that found nothing: the next wait is the rest of it.
    spun_first: bool,
    /// The short slice of the thread that slept last.
    short_slice: Option<ShortSlice>,
}

impl WaitStrategy {
    /// A strategy for a target at one of these bells.
    pub fn of(bells: &Bells) -> WaitStrategy {
        WaitStrategy { tunes: bells.tunes_threads(), ..WaitStrategy::default() }
    }

    /// Declares that each wait is for a reply to a message sent right before it.
    pub fn expect_replies(&mut self) {
        self.replies = Some(ReplyEstimator::default());
    }

    /// Records a message sent at `sent_ns`, with number `count`, including skipped ones.
    pub fn record_arrival(&mut self, sent_ns: u64, count: u64) {
        self.period.note_sent(sent_ns);
        if !std::mem::take(&mut self.waited) {
            return;
        }
        // Not the current time: a dispatch thread may have run callbacks since the wait ended.
        let latency_ns = self.ended_ns.saturating_sub(sent_ns);
        if let Some(replies) = &mut self.replies {
            replies.record_latency(self.ended_ns.saturating_sub(self.since_ns));
        }
        self.period.learn(sent_ns, count);
        if self.awake {
            self.period.note_awake_latency(latency_ns);
        }
        // A message sent before the wait started was not waited for.
        if sent_ns >= self.since_ns {
            self.period.note_delay(self.ended_ns, latency_ns);
        }
    }

    /// The first part of an adaptive wait, if it is spent awake: polls only `come`, and now and then `other`,
    /// which ends the wait. Returns whether `come` returned true; then report the message and its time with
    /// [`WaitStrategy::record_arrival_at`]. If not, [`WaitStrategy::wait`] is the rest of the wait.
    pub fn spin_first(&mut self, come: impl Fn() -> bool, other: impl Fn() -> bool) -> bool {
        if come() {
            // It was not waited for.
            (self.waited, self.spun_first) = (false, false);
            return true;
        }
        let since_ns = clock::now_ns();
        (self.since_ns, self.awake, self.waited) = (since_ns, false, true);
        self.spun_first = true;
        let mut checked_ns = since_ns;
        while let Plan::Spin(_) = self.plan(checked_ns, since_ns) {
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
            self.period.note_delay(now_ns, now_ns.saturating_sub(checked_ns));
            checked_ns = now_ns;
        }
        false
    }

    /// Ends a wait that started with a first spin, possibly before the rest of it started.
    pub fn end_first_spin(&mut self) {
        if std::mem::take(&mut self.spun_first) {
            self.ended_ns = clock::now_ns();
        }
    }

    /// As [`WaitStrategy::record_arrival`], for a message that a first spin found: the wait ended at
    /// `taken_ns`, when it was taken.
    pub fn record_arrival_at(&mut self, taken_ns: u64, sent_ns: u64, count: u64) {
        self.ended_ns = taken_ns;
        self.record_arrival(sent_ns, count);
    }

    /// The plan of an adaptive wait that started at `since_ns`.
    fn plan(&self, now_ns: u64, since_ns: u64) -> Plan {
        match self.replies.as_ref().map(|replies| replies.awake_until(since_ns)) {
            Some(until) if now_ns < until => Plan::Spin(until),
            _ => self.period.plan(now_ns, since_ns),
        }
    }

    /// Makes the scheduler run this thread before threads that compute, once it is woken.
    pub fn keep_short_slice(&mut self, whom: cpu::SliceLen) {
        if self.tunes {
            ShortSlice::keep(&mut self.short_slice, whom);
        }
    }

    /// Waits until something may be available at the target, at most for `limit`.
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
                        // A waker rang, or the user's timeout expired.
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

/// Polls until something is available or the time is over; returns whether something is available, and the
/// longest time between two reads of the clock.
fn spin(target: &mut impl WaitTarget, until_ns: u64) -> (bool, u64) {
    let (mut checked_ns, mut gap_ns) = (clock::now_ns(), 0);
    loop {
        for _ in 0..SPINS_PER_CLOCK_READ {
            if target.poll() {
                return (true, gap_ns);
            }
            std::hint::spin_loop();
        }
        let now_ns = clock::now_ns();
        gap_ns = gap_ns.max(now_ns.saturating_sub(checked_ns));
        checked_ns = now_ns;
        if now_ns >= until_ns {
            return (false, gap_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A target that is ready from a given time.
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

    /// The actions of a wait strategy that has learned this period.
    fn waits(period_ns: u64) -> ReadyFrom {
        let mut wait_strategy = WaitStrategy { tunes: true, ..WaitStrategy::default() };
        // The last message was sent half a period ago.
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
    fn flood_is_awaited_awake_and_rare_message_asleep() {
        // Retried if the machine delays this thread until the flood seems to be over.
        let mut tries = (0..1000).map(|_| waits(20_000));
        assert!(tries.any(|flood| flood.polled > 0 && flood.slept.is_empty()));
        assert_eq!(waits(50_000_000).slept, [false]);
        let mut none = ReadyFrom { at_ns: u64::MAX, slept: Vec::new(), polled: 0 };
        assert_eq!(
            WaitStrategy::default().wait(&mut none, Wait::Adaptive, Duration::ZERO),
            WakeReason::TimedOut
        );
        assert_eq!((none.polled, none.slept.len()), (0, 0), "a zero limit leaves no time to poll");
    }

    /// Whether a wait strategy considers its core contested after a change that it awaited awake, and a
    /// callback of 500 µs.
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
        // Longer than the initial period without knowledge of the core, shorter than the first contested
        // period.
        wait_strategy.period.is_contested(clock::now_ns() + 500_000_000)
    }

    #[test]
    fn callback_time_is_not_latency() {
        // Retried if the machine delays this thread.
        assert!((0..1000).any(|_| !is_contested_after_a_callback()));
    }

    #[test]
    fn periodic_message_is_dozed_for_then_awaited_awake() {
        // Retried if the machine delays this thread for half a period.
        let mut tries = (0..1000).map(|_| waits(2_000_000));
        assert!(tries.any(|target| target.slept == [true] && target.polled > 1));
    }
}
