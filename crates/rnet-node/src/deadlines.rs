//! Deadlines and leases: arithmetic over the times at which a publisher sent, or showed that it is alive.
//!
//! The control thread looks at each when it is due, and not before. A deadline begins with the first message, as in DDS:
//! what has never sent has not stopped sending.

use std::time::Duration;

use rnet_core::ns_saturating;
use rnet_shm::channel::publisher::NewestMessage;

/// Longest time between two looks at a publisher that is not alive: it comes back without a word.
const MAX_REVIVAL_CHECK_NS: u64 = 50_000_000;

/// One deadline of one publisher.
#[derive(Debug)]
pub struct Deadline {
    period_ns: u64,
    /// Since when the period runs that is not over.
    since_ns: u64,
    /// Messages sent when it began; 0 before the first message, when no period runs.
    sent: u64,
}

impl Deadline {
    /// Runs from now if something was sent before.
    pub fn new(period: Duration, now_ns: u64, newest: Option<NewestMessage>) -> Deadline {
        let sent = newest.map_or(0, |newest| newest.sent);
        Deadline { period_ns: ns_saturating(period).max(1), since_ns: now_ns, sent }
    }

    /// When it is to be looked at next.
    pub fn due_ns(&self) -> u64 {
        self.since_ns.saturating_add(self.period_ns)
    }

    /// Whether a period runs.
    pub fn is_running(&self) -> bool {
        self.sent != 0
    }

    /// How many periods have ended without a message. A look that comes late, because this process was stopped, sees the
    /// silence before the newest message if no other message came after it.
    pub fn check(&mut self, now_ns: u64, newest: Option<NewestMessage>) -> u64 {
        let mut missed = 0;
        if let Some(newest) = newest.filter(|newest| newest.sent != self.sent) {
            let at_ns = newest.sent_ns.clamp(self.since_ns, now_ns.max(self.since_ns));
            if self.is_running() && newest.sent == self.sent.wrapping_add(1) {
                missed = (at_ns - self.since_ns).saturating_sub(1) / self.period_ns;
            }
            (self.since_ns, self.sent) = (at_ns, newest.sent);
        }
        if !self.is_running() {
            self.since_ns = now_ns;
            return 0;
        }
        let silent = now_ns.saturating_sub(self.since_ns) / self.period_ns;
        self.since_ns += silent * self.period_ns;
        missed.saturating_add(silent)
    }
}

/// The lease of one publisher that asserts its liveliness.
#[derive(Debug)]
pub struct Lease {
    lease_ns: u64,
    alive: bool,
    /// The last sign of life that was seen.
    sign_ns: u64,
    due_ns: u64,
}

impl Lease {
    /// Of a publisher that last showed at `sign_ns` that it is alive. It counts as alive until the first look,
    /// which is due when the lease is over: so one that was silent before is told of, too.
    pub fn new(lease: Duration, sign_ns: u64) -> Lease {
        let lease_ns = ns_saturating(lease).max(1);
        Lease { lease_ns, alive: true, sign_ns, due_ns: sign_ns.saturating_add(lease_ns) }
    }

    /// When it is to be looked at next.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Whether the publisher was alive at the last look.
    pub fn is_alive(&self) -> bool {
        self.alive
    }

    /// When the lease is over that begins with a sign of life.
    pub fn expires_ns(&self, sign_ns: u64) -> u64 {
        sign_ns.saturating_add(self.lease_ns)
    }

    /// Returns what has become of the publisher, in order: alive, or not. One that was not alive and showed a sign that is over
    /// by now was so in between.
    pub fn check(&mut self, now_ns: u64, sign_ns: u64) -> &'static [bool] {
        let over_ns = self.expires_ns(sign_ns);
        let alive = now_ns < over_ns;
        let is_new = sign_ns > self.sign_ns;
        let before = std::mem::replace(&mut self.alive, alive);
        self.sign_ns = sign_ns;
        let look_ns = (self.lease_ns / 2).clamp(1, MAX_REVIVAL_CHECK_NS);
        self.due_ns = if alive { over_ns } else { now_ns.saturating_add(look_ns) };
        match (before, alive) {
            (false, true) => &[true],
            (true, false) => &[false],
            (false, false) if is_new => &[true, false],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_nanos(10);

    fn newest(sent: u64, sent_ns: u64) -> Option<NewestMessage> {
        Some(NewestMessage { sent, sent_ns })
    }

    #[test]
    fn no_period_runs_before_the_first_message() {
        let mut deadline = Deadline::new(PERIOD, 100, None);
        assert_eq!((deadline.due_ns(), deadline.check(500, None)), (110, 0));
        assert_eq!((deadline.check(510, newest(1, 505)), deadline.due_ns()), (0, 515));
        assert!(deadline.is_running());
    }

    #[test]
    fn each_period_of_silence_counts_once() {
        let mut deadline = Deadline::new(PERIOD, 100, newest(7, 3));
        assert_eq!((deadline.check(109, newest(7, 3)), deadline.due_ns()), (0, 110));
        assert_eq!((deadline.check(110, newest(7, 3)), deadline.due_ns()), (1, 120));
        assert_eq!((deadline.check(145, newest(7, 3)), deadline.due_ns()), (3, 150));
        // In time, by the period that runs.
        assert_eq!((deadline.check(150, newest(8, 149)), deadline.due_ns()), (0, 159));
    }

    #[test]
    fn a_late_look_sees_the_silence_that_one_message_ended() {
        let mut deadline = Deadline::new(PERIOD, 100, newest(7, 100));
        assert_eq!(deadline.check(135, newest(8, 131)), 3);
        assert_eq!((deadline.check(160, newest(12, 159)), deadline.due_ns()), (0, 169));
    }

    #[test]
    fn hostile_stamps_neither_overflow_nor_stop_the_clock() {
        let mut deadline = Deadline::new(PERIOD, 100, newest(7, 100));
        assert_eq!((deadline.check(105, newest(8, u64::MAX)), deadline.due_ns()), (0, 115));
        assert_eq!((deadline.check(106, newest(3, 0)), deadline.due_ns()), (0, 115));
        assert_eq!(deadline.check(u64::MAX, newest(3, 0)), (u64::MAX - 105) / 10);
        assert_eq!(Deadline::new(Duration::MAX, 100, newest(1, 0)).due_ns(), u64::MAX);
    }

    #[test]
    fn a_lease_lapses_once_and_is_taken_up_again() {
        // One that was silent for longer before anybody watched is told of at the first look.
        let mut silent = Lease::new(PERIOD, 50);
        assert_eq!((silent.due_ns(), silent.check(100, 50)), (60, &[false][..]));
        let mut lease = Lease::new(PERIOD, 95);
        assert!(lease.is_alive());
        assert_eq!((lease.due_ns(), lease.check(104, 95)), (105, &[][..]));
        assert_eq!(lease.check(105, 95), [false]);
        assert_eq!((lease.due_ns(), lease.check(110, 95)), (110, &[][..]));
        assert_eq!((lease.check(125, 121), lease.due_ns()), (&[true][..], 131));
        // The look comes late: a sign has come and is over.
        assert_eq!(lease.check(135, 121), [false]);
        assert_eq!((lease.check(160, 145), lease.check(165, 145)), (&[true, false][..], &[][..]));
    }
}
