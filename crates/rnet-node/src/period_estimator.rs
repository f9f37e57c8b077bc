//! When the next message is due, learnt from those before, and how an adaptive wait therefore
//! passes the time until then: awake where that costs less than being woken, asleep otherwise.
//!
//! Waking a thread takes from microseconds to tens of them, a message that finds its reader awake
//! takes a fraction of one. So a stream whose messages follow each other closely is waited for
//! awake; one that comes with a period is slept for until shortly before the next message and
//! then waited for awake; for anything else the reader sleeps until it is woken. All times are in
//! ns of CLOCK_MONOTONIC, which the stamps of the messages are in, too.
//!
//! Being awake is not free where others want the core. The scheduler lets a thread that wakes go
//! first only if it has had less than its share, and a thread that was awake for its message may have
//! had more: it then waits for a tick of the kernel, milliseconds, and messages pile up. So a reader
//! that ran later than it should have ([`PeriodEstimator::note_delay`]) sleeps for its messages for a while, and
//! each time for longer while that goes on (decision 0023).

/// A wait awake is at most this long: about what going to sleep and being woken costs.
pub const SPIN_NS: u64 = 50_000;
/// A flood has ended once nothing of it was sent for this long.
const FLOOD_GAP_NS: u64 = 1_000_000;
/// Messages that must have kept time before the next one is expected.
const MIN_ON_TIME: u32 = 12;
/// As many messages as the period is learnt from; older ones are forgotten.
const FILTER_MEMORY: u32 = 24;
/// Neither shorter periods are expected, for which a sleep is too long, nor longer ones, for which
/// it gains less than it takes: the ten nodes of sierra_nevada, none faster than 100 Hz, took nine
/// times the processor for it and waited longer for each other (decision 0009).
const PERIOD_RANGE_NS: std::ops::Range<f64> = 50_000.0..2_500_000.0;
/// A wait awake for an expected message takes at most this share of its period, or [`AWAKE_NS`]
/// where that is more.
const AWAKE_SHARE: f64 = 0.1;
/// See [`AWAKE_SHARE`].
const AWAKE_NS: f64 = 50_000.0;
/// Room for what the deviations do not tell.
const MARGIN_NS: f64 = 2_000.0;
/// A doze takes at least this share of the period.
const MIN_DOZE_SHARE: f64 = 0.2;
/// A sleep that would be shorter is not worth its cost.
const MIN_SLEEP_NS: u64 = 10_000;
/// How late a sleep by the clock ends, until that has been seen.
const INITIAL_LATENESS_NS: f64 = 30_000.0;

/// A message that finds its reader awake takes less, unless the reader keeps its sender from the
/// processor.
const AWAKE_LATENCY_NS: u64 = 3_000;
/// So many more messages must have taken longer than not before the reader rests.
const SLOW_LIMIT: i32 = 5;
/// As many messages it then sleeps for.
const REST_MESSAGES: u32 = 2;
/// Messages until it may rest again; twice as many after each rest that did not help.
const MESSAGES_BETWEEN_RESTS: i32 = 60;
/// As many doublings at most.
const MAX_REST_DOUBLINGS: u32 = 8;

/// A reader that runs so much later than it should was held up: another thread had its core.
const MAX_DELAY_NS: u64 = 250_000;
/// A reader must have been held up by nobody for so long before it is awake for a message: one stall
/// of a tick is 40 messages at 10 kHz, and is not to be paid to find out.
const UNCONTESTED_NS: u64 = 250_000_000;
/// For how long the core counts as contested once the reader was held up.
const MIN_CONTESTED_NS: u64 = 1_000_000_000;
/// The same, at most; it doubles when the core is contested again soon.
const MAX_CONTESTED_NS: u64 = 64_000_000_000;
/// Soon is before so many times that long is over.
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
    /// Time between messages, those included that had not to be waited for.
    gap_ns: f64,
    /// When the last message that was waited for was sent, and how many had come up to it.
    last_waited_ns: u64,
    count: u64,
    /// When the last message was sent, waited for or not.
    newest_ns: u64,
    /// The beat: when the last message was due, how much later the next one is, and how far
    /// messages are off it in the mean.
    due_ns: f64,
    period_ns: f64,
    deviation_ns: f64,
    on_time_count: u32,
    /// How long after its time a doze ends, and how much that differs.
    lateness_ns: f64,
    lateness_deviation_ns: f64,
    /// How many more messages were slow than not, of those for which the reader was awake; below
    /// zero after it has rested.
    slow: i32,
    /// Rests that did not help, one after the other.
    failed_rests: u32,
    /// Messages that are still to be slept for.
    rest_left: u32,
    /// Until when the core is contested, and for how long it was when that began.
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
    /// A message has come, waited for or not.
    pub fn note_sent(&mut self, sent_ns: u64) {
        self.newest_ns = sent_ns;
    }

    /// A message that was waited for has come; it was sent at `sent_ns` and is number `count`.
    pub fn learn(&mut self, sent_ns: u64, count: u64) {
        let interval = sent_ns.saturating_sub(self.last_waited_ns) as f64;
        let messages = count.wrapping_sub(self.count).max(1) as f64;
        let first = self.last_waited_ns == 0;
        (self.last_waited_ns, self.count) = (sent_ns, count);
        self.note_sent(sent_ns);
        self.rest_left = self.rest_left.saturating_sub(1);
        if first || interval == 0.0 {
            // Nothing to compare with, or a stamp that nobody vouches for.
            return;
        }
        let gap = interval / messages;
        self.gap_ns = match self.gap_ns.is_finite() {
            true => self.gap_ns + (gap - self.gap_ns) / 8.0,
            false => gap,
        };
        self.track_period(sent_ns as f64, interval);
        // What was learnt of dozes is forgotten in time: under load it may have said that none pays,
        // and without one nothing would be learnt any more.
        self.lateness_ns += (INITIAL_LATENESS_NS - self.lateness_ns) / 256.0;
        self.lateness_deviation_ns -= self.lateness_deviation_ns / 256.0;
    }

    /// Follows the beat with a filter of growing memory, which finds phase and period of a series
    /// as the line of least squares would (Brookner, "Tracking and Kalman Filtering Made Easy",
    /// 1998, section 1.2), until its memory is long enough.
    fn track_period(&mut self, sent_ns: f64, interval: f64) {
        let beats = ((sent_ns - self.due_ns) / self.period_ns).round().max(1.0);
        let off = sent_ns - self.due_ns - beats * self.period_ns;
        if self.on_time_count == 0 {
            (self.due_ns, self.period_ns, self.deviation_ns) = (sent_ns, interval, 0.0);
            self.on_time_count = 1;
        } else if off.abs() < self.period_ns / 4.0 && beats < 4.0 {
            let k = f64::from(self.on_time_count) + 1.0;
            let gain = 2.0 * (2.0 * k - 1.0) / (k * (k + 1.0));
            // One stall must not spoil what is known of the quiet time around it.
            let limit = 4.0 * self.deviation_ns + self.period_ns / 32.0;
            let off = off.clamp(-limit, limit);
            self.deviation_ns += (off.abs() - self.deviation_ns) / k.min(8.0);
            self.due_ns += beats * self.period_ns + gain * off;
            self.period_ns += 6.0 / (k * (k + 1.0)) * off / beats;
            // Many that are missing are another period.
            self.on_time_count = match beats > 1.0 {
                true => self.on_time_count.saturating_sub(4),
                false => (self.on_time_count + 1).min(FILTER_MEMORY),
            };
        } else {
            // One that is missing or in between is forgiven, another period learnt from the start.
            self.on_time_count /= 2;
            self.due_ns = sent_ns;
        }
    }

    /// A doze ended by the clock at `now_ns`, this long after its time.
    pub fn note_doze(&mut self, now_ns: u64, late_ns: u64) {
        self.note_delay(now_ns, late_ns);
        let limit = 4.0 * self.lateness_deviation_ns + self.lateness_ns / 4.0;
        let off = (late_ns as f64 - self.lateness_ns).clamp(-limit, limit);
        self.lateness_deviation_ns += (off.abs() - self.lateness_deviation_ns) / 8.0;
        self.lateness_ns += off / 8.0;
    }

    /// The reader runs at `now_ns`, and should have done so this much earlier: it was to wake, it
    /// was awake, or a message that it waited for was there.
    pub fn note_delay(&mut self, now_ns: u64, late_ns: u64) {
        if self.contested_until_ns == 0 {
            // Nothing is known of the core yet.
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

    /// Whether others want the core of the reader.
    pub fn is_contested(&self, now_ns: u64) -> bool {
        now_ns < self.contested_until_ns
    }

    /// A message that was due has found its reader awake, and took this long. Where most are slow
    /// the reader keeps its sender from the processor: the kernel wakes a thread by the clock where
    /// it slept, and does not look who will wake there next. Two messages are then slept for, as the
    /// kernel chooses a processor anew for a thread that another wakes.
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

    /// What to do now, in a wait that began at `since_ns`.
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

    /// From when a sleep should end until when the next message should have come, if one is
    /// expected and to be awake for it pays.
    fn awake_window(&self) -> Option<(u64, u64)> {
        if self.on_time_count < MIN_ON_TIME || !PERIOD_RANGE_NS.contains(&self.period_ns) {
            return None;
        }
        let room = 3.0 * self.deviation_ns + MARGIN_NS;
        // A sleep ends late: so it is meant to end earlier, by what few are later.
        let late = self.lateness_ns + 2.0 * self.lateness_deviation_ns;
        let longest = (self.period_ns * AWAKE_SHARE).max(AWAKE_NS);
        let due = self.due_ns + self.period_ns;
        let from = due - room - late;
        // A doze must have room between two messages, else all of it would be spent awake.
        let pays = room + 2.0 * self.lateness_deviation_ns <= longest
            && from >= self.due_ns + self.period_ns * MIN_DOZE_SHARE;
        pays.then_some((from as u64, (due + room) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Learns `n` messages that come every `period` from `start` on, each off by what `jitter`
    /// says of its number; returns the number of the last.
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

    /// That of a reader which nobody has held up for a while.
    fn trusting() -> PeriodEstimator {
        let mut estimator = PeriodEstimator::default();
        estimator.note_delay(START - UNCONTESTED_NS, 0);
        estimator
    }

    const START: u64 = 1_000_000_000_000;
    const MS: u64 = 1_000_000;

    #[test]
    fn the_first_messages_are_slept_for() {
        let mut estimator = PeriodEstimator::default();
        assert_eq!(estimator.plan(START, START), Plan::Sleep);
        estimator.learn(START, 1);
        estimator.learn(START + MS, 2);
        assert_eq!(estimator.plan(START + MS, START + MS), Plan::Sleep);
    }

    #[test]
    fn a_flood_is_waited_for_awake_and_only_for_so_long() {
        let mut estimator = PeriodEstimator::default();
        // A wait each 200 µs, with 500 messages between two.
        (0..20).for_each(|i| estimator.learn(START + i * MS / 5, i * 500));
        let now = START + 4 * MS;
        assert_eq!(estimator.plan(now, now), Plan::Spin(now + SPIN_NS));
        assert_eq!(estimator.plan(now + SPIN_NS, now), Plan::Sleep);
    }

    #[test]
    fn a_periodic_message_is_dozed_for_then_awaited_then_slept_for() {
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
    fn a_doze_that_ends_later_begins_its_wait_earlier() {
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
    fn a_time_of_load_is_forgotten() {
        let mut estimator = trusting();
        let last = stream(&mut estimator, START, MS, 40, |_| 0);
        (0..30).for_each(|i| estimator.note_doze(last, if i % 2 == 0 { 30_000 } else { 240_000 }));
        assert_eq!(estimator.plan(last, last), Plan::Sleep);
        let last = stream(&mut estimator, last + MS, MS, 2_000, |_| 0);
        assert!(matches!(estimator.plan(last, last), Plan::Doze(_)));
        // Dozes as late as that leave no room in 100 µs: not awake all the time instead.
        let mut estimator = trusting();
        let last = stream(&mut estimator, START, MS / 10, 40, |_| 0);
        (0..100).for_each(|_| estimator.note_doze(last, 90_000));
        assert_eq!(estimator.plan(last, last), Plan::Sleep);
    }

    #[test]
    fn what_cannot_be_foretold_is_slept_for() {
        let mut estimator = PeriodEstimator::default();
        let last = stream(&mut estimator, START, MS, 100, |i| i * i * 7919 % (MS / 2));
        assert_eq!(estimator.plan(last, last), Plan::Sleep);
        // Too slow.
        let mut estimator = PeriodEstimator::default();
        let last = stream(&mut estimator, START, 10 * MS, 40, |_| 0);
        assert_eq!(estimator.plan(last, last), Plan::Sleep);
    }

    #[test]
    fn a_missing_message_is_forgiven_and_a_new_period_learnt() {
        let mut estimator = PeriodEstimator::default();
        let last = stream(&mut estimator, START, MS, 40, |_| 0);
        estimator.learn(last + 3 * MS, estimator.count + 1);
        let last = stream(&mut estimator, last + 4 * MS, MS, 8, |_| 0);
        assert!(matches!(estimator.plan(last, last), Plan::Doze(_)));
        let last = stream(&mut estimator, last + 20 * MS, 2 * MS, 40, |_| 0);
        assert!(matches!(estimator.plan(last, last), Plan::Doze(wake) if wake > last + MS));
    }

    /// What it does just after a message of a stream that was learnt.
    fn next(estimator: &mut PeriodEstimator, start: u64, period: u64) -> Plan {
        let last = stream(estimator, start, period, 40, |_| 0);
        estimator.plan(last, last)
    }

    #[test]
    fn a_reader_that_was_held_up_sleeps_for_a_while() {
        for (name, note_delay) in [
            (
                "a doze that ended late",
                PeriodEstimator::note_doze as fn(&mut PeriodEstimator, u64, u64),
            ),
            ("a spin with a gap, or a message that lay there", PeriodEstimator::note_delay),
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
    fn the_first_quarter_of_a_second_is_slept_for() {
        let mut estimator = PeriodEstimator::default();
        let n = UNCONTESTED_NS / MS;
        for i in 0..n {
            estimator.note_delay(START + i * MS, 0);
            estimator.learn(START + i * MS, i + 1);
            assert_eq!(estimator.plan(START + i * MS, START), Plan::Sleep);
        }
        estimator.learn(START + n * MS, n + 1);
        assert!(matches!(estimator.plan(START + n * MS, START), Plan::Doze(_)));
        // Who is held up meanwhile has to wait for as long as who is held up later.
        let mut estimator = PeriodEstimator::default();
        estimator.note_delay(START, 3 * MS);
        assert_eq!(estimator.contested_until_ns, START + MIN_CONTESTED_NS);
    }

    #[test]
    fn each_time_that_the_core_is_contested_again_soon_the_reader_sleeps_for_longer() {
        let mut estimator = PeriodEstimator::default();
        let (mut now, mut lengths) = (START, Vec::new());
        // Beside a loop that never ends it is held up whenever it has been awake for a second.
        for _ in 0..12 {
            estimator.note_delay(now, 3 * MS);
            // Those while it sleeps are the load's, and not its own.
            estimator.note_delay(now, 3 * MS);
            lengths.push(estimator.contested_until_ns - now);
            now = estimator.contested_until_ns + 1_000 * MS;
        }
        assert_eq!(lengths[..3], [MIN_CONTESTED_NS, 2 * MIN_CONTESTED_NS, 4 * MIN_CONTESTED_NS]);
        assert_eq!(*lengths.last().unwrap(), MAX_CONTESTED_NS);
        assert!(lengths.is_sorted());
        // So of its messages it risks ever fewer: less than one in a thousand of those at 10 kHz.
        let awake_ns = 1_000 * MS;
        assert!(MAX_CONTESTED_NS / awake_ns > 60);
        // A long quiet time is trusted again.
        estimator.note_delay(now + SOON_FACTOR * MAX_CONTESTED_NS, 3 * MS);
        assert_eq!(estimator.contested_ns, MIN_CONTESTED_NS);
    }

    #[test]
    fn a_flood_is_awaited_awake_on_a_contested_core_too() {
        let mut estimator = PeriodEstimator::default();
        (0..20).for_each(|i| estimator.learn(START + i * MS / 50, i));
        let now = START + MS;
        estimator.note_delay(now, 3 * MS);
        assert_eq!(estimator.plan(now, now), Plan::Spin(now + SPIN_NS));
    }

    #[test]
    fn a_flood_that_has_ended_is_not_waited_for_awake() {
        let mut estimator = PeriodEstimator::default();
        (0..20).for_each(|i| estimator.learn(START + i * MS / 50, i));
        let last = START + 19 * MS / 50;
        let begins = |estimator: &PeriodEstimator, now| estimator.plan(now, now);
        let now = last + FLOOD_GAP_NS;
        assert_eq!(begins(&estimator, now), Plan::Spin(now + SPIN_NS));
        assert_eq!(begins(&estimator, now + 1), Plan::Sleep);
        // Many that had not to be waited for are the same flood.
        estimator.note_sent(last + 5 * MS);
        let now = last + 6 * MS;
        assert_eq!(begins(&estimator, now), Plan::Spin(now + SPIN_NS));
    }

    #[test]
    fn a_reader_rests_when_most_messages_are_slow_and_then_stays_a_while() {
        let mut estimator = PeriodEstimator::default();
        let met = |estimator: &mut PeriodEstimator, latency_ns| {
            estimator.note_awake_latency(latency_ns);
            std::mem::take(&mut estimator.rest_left) > 0
        };
        // One in three is slow: no reason.
        assert!((0..300).all(|i| !met(&mut estimator, if i % 3 == 0 { 9_000 } else { 500 })));
        let first = (0..100).position(|_| met(&mut estimator, 9_000));
        assert!(first.is_some());
        assert!((0..MESSAGES_BETWEEN_RESTS).all(|_| !met(&mut estimator, 9_000)));
        assert!((0..100).any(|_| met(&mut estimator, 9_000)));
        // It did not help: twice as long.
        assert!((0..2 * MESSAGES_BETWEEN_RESTS).all(|_| !met(&mut estimator, 9_000)));
        // It did: the next rest comes as soon as the first.
        (0..10 * MESSAGES_BETWEEN_RESTS).for_each(|_| assert!(!met(&mut estimator, 500)));
        assert_eq!((0..100).position(|_| met(&mut estimator, 9_000)), first);
    }

    #[test]
    fn a_rest_is_two_messages_long() {
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
    fn stamps_that_lie_do_no_harm() {
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
