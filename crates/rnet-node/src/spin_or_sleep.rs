//! Decides whether an adaptive wait spins, dozes or sleeps. It estimates when the next message is due from
//! the times of earlier messages, and spins where that costs less than a wake-up.
//!
//! Waking a thread takes from one to tens of microseconds; a message that finds its reader awake takes a
//! fraction of one. The reader therefore waits awake for a stream whose messages follow each other closely.
//! For a periodic stream, it sleeps until shortly before the next message and then waits awake. For anything
//! else it sleeps until it is woken. All times are in ns of CLOCK_MONOTONIC, like the stamps of the messages.
//!
//! Being awake is not free if other threads want the core. The scheduler prefers a woken thread only if it
//! has had less than its share of CPU time, and a thread that waited awake may have had more. It then waits
//! for a tick of the kernel, milliseconds, and messages pile up. So a reader that ran later than it should
//! have ([`PeriodEstimator::note_delay`]) sleeps for its messages for a while, and for longer each time that
//! this repeats (decision 0023).

/// Longest wait awake: about the cost of going to sleep and being woken.
pub const SPIN_NS: u64 = 50_000;
/// A flood has ended if nothing was sent for this long.
const FLOOD_GAP_NS: u64 = 1_000_000;
/// Messages that must be on time before the next one is expected.
const MIN_ON_TIME: u32 = 12;
/// Number of messages from which the period is estimated; older ones are forgotten.
const FILTER_MEMORY: u32 = 24;
/// Range of expected periods. Shorter periods are too short for a sleep. Longer ones gain less than they
/// cost: with the ten nodes of sierra_nevada, none faster than 100 Hz, expecting them took nine times the CPU
/// time and made the nodes wait longer for each other (decision 0009).
const PERIOD_RANGE_NS: std::ops::Range<f64> = 50_000.0..2_500_000.0;
/// A wait awake for an expected message takes at most this share of its period, or [`AWAKE_NS`] if that is
/// more.
const AWAKE_SHARE: f64 = 0.1;
/// See [`AWAKE_SHARE`].
const AWAKE_NS: f64 = 50_000.0;
/// Margin for what the deviations do not cover.
const MARGIN_NS: f64 = 2_000.0;
/// Minimum length of a doze, as a share of the period.
const MIN_DOZE_SHARE: f64 = 0.2;
/// Shorter sleeps are not worth their cost.
const MIN_SLEEP_NS: u64 = 10_000;
/// Assumed lateness of timed sleeps until it is measured.
const INITIAL_LATENESS_NS: f64 = 30_000.0;

/// A message that finds its reader awake takes less than this, unless the reader keeps its sender from the
/// CPU.
const AWAKE_LATENCY_NS: u64 = 3_000;
/// The reader rests if slow messages outnumber fast ones by this much.
const SLOW_LIMIT: i32 = 5;
/// Number of messages for which it then sleeps.
const REST_MESSAGES: u32 = 2;
/// Messages until it may rest again; doubled after each rest that did not help.
const MESSAGES_BETWEEN_RESTS: i32 = 60;
/// Maximum number of doublings.
const MAX_REST_DOUBLINGS: u32 = 8;

/// A reader that runs this much later than it should was delayed: another thread had its core.
const MAX_DELAY_NS: u64 = 250_000;
/// A reader must run undelayed for this long before it waits awake for a message: one stall of a tick delays
/// 40 messages at 10 kHz, which is too much for a test.
const UNCONTESTED_NS: u64 = 250_000_000;
/// How long the core counts as contested after a delay.
const MIN_CONTESTED_NS: u64 = 1_000_000_000;
/// Maximum of that time; it doubles if the core is soon contested again.
const MAX_CONTESTED_NS: u64 = 64_000_000_000;
/// "Soon" is within this many times that duration.
const SOON_FACTOR: u64 = 16;

/// What to do until the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Stay awake until this time, then plan again.
    Spin(u64),
    /// Sleep until this time, then plan again.
    Doze(u64),
    /// Sleep until woken.
    Sleep,
}

/// The period of one subscriber's messages.
#[derive(Clone, Copy, Debug)]
pub struct PeriodEstimator {
    /// Time between messages, including those that were not waited for.
    gap_ns: f64,
    /// Send time of the last message that was waited for, and the number of messages up to it.
    last_waited_ns: u64,
    count: u64,
    /// Send time of the last message, waited for or not.
    newest_ns: u64,
    /// The periodic model: when the last message was due, the period, and the mean deviation of messages from
    /// it.
    due_ns: f64,
    period_ns: f64,
    deviation_ns: f64,
    on_time_count: u32,
    /// How late a doze ends, and the deviation of that.
    lateness_ns: f64,
    lateness_deviation_ns: f64,
    /// Slow messages minus fast ones, of those that found the reader awake; below zero after a rest.
    slow: i32,
    /// Consecutive rests that did not help.
    failed_rests: u32,
    /// Messages left to sleep for.
    rest_left: u32,
    /// Until when the core is contested, and the duration chosen when that started.
    contested_until_ns: u64,
    contested_ns: u64,
}

impl Default for PeriodEstimator {
    fn default() -> Self {
        PeriodEstimator {
            gap_ns: f64::INFINITY,
            last_waited_ns: 0,
            count: 0,
            newest_ns: 0,
            due_ns: 0.0,
            period_ns: 0.0,
            deviation_ns: 0.0,
            on_time_count: 0,
            lateness_ns: INITIAL_LATENESS_NS,
            lateness_deviation_ns: 0.0,
            slow: 0,
            failed_rests: 0,
            rest_left: 0,
            contested_until_ns: 0,
            contested_ns: 0,
        }
    }
}

impl PeriodEstimator {
    /// Notes a message, waited for or not.
    pub fn note_sent(&mut self, sent_ns: u64) {
        self.newest_ns = sent_ns;
    }

    /// Learns from a message that was waited for, sent at `sent_ns`, with number `count`.
    pub fn learn(&mut self, sent_ns: u64, count: u64) {
        let interval = sent_ns.saturating_sub(self.last_waited_ns) as f64;
        let messages = count.wrapping_sub(self.count).max(1) as f64;
        let first = self.last_waited_ns == 0;
        (self.last_waited_ns, self.count) = (sent_ns, count);
        self.note_sent(sent_ns);
        self.rest_left = self.rest_left.saturating_sub(1);
        if first || interval == 0.0 {
            // There is no earlier message to compare with, or the stamp is implausible.
            return;
        }
        let gap = interval / messages;
        self.gap_ns = match self.gap_ns.is_finite() {
            true => self.gap_ns + (gap - self.gap_ns) / 8.0,
            false => gap,
        };
        self.track_period(sent_ns as f64, interval);
        // The measured lateness of dozes decays: under load it may show that no doze pays, and without dozes
        // nothing new would be measured.
        self.lateness_ns += (INITIAL_LATENESS_NS - self.lateness_ns) / 256.0;
        self.lateness_deviation_ns -= self.lateness_deviation_ns / 256.0;
    }

    /// Tracks the period with a growing-memory filter, which estimates phase and period of a series as a
    /// least-squares line would (Brookner, "Tracking and Kalman Filtering Made Easy", 1998, section 1.2),
    /// until its memory is long enough.
    fn track_period(&mut self, sent_ns: f64, interval: f64) {
        let beats = ((sent_ns - self.due_ns) / self.period_ns).round().max(1.0);
        let off = sent_ns - self.due_ns - beats * self.period_ns;
        if self.on_time_count == 0 {
            (self.due_ns, self.period_ns, self.deviation_ns) = (sent_ns, interval, 0.0);
            self.on_time_count = 1;
        } else if off.abs() < self.period_ns / 4.0 && beats < 4.0 {
            let k = f64::from(self.on_time_count) + 1.0;
            let gain = 2.0 * (2.0 * k - 1.0) / (k * (k + 1.0));
            // One stall must not spoil the estimate of the time around it.
            let limit = 4.0 * self.deviation_ns + self.period_ns / 32.0;
            let off = off.clamp(-limit, limit);
            self.deviation_ns += (off.abs() - self.deviation_ns) / k.min(8.0);
            self.due_ns += beats * self.period_ns + gain * off;
            self.period_ns += 6.0 / (k * (k + 1.0)) * off / beats;
            // Several missing messages indicate another period.
            self.on_time_count = match beats > 1.0 {
                true => self.on_time_count.saturating_sub(4),
                false => (self.on_time_count + 1).min(FILTER_MEMORY),
            };
        } else {
            // One missing or extra message is tolerated; another period is learned from the start.
            self.on_time_count /= 2;
            self.due_ns = sent_ns;
        }
    }

    /// A timed doze ended at `now_ns`, this long after its due time.
    pub fn note_doze(&mut self, now_ns: u64, late_ns: u64) {
        self.note_delay(now_ns, late_ns);
        let limit = 4.0 * self.lateness_deviation_ns + self.lateness_ns / 4.0;
        let off = (late_ns as f64 - self.lateness_ns).clamp(-limit, limit);
        self.lateness_deviation_ns += (off.abs() - self.lateness_deviation_ns) / 8.0;
        self.lateness_ns += off / 8.0;
    }

    /// The reader runs at `now_ns`, but should have run this much earlier: its wake-up was due, it was awake,
    /// or an awaited message was available.
    pub fn note_delay(&mut self, now_ns: u64, late_ns: u64) {
        if self.contested_until_ns == 0 {
            // The state of the core is not known yet.
            self.contested_until_ns = now_ns.saturating_add(UNCONTESTED_NS);
        }
        if late_ns < MAX_DELAY_NS {
            return;
        }
        if self.contested_ns == 0 || !self.is_contested(now_ns) {
            let quiet_ns = now_ns.saturating_sub(self.contested_until_ns);
            let soon = quiet_ns < self.contested_ns.saturating_mul(SOON_FACTOR);
            let longer_ns = (2 * self.contested_ns).min(MAX_CONTESTED_NS);
            self.contested_ns = if soon { longer_ns } else { MIN_CONTESTED_NS };
        }
        self.contested_until_ns = now_ns.saturating_add(self.contested_ns);
    }

    /// Whether other threads want the reader's core.
    pub fn is_contested(&self, now_ns: u64) -> bool {
        now_ns < self.contested_until_ns
    }

    /// An expected message found its reader awake and took this long. If most are slow, the reader keeps its
    /// sender from the CPU: the kernel wakes a thread by the clock on the core where it slept, without regard
    /// to which thread wakes there next. The reader then sleeps for two messages, because the kernel chooses
    /// a core again for a thread that another thread wakes.
    pub fn note_awake_latency(&mut self, latency_ns: u64) {
        self.slow = match (self.slow, latency_ns > AWAKE_LATENCY_NS) {
            (..0, _) | (_, true) => self.slow + 1,
            _ => (self.slow - 1).max(0),
        };
        if self.slow >= SLOW_LIMIT {
            self.slow = -(MESSAGES_BETWEEN_RESTS << self.failed_rests);
            self.failed_rests = (self.failed_rests + 1).min(MAX_REST_DOUBLINGS);
            self.rest_left = REST_MESSAGES;
        } else if self.slow == 0 && latency_ns <= AWAKE_LATENCY_NS {
            self.failed_rests = 0;
        }
    }

    /// The plan at `now_ns`, for a wait that started at `since_ns`.
    pub fn plan(&self, now_ns: u64, since_ns: u64) -> Plan {
        // A thread may wait for other things, too, long after its last message.
        let goes_on = since_ns.saturating_sub(self.newest_ns) <= FLOOD_GAP_NS;
        if self.gap_ns <= SPIN_NS as f64 && goes_on {
            let until = since_ns.saturating_add(SPIN_NS);
            return if now_ns < until { Plan::Spin(until) } else { Plan::Sleep };
        }
        if self.rest_left > 0 || self.is_contested(now_ns) {
            return Plan::Sleep;
        }
        match self.awake_window() {
            Some((_, until)) if now_ns >= until => Plan::Sleep,
            Some((from, _)) if now_ns.saturating_add(MIN_SLEEP_NS) < from => Plan::Doze(from),
            Some((_, until)) => Plan::Spin(until),
            None => Plan::Sleep,
        }
    }

    /// The interval from the end of a sleep to the latest expected arrival, if a message is expected and
    /// waiting awake pays.
    fn awake_window(&self) -> Option<(u64, u64)> {
        if self.on_time_count < MIN_ON_TIME || !PERIOD_RANGE_NS.contains(&self.period_ns) {
            return None;
        }
        let room = 3.0 * self.deviation_ns + MARGIN_NS;
        // A sleep ends late, so it is planned to end earlier, by a margin that few sleeps exceed.
        let late = self.lateness_ns + 2.0 * self.lateness_deviation_ns;
        let longest = (self.period_ns * AWAKE_SHARE).max(AWAKE_NS);
        let due = self.due_ns + self.period_ns;
        let from = due - room - late;
        // A doze must fit between two messages; otherwise all the time would be spent awake.
        let pays = room + 2.0 * self.lateness_deviation_ns <= longest
            && from >= self.due_ns + self.period_ns * MIN_DOZE_SHARE;
        pays.then_some((from as u64, (due + room) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Learns `n` messages, one every `period` from `start`, each off by `jitter` of its number; returns the
    /// number of the last.
    fn stream(
        estimator: &mut PeriodEstimator,
        start: u64,
        period: u64,
        n: u64,
        jitter: fn(u64) -> u64,
    ) -> u64 {
        (0..n).for_each(|i| estimator.learn(start + i * period + jitter(i), estimator.count + 1));
        start + (n - 1) * period + jitter(n - 1)
    }

    /// An estimator whose reader has not been delayed for a while.
    fn trusting() -> PeriodEstimator {
        let mut estimator = PeriodEstimator::default();
        estimator.note_delay(START - UNCONTESTED_NS, 0);
        estimator
    }

    const START: u64 = 1_000_000_000_000;
    const MS: u64 = 1_000_000;

    #[test]
    fn first_messages_are_slept_for() {
        let mut estimator = PeriodEstimator::default();
        assert_eq!(estimator.plan(START, START), Plan::Sleep);
        estimator.learn(START, 1);
        estimator.learn(START + MS, 2);
        assert_eq!(estimator.plan(START + MS, START + MS), Plan::Sleep);
    }

    #[test]
    fn flood_is_awaited_awake_for_limited_time() {
        let mut estimator = PeriodEstimator::default();
        // A wait each 200 µs, with 500 messages between two waits.
        (0..20).for_each(|i| estimator.learn(START + i * MS / 5, i * 500));
        let now = START + 4 * MS;
        assert_eq!(estimator.plan(now, now), Plan::Spin(now + SPIN_NS));
        assert_eq!(estimator.plan(now + SPIN_NS, now), Plan::Sleep);
    }

    #[test]
    fn periodic_message_is_dozed_for_then_awaited_awake_then_slept_for() {
        for period in [MS / 10, MS, 2 * MS] {
            let mut estimator = PeriodEstimator::default();
            let last = stream(&mut estimator, START, period, 40, |i| i % 3 * 1000);
            let due = last + period;
            let Plan::Doze(wake) = estimator.plan(last + 1000, last + 1000) else {
                panic!("{period} ns is not expected")
            };
            assert!(last + 1000 < wake && wake < due - 30_000, "{period}");
            let Plan::Spin(until) = estimator.plan(wake + 30_000, last) else {
                panic!("not awake")
            };
            assert!(due < until && until < due + 40_000, "{period}");
            assert_eq!(estimator.plan(until, last), Plan::Sleep);
        }
    }

    #[test]
    fn late_dozes_are_planned_to_end_earlier() {
        let mut estimator = trusting();
        let last = stream(&mut estimator, START, 2 * MS, 20, |_| 0);
        let doze = |estimator: &PeriodEstimator| match estimator.plan(last, last) {
            Plan::Doze(wake) => wake,
            other => panic!("{other:?}"),
        };
        let before = doze(&estimator);
        (0..100).for_each(|_| estimator.note_doze(last, 80_000));
        assert!(doze(&estimator) < before - 40_000);
    }

    #[test]
    fn lateness_under_load_is_forgotten() {
        let mut estimator = trusting();
        let last = stream(&mut estimator, START, MS, 40, |_| 0);
        (0..30).for_each(|i| estimator.note_doze(last, if i % 2 == 0 { 30_000 } else { 240_000 }));
        assert_eq!(estimator.plan(last, last), Plan::Sleep);
        let last = stream(&mut estimator, last + MS, MS, 2_000, |_| 0);
        assert!(matches!(estimator.plan(last, last), Plan::Doze(_)));
        // Such late dozes do not fit into 100 µs: the reader must not stay awake all the time instead.
        let mut estimator = trusting();
        let last = stream(&mut estimator, START, MS / 10, 40, |_| 0);
        (0..100).for_each(|_| estimator.note_doze(last, 90_000));
        assert_eq!(estimator.plan(last, last), Plan::Sleep);
    }

    #[test]
    fn unpredictable_messages_are_slept_for() {
        let mut estimator = PeriodEstimator::default();
        let last = stream(&mut estimator, START, MS, 100, |i| i * i * 7919 % (MS / 2));
        assert_eq!(estimator.plan(last, last), Plan::Sleep);
        // Too slow.
        let mut estimator = PeriodEstimator::default();
        let last = stream(&mut estimator, START, 10 * MS, 40, |_| 0);
        assert_eq!(estimator.plan(last, last), Plan::Sleep);
    }

    #[test]
    fn missing_message_is_tolerated_and_new_period_is_learned() {
        let mut estimator = PeriodEstimator::default();
        let last = stream(&mut estimator, START, MS, 40, |_| 0);
        estimator.learn(last + 3 * MS, estimator.count + 1);
        let last = stream(&mut estimator, last + 4 * MS, MS, 8, |_| 0);
        assert!(matches!(estimator.plan(last, last), Plan::Doze(_)));
        let last = stream(&mut estimator, last + 20 * MS, 2 * MS, 40, |_| 0);
        assert!(matches!(estimator.plan(last, last), Plan::Doze(wake) if wake > last + MS));
    }

    /// The plan just after a message of a learned stream.
    fn next(estimator: &mut PeriodEstimator, start: u64, period: u64) -> Plan {
        let last = stream(estimator, start, period, 40, |_| 0);
        estimator.plan(last, last)
    }

    #[test]
    fn delayed_reader_sleeps_for_a_while() {
        for (name, note_delay) in [
            (
                "a doze that ended late",
                PeriodEstimator::note_doze as fn(&mut PeriodEstimator, u64, u64),
            ),
            (
                "a spin with a gap, or a message that was already available",
                PeriodEstimator::note_delay,
            ),
        ] {
            let mut estimator = trusting();
            let last = stream(&mut estimator, START, MS / 10, 40, |_| 0);
            note_delay(&mut estimator, last, MAX_DELAY_NS - 1);
            assert!(matches!(estimator.plan(last, last), Plan::Doze(_)), "{name}");
            note_delay(&mut estimator, last, 3 * MS);
            assert_eq!(estimator.plan(last, last), Plan::Sleep, "{name}");
            let n = MIN_CONTESTED_NS / (MS / 10);
            let last = stream(&mut estimator, last + MS / 10, MS / 10, n - 1, |_| 0);
            assert_eq!(estimator.plan(last, last), Plan::Sleep, "{name}");
            assert!(
                matches!(next(&mut estimator, last + MS / 10, MS / 10), Plan::Doze(_)),
                "{name}"
            );
        }
    }

    #[test]
    fn reader_sleeps_during_first_quarter_second() {
        let mut estimator = PeriodEstimator::default();
        let n = UNCONTESTED_NS / MS;
        for i in 0..n {
            estimator.note_delay(START + i * MS, 0);
            estimator.learn(START + i * MS, i + 1);
            assert_eq!(estimator.plan(START + i * MS, START), Plan::Sleep);
        }
        estimator.learn(START + n * MS, n + 1);
        assert!(matches!(estimator.plan(START + n * MS, START), Plan::Doze(_)));
        // A reader that is delayed meanwhile waits as long as one that is delayed later.
        let mut estimator = PeriodEstimator::default();
        estimator.note_delay(START, 3 * MS);
        assert_eq!(estimator.contested_until_ns, START + MIN_CONTESTED_NS);
    }

    #[test]
    fn reader_sleeps_longer_each_time_core_is_soon_contested_again() {
        let mut estimator = PeriodEstimator::default();
        let (mut now, mut lengths) = (START, Vec::new());
        // Next to an endless loop it is delayed whenever it has been awake for a second.
        for _ in 0..12 {
            estimator.note_delay(now, 3 * MS);
            // Delays during its sleep are caused by the load, not by the reader.
            estimator.note_delay(now, 3 * MS);
            lengths.push(estimator.contested_until_ns - now);
            now = estimator.contested_until_ns + 1_000 * MS;
        }
        assert_eq!(lengths[..3], [MIN_CONTESTED_NS, 2 * MIN_CONTESTED_NS, 4 * MIN_CONTESTED_NS]);
        assert_eq!(*lengths.last().unwrap(), MAX_CONTESTED_NS);
        assert!(lengths.is_sorted());
        // So it risks fewer and fewer of its messages: less than one in a thousand at 10 kHz.
        let awake_ns = 1_000 * MS;
        assert!(MAX_CONTESTED_NS / awake_ns > 60);
        // A long quiet time restores trust.
        estimator.note_delay(now + SOON_FACTOR * MAX_CONTESTED_NS, 3 * MS);
        assert_eq!(estimator.contested_ns, MIN_CONTESTED_NS);
    }

    #[test]
    fn flood_is_awaited_awake_on_contested_core_too() {
        let mut estimator = PeriodEstimator::default();
        (0..20).for_each(|i| estimator.learn(START + i * MS / 50, i));
        let now = START + MS;
        estimator.note_delay(now, 3 * MS);
        assert_eq!(estimator.plan(now, now), Plan::Spin(now + SPIN_NS));
    }

    #[test]
    fn ended_flood_is_not_awaited_awake() {
        let mut estimator = PeriodEstimator::default();
        (0..20).for_each(|i| estimator.learn(START + i * MS / 50, i));
        let last = START + 19 * MS / 50;
        let begins = |estimator: &PeriodEstimator, now| estimator.plan(now, now);
        let now = last + FLOOD_GAP_NS;
        assert_eq!(begins(&estimator, now), Plan::Spin(now + SPIN_NS));
        assert_eq!(begins(&estimator, now + 1), Plan::Sleep);
        // Messages that were not waited for belong to the same flood.
        estimator.note_sent(last + 5 * MS);
        let now = last + 6 * MS;
        assert_eq!(begins(&estimator, now), Plan::Spin(now + SPIN_NS));
    }

    #[test]
    fn reader_rests_when_most_messages_are_slow_then_stays_awake() {
        let mut estimator = PeriodEstimator::default();
        let met = |estimator: &mut PeriodEstimator, latency_ns| {
            estimator.note_awake_latency(latency_ns);
            std::mem::take(&mut estimator.rest_left) > 0
        };
        // If one in three is slow, the reader does not rest.
        assert!((0..300).all(|i| !met(&mut estimator, if i % 3 == 0 { 9_000 } else { 500 })));
        let first = (0..100).position(|_| met(&mut estimator, 9_000));
        assert!(first.is_some());
        assert!((0..MESSAGES_BETWEEN_RESTS).all(|_| !met(&mut estimator, 9_000)));
        assert!((0..100).any(|_| met(&mut estimator, 9_000)));
        // The rest did not help: the next one comes after twice as many messages.
        assert!((0..2 * MESSAGES_BETWEEN_RESTS).all(|_| !met(&mut estimator, 9_000)));
        // The rest helped: the next one comes as soon as the first.
        (0..10 * MESSAGES_BETWEEN_RESTS).for_each(|_| assert!(!met(&mut estimator, 500)));
        assert_eq!((0..100).position(|_| met(&mut estimator, 9_000)), first);
    }

    #[test]
    fn rest_lasts_two_messages() {
        let mut estimator = PeriodEstimator::default();
        let mut last = stream(&mut estimator, START, MS, 40, |_| 0);
        (0..SLOW_LIMIT).for_each(|_| estimator.note_awake_latency(9_000));
        for _ in 0..REST_MESSAGES {
            assert_eq!(estimator.plan(last, last), Plan::Sleep);
            last = stream(&mut estimator, last + MS, MS, 1, |_| 0);
        }
        assert!(matches!(estimator.plan(last, last), Plan::Doze(_)));
    }

    #[test]
    fn false_stamps_are_harmless() {
        let mut estimator = PeriodEstimator::default();
        for stamp in [u64::MAX, 0, 5, u64::MAX / 2, 1, u64::MAX, u64::MAX, 3] {
            for _ in 0..20 {
                estimator.learn(stamp, stamp);
                estimator.note_doze(stamp, stamp);
                estimator.note_delay(stamp, stamp);
                estimator.note_awake_latency(stamp);
                estimator.plan(START, START);
                estimator.plan(u64::MAX / 2, 0);
            }
        }
    }
}
