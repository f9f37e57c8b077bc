//! When the next message is due, learnt from those before, and how an adaptive wait therefore
//! passes the time until then: awake where that costs less than being woken, asleep otherwise.
//!
//! Waking a thread takes from microseconds to tens of them, a message that finds its reader awake
//! takes a fraction of one. So a stream whose messages follow each other closely is waited for
//! awake; one that comes with a period is slept for until shortly before the next message and
//! then waited for awake; for anything else the reader sleeps until it is woken. All times are in
//! ns of CLOCK_MONOTONIC, which the stamps of the messages are in, too.

/// A wait awake is at most this long: about what going to sleep and being woken costs.
const SPIN_NS: u64 = 50_000;
/// Messages that must have kept time before the next one is expected.
const IN_TIME: u32 = 12;
/// As many messages as the rhythm is learnt from; older ones are forgotten.
const MEMORY: u32 = 24;
/// Neither shorter periods are expected, for which a sleep is too long, nor longer ones, for which
/// it gains less than it takes: the ten nodes of sierra_nevada, none faster than 100 Hz, took nine
/// times the processor for it and waited longer for each other (decision 0009).
const PERIOD_NS: std::ops::Range<f64> = 50_000.0..2_500_000.0;
/// A wait awake for an expected message takes at most this share of its period, or [`AWAKE_NS`]
/// where that is more.
const AWAKE_SHARE: f64 = 0.1;
/// See [`AWAKE_SHARE`].
const AWAKE_NS: f64 = 50_000.0;
/// Room for what the deviations do not tell.
const ROOM_NS: f64 = 2_000.0;
/// A doze takes at least this share of the period.
const SHORTEST_DOZE: f64 = 0.2;
/// A sleep that would be shorter is not worth its cost.
const SHORTEST_SLEEP_NS: u64 = 10_000;
/// How late a sleep by the clock ends, until that has been seen.
const FIRST_LATENESS_NS: f64 = 30_000.0;

/// A message that finds its reader awake takes less, unless the reader keeps its sender from the
/// processor.
const AWAKE_LATENCY_NS: u64 = 3_000;
/// So many more messages must have taken longer than not before the reader moves.
const SLOW: i32 = 5;
/// Messages until it may move again; twice as many after each move that did not help.
const SETTLE: i32 = 60;
/// As many doublings at most.
const MOST_MOVES: u32 = 8;

/// What to do until the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Stay awake until this time, then plan again.
    Spin(u64),
    /// Sleep until this time, then plan again.
    Doze(u64),
    /// Sleep until woken.
    Sleep,
}

/// The rhythm of one subscriber's messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rhythm {
    /// Time between messages, those included that had not to be waited for.
    gap_ns: f64,
    /// When the last message that was waited for was sent, and how many had come up to it.
    last_ns: u64,
    count: u64,
    /// The beat: when the last message was due, how much later the next one is, and how far
    /// messages are off it in the mean.
    due_ns: f64,
    period_ns: f64,
    off_ns: f64,
    in_time: u32,
    /// How long after its time a doze ends, and how much that differs.
    lateness_ns: f64,
    lateness_off_ns: f64,
    /// How many more messages were slow than not, of those for which the reader was awake; below
    /// zero after it has moved.
    slow: i32,
    /// Moves that did not help, one after the other.
    moves: u32,
}

impl Default for Rhythm {
    fn default() -> Self {
        Rhythm {
            gap_ns: f64::INFINITY,
            last_ns: 0,
            count: 0,
            due_ns: 0.0,
            period_ns: 0.0,
            off_ns: 0.0,
            in_time: 0,
            lateness_ns: FIRST_LATENESS_NS,
            lateness_off_ns: 0.0,
            slow: 0,
            moves: 0,
        }
    }
}

impl Rhythm {
    /// A message that was waited for has come; it was sent at `sent_ns` and is number `count`.
    pub(crate) fn learn(&mut self, sent_ns: u64, count: u64) {
        let interval = sent_ns.saturating_sub(self.last_ns) as f64;
        let messages = count.wrapping_sub(self.count).max(1) as f64;
        let first = self.last_ns == 0;
        (self.last_ns, self.count) = (sent_ns, count);
        if first || interval == 0.0 {
            // Nothing to compare with, or a stamp that nobody vouches for.
            return;
        }
        let gap = interval / messages;
        self.gap_ns = match self.gap_ns.is_finite() {
            true => self.gap_ns + (gap - self.gap_ns) / 8.0,
            false => gap,
        };
        self.follow(sent_ns as f64, interval);
        // What was learnt of dozes is forgotten in time: under load it may have said that none pays,
        // and without one nothing would be learnt any more.
        self.lateness_ns += (FIRST_LATENESS_NS - self.lateness_ns) / 256.0;
        self.lateness_off_ns -= self.lateness_off_ns / 256.0;
    }

    /// Follows the beat with a filter of growing memory, which finds phase and period of a series
    /// as the line of least squares would (Brookner, "Tracking and Kalman Filtering Made Easy",
    /// 1998, section 1.2), until its memory is long enough.
    fn follow(&mut self, sent_ns: f64, interval: f64) {
        let beats = ((sent_ns - self.due_ns) / self.period_ns).round().max(1.0);
        let off = sent_ns - self.due_ns - beats * self.period_ns;
        if self.in_time == 0 {
            (self.due_ns, self.period_ns, self.off_ns) = (sent_ns, interval, 0.0);
            self.in_time = 1;
        } else if off.abs() < self.period_ns / 4.0 && beats < 4.0 {
            let k = f64::from(self.in_time) + 1.0;
            let gain = 2.0 * (2.0 * k - 1.0) / (k * (k + 1.0));
            // One stall must not spoil what is known of the quiet time around it.
            let limit = 4.0 * self.off_ns + self.period_ns / 32.0;
            let off = off.clamp(-limit, limit);
            self.off_ns += (off.abs() - self.off_ns) / k.min(8.0);
            self.due_ns += beats * self.period_ns + gain * off;
            self.period_ns += 6.0 / (k * (k + 1.0)) * off / beats;
            // Many that are missing are another rhythm.
            self.in_time = match beats > 1.0 {
                true => self.in_time.saturating_sub(4),
                false => (self.in_time + 1).min(MEMORY),
            };
        } else {
            // One that is missing or in between is forgiven, another rhythm learnt from the start.
            self.in_time /= 2;
            self.due_ns = sent_ns;
        }
    }

    /// A doze ended by the clock, this long after its time.
    pub(crate) fn dozed(&mut self, late_ns: u64) {
        let limit = 4.0 * self.lateness_off_ns + self.lateness_ns / 4.0;
        let off = (late_ns as f64 - self.lateness_ns).clamp(-limit, limit);
        self.lateness_off_ns += (off.abs() - self.lateness_off_ns) / 8.0;
        self.lateness_ns += off / 8.0;
    }

    /// A message that was due has found its reader awake, and took this long. Returns whether the
    /// reader should move to another processor.
    #[must_use]
    pub(crate) fn met(&mut self, latency_ns: u64) -> bool {
        self.slow = match (self.slow, latency_ns > AWAKE_LATENCY_NS) {
            (..0, _) | (_, true) => self.slow + 1,
            _ => (self.slow - 1).max(0),
        };
        let moves = self.slow >= SLOW;
        if moves {
            self.slow = -(SETTLE << self.moves);
            self.moves = (self.moves + 1).min(MOST_MOVES);
        } else if self.slow == 0 && latency_ns <= AWAKE_LATENCY_NS {
            self.moves = 0;
        }
        moves
    }

    /// What to do now, in a wait that began at `since_ns`.
    pub(crate) fn plan(&self, now_ns: u64, since_ns: u64) -> Plan {
        if self.gap_ns <= SPIN_NS as f64 {
            let until = since_ns.saturating_add(SPIN_NS);
            return if now_ns < until { Plan::Spin(until) } else { Plan::Sleep };
        }
        match self.awake() {
            Some((_, until)) if now_ns >= until => Plan::Sleep,
            Some((from, _)) if now_ns.saturating_add(SHORTEST_SLEEP_NS) < from => Plan::Doze(from),
            Some((_, until)) => Plan::Spin(until),
            None => Plan::Sleep,
        }
    }

    /// From when a sleep should end until when the next message should have come, if one is
    /// expected and to be awake for it pays.
    fn awake(&self) -> Option<(u64, u64)> {
        if self.in_time < IN_TIME || !PERIOD_NS.contains(&self.period_ns) {
            return None;
        }
        let room = 3.0 * self.off_ns + ROOM_NS;
        // A sleep ends late: so it is meant to end earlier, by what few are later.
        let late = self.lateness_ns + 2.0 * self.lateness_off_ns;
        let longest = (self.period_ns * AWAKE_SHARE).max(AWAKE_NS);
        let due = self.due_ns + self.period_ns;
        let from = due - room - late;
        // A doze must have room between two messages, else all of it would be spent awake.
        let pays = room + 2.0 * self.lateness_off_ns <= longest
            && from >= self.due_ns + self.period_ns * SHORTEST_DOZE;
        pays.then_some((from as u64, (due + room) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Learns `n` messages that come every `period` from `start` on, each off by what `jitter`
    /// says of its number; returns the number of the last.
    fn stream(rhythm: &mut Rhythm, start: u64, period: u64, n: u64, jitter: fn(u64) -> u64) -> u64 {
        (0..n).for_each(|i| rhythm.learn(start + i * period + jitter(i), rhythm.count + 1));
        start + (n - 1) * period + jitter(n - 1)
    }

    const START: u64 = 1_000_000_000_000;
    const MS: u64 = 1_000_000;

    #[test]
    fn the_first_messages_are_slept_for() {
        let mut rhythm = Rhythm::default();
        assert_eq!(rhythm.plan(START, START), Plan::Sleep);
        rhythm.learn(START, 1);
        rhythm.learn(START + MS, 2);
        assert_eq!(rhythm.plan(START + MS, START + MS), Plan::Sleep);
    }

    #[test]
    fn a_flood_is_waited_for_awake_and_only_for_so_long() {
        let mut rhythm = Rhythm::default();
        // A wait each 200 µs, with 500 messages between two.
        (0..20).for_each(|i| rhythm.learn(START + i * MS / 5, i * 500));
        let now = START + 4 * MS;
        assert_eq!(rhythm.plan(now, now), Plan::Spin(now + SPIN_NS));
        assert_eq!(rhythm.plan(now + SPIN_NS, now), Plan::Sleep);
    }

    #[test]
    fn a_periodic_message_is_dozed_for_then_awaited_then_slept_for() {
        for period in [MS / 10, MS, 2 * MS] {
            let mut rhythm = Rhythm::default();
            let last = stream(&mut rhythm, START, period, 40, |i| i % 3 * 1000);
            let due = last + period;
            let Plan::Doze(wake) = rhythm.plan(last + 1000, last + 1000) else {
                panic!("{period} ns is not expected")
            };
            assert!(last + 1000 < wake && wake < due - 30_000, "{period}");
            let Plan::Spin(until) = rhythm.plan(wake + 30_000, last) else { panic!("not awake") };
            assert!(due < until && until < due + 40_000, "{period}");
            assert_eq!(rhythm.plan(until, last), Plan::Sleep);
        }
    }

    #[test]
    fn a_doze_that_ends_later_begins_its_wait_earlier() {
        let mut rhythm = Rhythm::default();
        let last = stream(&mut rhythm, START, 2 * MS, 20, |_| 0);
        let doze = |rhythm: &Rhythm| match rhythm.plan(last, last) {
            Plan::Doze(wake) => wake,
            other => panic!("{other:?}"),
        };
        let before = doze(&rhythm);
        (0..100).for_each(|_| rhythm.dozed(80_000));
        assert!(doze(&rhythm) < before - 40_000);
    }

    #[test]
    fn a_time_of_load_is_forgotten() {
        let mut rhythm = Rhythm::default();
        let last = stream(&mut rhythm, START, MS, 40, |_| 0);
        (0..30).for_each(|i| rhythm.dozed(if i % 2 == 0 { 30_000 } else { 900_000 }));
        assert_eq!(rhythm.plan(last, last), Plan::Sleep);
        let last = stream(&mut rhythm, last + MS, MS, 2_000, |_| 0);
        assert!(matches!(rhythm.plan(last, last), Plan::Doze(_)));
        // Dozes as late as that leave no room in 100 µs: not awake all the time instead.
        let mut rhythm = Rhythm::default();
        let last = stream(&mut rhythm, START, MS / 10, 40, |_| 0);
        (0..100).for_each(|_| rhythm.dozed(90_000));
        assert_eq!(rhythm.plan(last, last), Plan::Sleep);
    }

    #[test]
    fn what_cannot_be_foretold_is_slept_for() {
        let mut rhythm = Rhythm::default();
        let last = stream(&mut rhythm, START, MS, 100, |i| i * i * 7919 % (MS / 2));
        assert_eq!(rhythm.plan(last, last), Plan::Sleep);
        // Too slow.
        let mut rhythm = Rhythm::default();
        let last = stream(&mut rhythm, START, 10 * MS, 40, |_| 0);
        assert_eq!(rhythm.plan(last, last), Plan::Sleep);
    }

    #[test]
    fn a_missing_message_is_forgiven_and_a_new_rhythm_learnt() {
        let mut rhythm = Rhythm::default();
        let last = stream(&mut rhythm, START, MS, 40, |_| 0);
        rhythm.learn(last + 3 * MS, rhythm.count + 1);
        let last = stream(&mut rhythm, last + 4 * MS, MS, 8, |_| 0);
        assert!(matches!(rhythm.plan(last, last), Plan::Doze(_)));
        let last = stream(&mut rhythm, last + 20 * MS, 2 * MS, 40, |_| 0);
        assert!(matches!(rhythm.plan(last, last), Plan::Doze(wake) if wake > last + MS));
    }

    #[test]
    fn a_reader_moves_when_most_messages_are_slow_and_then_stays_a_while() {
        let mut rhythm = Rhythm::default();
        // One in three is slow: no reason.
        assert!((0..300).all(|i| !rhythm.met(if i % 3 == 0 { 9_000 } else { 500 })));
        let first = (0..100).position(|_| rhythm.met(9_000));
        assert!(first.is_some());
        assert!((0..SETTLE).all(|_| !rhythm.met(9_000)));
        assert!((0..100).any(|_| rhythm.met(9_000)));
        // It did not help: twice as long.
        assert!((0..2 * SETTLE).all(|_| !rhythm.met(9_000)));
        // It did: the next move comes as soon as the first.
        (0..10 * SETTLE).for_each(|_| assert!(!rhythm.met(500)));
        assert_eq!((0..100).position(|_| rhythm.met(9_000)), first);
    }

    #[test]
    fn stamps_that_lie_do_no_harm() {
        let mut rhythm = Rhythm::default();
        for stamp in [u64::MAX, 0, 5, u64::MAX / 2, 1, u64::MAX, u64::MAX, 3] {
            for _ in 0..20 {
                rhythm.learn(stamp, stamp);
                rhythm.dozed(stamp);
                let _ = rhythm.met(stamp);
                rhythm.plan(START, START);
                rhythm.plan(u64::MAX / 2, 0);
            }
        }
    }
}
