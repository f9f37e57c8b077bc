//! Deadlines and leases: arithmetic over the times at which a publisher sent, or showed that it is alive.
//!
//! The control thread checks each deadline when it is due, not before. A deadline starts with the first
//! message, as in DDS: a publisher that has never sent has not stopped sending.

use std::time::Duration;

use rnet_core::ns_saturating;
use rnet_shm::channel::publisher::NewestMessage;

/// Longest time between two checks of a publisher that is not alive: it revives without a notification.
const MAX_REVIVAL_CHECK_NS: u64 = 50_000_000;

/// One deadline of one publisher.
#[derive(Debug)]
pub struct Deadline {
    period_ns: u64,
    /// Start of the running period.
    since_ns: u64,
    /// Number of messages sent at that time; 0 before the first message, when no period runs.
    sent: u64,
}

impl Deadline {
    /// Starts now if a message was sent before.
    pub fn new(period: Duration, now_ns: u64, newest: Option<NewestMessage>) -> Deadline {
        let sent = newest.map_or(0, |newest| newest.sent);
        Deadline { period_ns: ns_saturating(period).max(1), since_ns: now_ns, sent }
    }

    /// Time of the next check.
    pub fn due_ns(&self) -> u64 {
        self.since_ns.saturating_add(self.period_ns)
    }

    /// Whether a period runs.
    pub fn is_running(&self) -> bool {
        self.sent != 0
    }

    /// Returns how many periods have passed without a message. A late check, after this process was stopped,
    /// counts the silence before the newest message only if it is the only new message.
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
    /// Time of the last observed sign of life.
    sign_ns: u64,
    due_ns: u64,
}

impl Lease {
    /// The lease of a publisher whose last sign of life was at `sign_ns`. It counts as alive until the first
    /// check, which is due at the end of the lease, so an earlier silence is reported too.
    pub fn new(lease: Duration, sign_ns: u64) -> Lease {
        let lease_ns = ns_saturating(lease).max(1);
        Lease { lease_ns, alive: true, sign_ns, due_ns: sign_ns.saturating_add(lease_ns) }
    }

    /// Time of the next check.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Whether the publisher was alive at the last check.
    pub fn is_alive(&self) -> bool {
        self.alive
    }

    /// The end of a lease that starts with a sign of life.
    pub fn expires_ns(&self, sign_ns: u64) -> u64 {
        sign_ns.saturating_add(self.lease_ns)
    }

    /// Returns the changes in order: alive (`true`) or not alive (`false`). A publisher that was not alive,
    /// and whose new sign of life has expired by now, was alive in between.
    pub fn check(&mut self, now_ns: u64, sign_ns: u64) -> &'static [bool] {
        let over_ns = self.expires_ns(sign_ns);
        let alive = now_ns < over_ns;
        let is_new = sign_ns > self.sign_ns;
        let before = std::mem::replace(&mut self.alive, alive);
        self.sign_ns = sign_ns;
        let recheck_ns = (self.lease_ns / 2).clamp(1, MAX_REVIVAL_CHECK_NS);
        self.due_ns = if alive { over_ns } else { now_ns.saturating_add(recheck_ns) };
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
    fn no_period_runs_before_first_message() {
        let mut deadline = Deadline::new(PERIOD, 100, None);
        assert_eq!((deadline.due_ns(), deadline.check(500, None)), (110, 0));
        assert_eq!((deadline.check(510, newest(1, 505)), deadline.due_ns()), (0, 515));
        assert!(deadline.is_running());
    }

    #[test]
    fn each_silent_period_is_counted_once() {
        let mut deadline = Deadline::new(PERIOD, 100, newest(7, 3));
        assert_eq!((deadline.check(109, newest(7, 3)), deadline.due_ns()), (0, 110));
        assert_eq!((deadline.check(110, newest(7, 3)), deadline.due_ns()), (1, 120));
        assert_eq!((deadline.check(145, newest(7, 3)), deadline.due_ns()), (3, 150));
        // The message is in time: the running period decides.
        assert_eq!((deadline.check(150, newest(8, 149)), deadline.due_ns()), (0, 159));
    }

    #[test]
    fn late_check_counts_silence_that_one_message_ended() {
        let mut deadline = Deadline::new(PERIOD, 100, newest(7, 100));
        assert_eq!(deadline.check(135, newest(8, 131)), 3);
        assert_eq!((deadline.check(160, newest(12, 159)), deadline.due_ns()), (0, 169));
    }

    #[test]
    fn hostile_stamps_neither_overflow_nor_stop_the_deadline() {
        let mut deadline = Deadline::new(PERIOD, 100, newest(7, 100));
        assert_eq!((deadline.check(105, newest(8, u64::MAX)), deadline.due_ns()), (0, 115));
        assert_eq!((deadline.check(106, newest(3, 0)), deadline.due_ns()), (0, 115));
        assert_eq!(deadline.check(u64::MAX, newest(3, 0)), (u64::MAX - 105) / 10);
        assert_eq!(Deadline::new(Duration::MAX, 100, newest(1, 0)).due_ns(), u64::MAX);
    }

    #[test]
    fn lease_expires_once_and_is_renewed() {
        // A publisher that was silent before the watch started is reported at the first check.
        let mut silent = Lease::new(PERIOD, 50);
        assert_eq!((silent.due_ns(), silent.check(100, 50)), (60, &[false][..]));
        let mut lease = Lease::new(PERIOD, 95);
        assert!(lease.is_alive());
        assert_eq!((lease.due_ns(), lease.check(104, 95)), (105, &[][..]));
        assert_eq!(lease.check(105, 95), [false]);
        assert_eq!((lease.due_ns(), lease.check(110, 95)), (110, &[][..]));
        assert_eq!((lease.check(125, 121), lease.due_ns()), (&[true][..], 131));
        // A late check: a sign of life came and has expired.
        assert_eq!(lease.check(135, 121), [false]);
        assert_eq!((lease.check(160, 145), lease.check(165, 145)), (&[true, false][..], &[][..]));
    }
}
