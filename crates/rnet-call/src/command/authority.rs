//! Which driver is in force: one variable, owned by the receiver's thread.

use std::time::Duration;

/// Identifies a driver: its node as this host names it, and the publisher of its commands, once known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub node: String,
    pub priority: i32,
    pub number: u64,
    pub lease: Duration,
    /// When the lease expires, in ns of CLOCK_MONOTONIC.
    pub until_ns: u64,
    /// The publisher of its commands, and the number of the last applied command.
    pub last_applied: Option<(u64, u64)>,
    /// Whether its publisher of commands was seen.
    pub publisher_seen: bool,
    /// Whether it keeps authority until its lease expires even if it is gone.
    pub outlasts: bool,
}

/// Why a command is not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoreReason {
    /// Its number of authority is missing or was never granted, or it comes from another node or publisher
    /// than the authority's holder.
    Unauthorised,
    /// Its authority is no longer in force.
    Superseded,
    /// It is older than the deadline.
    Late,
    /// It, or a later one, was already applied.
    Repeated,
}

/// A command as received.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedCommand<'a> {
    pub number: Option<u64>,
    pub node: &'a str,
    /// Its original publisher, and its number there.
    pub publisher: u64,
    pub seq: u64,
    pub sent_ns: u64,
    pub now_ns: u64,
}

/// The outcome of a request for authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakeOutcome {
    /// Authority was granted. The previous holder had a lower priority, or was of the same node and outlasted
    /// its death.
    Granted { preempted: Option<Holder> },
    /// Another driver has authority.
    Refused,
}

/// Authority over one command.
#[derive(Debug)]
pub struct Authority {
    holder: Option<Holder>,
    next: u64,
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Authority {
    /// Creates it without a holder. Numbers are granted from `first` on, each only once.
    pub fn new(first: u64) -> Authority {
        Authority { holder: None, next: first.max(1) }
    }

    pub fn holder_mut(&mut self) -> Option<&mut Holder> {
        self.holder.as_mut()
    }

    pub fn holder(&self) -> Option<&Holder> {
        self.holder.as_ref()
    }

    /// Whether this number was granted and is no longer in force.
    fn was_granted(&self, number: u64, first: u64) -> bool {
        (first..self.next).contains(&number)
    }

    /// A driver that outlasts its process can take its own authority again. Otherwise a stop whose dashboard
    /// was cut off for a while would end with its lease before it could be renewed.
    pub fn take(
        &mut self,
        node: &str,
        (priority, outlasts): (i32, bool),
        lease: Duration,
        now_ns: u64,
    ) -> TakeOutcome {
        let is_its_own = |holder: &Holder| {
            holder.node == node && holder.priority == priority && holder.outlasts && outlasts
        };
        let holds = |holder: &Holder| {
            holder.until_ns > now_ns && holder.priority >= priority && !is_its_own(holder)
        };
        if self.holder.as_ref().is_some_and(holds) {
            return TakeOutcome::Refused;
        }
        let number = self.next;
        self.next += 1;
        let until_ns = now_ns.saturating_add(ns(lease));
        let node = node.to_owned();
        let (last_applied, publisher_seen) = (None, false);
        let taken = Holder {
            node,
            priority,
            number,
            lease,
            until_ns,
            last_applied,
            publisher_seen,
            outlasts,
        };
        TakeOutcome::Granted { preempted: self.holder.replace(taken) }
    }

    /// Restarts the lease; `false` if this is not the holder.
    pub fn renew(&mut self, node: &str, number: u64, now_ns: u64) -> bool {
        let is_it = |h: &&mut Holder| h.number == number && h.node == node && h.until_ns > now_ns;
        let Some(holder) = self.holder.as_mut().filter(is_it) else { return false };
        holder.until_ns = now_ns.saturating_add(ns(holder.lease));
        true
    }

    /// Ends the authority of this holder, if it has it.
    pub fn release(&mut self, node: &str, number: u64) -> Option<Holder> {
        self.holder.take_if(|holder| holder.number == number && holder.node == node)
    }

    /// Ends the authority of a holder whose node or command publisher is gone. If the holder outlasts its
    /// process, the lease ends it instead.
    pub fn end_lost(&mut self, node: &str) -> Option<Holder> {
        self.holder.take_if(|holder| holder.node == node && !holder.outlasts)
    }

    /// Ends the authority of a holder whose lease has expired.
    pub fn expire(&mut self, now_ns: u64) -> Option<Holder> {
        self.holder.take_if(|holder| holder.until_ns <= now_ns)
    }

    /// Whether a checked command may still be applied; returns the holder of its authority. Only time and
    /// requests change the result.
    ///
    /// # Errors
    /// The reason, if it may not.
    pub fn still_valid(
        &self,
        number: Option<u64>,
        sent_ns: u64,
        now_ns: u64,
        deadline: Duration,
    ) -> Result<&Holder, IgnoreReason> {
        let is_it = |holder: &&Holder| Some(holder.number) == number && holder.until_ns > now_ns;
        let holder = self.holder.as_ref().filter(is_it).ok_or(IgnoreReason::Superseded)?;
        if now_ns.saturating_sub(sent_ns) > ns(deadline) {
            return Err(IgnoreReason::Late);
        }
        Ok(holder)
    }

    /// Whether a received command is to be applied. An accepted command renews the lease.
    ///
    /// # Errors
    /// The reason, if it is not.
    pub fn check_command(
        &mut self,
        received: &ReceivedCommand<'_>,
        first: u64,
        deadline: Duration,
    ) -> Result<(), IgnoreReason> {
        let ReceivedCommand { number, sent_ns, now_ns, .. } = *received;
        let number = number.ok_or(IgnoreReason::Unauthorised)?;
        let Some(holder) = self.holder.as_ref().filter(|holder| holder.number == number) else {
            let was_granted = self.was_granted(number, first);
            return Err(if was_granted {
                IgnoreReason::Superseded
            } else {
                IgnoreReason::Unauthorised
            });
        };
        if holder.node != received.node
            || holder.last_applied.is_some_and(|(publisher, _)| publisher != received.publisher)
        {
            return Err(IgnoreReason::Unauthorised);
        }
        let is_repeated = holder.last_applied.is_some_and(|(_, last)| received.seq <= last);
        match self.still_valid(Some(number), sent_ns, now_ns, deadline) {
            Err(IgnoreReason::Late) | Ok(_) if is_repeated => return Err(IgnoreReason::Repeated),
            valid => valid.map(drop)?,
        }
        if let Some(holder) = &mut self.holder {
            holder.last_applied = Some((received.publisher, received.seq));
            holder.until_ns = now_ns.saturating_add(ns(holder.lease));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEASE: Duration = Duration::from_nanos(100);
    const DEADLINE: Duration = Duration::from_nanos(50);
    const FIRST: u64 = 7;

    fn received(number: u64, node: &str, seq: u64, now_ns: u64) -> ReceivedCommand<'_> {
        ReceivedCommand { number: Some(number), node, publisher: 1, seq, sent_ns: now_ns, now_ns }
    }

    fn holder_of(authority: &Authority) -> Option<(&str, u64)> {
        authority.holder().map(|holder| (holder.node.as_str(), holder.number))
    }

    #[test]
    fn only_a_higher_priority_takes_what_somebody_has() {
        let mut authority = Authority::new(FIRST);
        assert_eq!(
            authority.take("/a", (5, false), LEASE, 0),
            TakeOutcome::Granted { preempted: None }
        );
        assert_eq!(authority.take("/b", (5, false), LEASE, 1), TakeOutcome::Refused);
        assert_eq!(
            authority.take("/a", (5, false), LEASE, 1),
            TakeOutcome::Refused,
            "not a second time either"
        );
        let taken = authority.take("/b", (6, false), LEASE, 2);
        assert!(matches!(taken, TakeOutcome::Granted { preempted: Some(h) } if h.node == "/a"));
        assert_eq!(holder_of(&authority), Some(("/b", FIRST + 1)));
        assert_eq!(authority.release("/a", FIRST), None);
        assert!(!authority.renew("/a", FIRST, 3) && authority.renew("/b", FIRST + 1, 3));
        assert!(authority.release("/b", FIRST + 1).is_some());
        assert_eq!(
            authority.take("/a", (-1, false), LEASE, 4),
            TakeOutcome::Granted { preempted: None }
        );
    }

    #[test]
    fn who_outlasts_its_death_has_authority_until_the_lease_has_passed() {
        let mut authority = Authority::new(FIRST);
        authority.take("/a", (5, true), LEASE, 0);
        assert_eq!(authority.end_lost("/a"), None);
        assert_eq!(authority.take("/b", (5, false), LEASE, 99), TakeOutcome::Refused);
        assert!(authority.expire(100).is_some());
        assert!(matches!(
            authority.take("/b", (5, false), LEASE, 100),
            TakeOutcome::Granted { .. }
        ));
        assert!(authority.end_lost("/b").is_some());
    }

    #[test]
    fn who_outlasts_its_death_takes_its_own_again_and_nobody_else_does() {
        let mut authority = Authority::new(FIRST);
        authority.take("/a", (5, true), LEASE, 0);
        assert_eq!(
            authority.take("/b", (5, true), LEASE, 10),
            TakeOutcome::Refused,
            "another node"
        );
        assert_eq!(
            authority.take("/a", (4, true), LEASE, 10),
            TakeOutcome::Refused,
            "a lower priority"
        );
        assert_eq!(
            authority.take("/a", (5, false), LEASE, 10),
            TakeOutcome::Refused,
            "to drive with it"
        );
        let taken = authority.take("/a", (5, true), LEASE, 10);
        assert!(matches!(taken, TakeOutcome::Granted { preempted: Some(h) } if h.number == FIRST));
        // Messages under the previous authority that are still in flight have no effect.
        assert_eq!(authority.release("/a", FIRST), None);
        assert!(!authority.renew("/a", FIRST, 11));
        assert_eq!(authority.expire(109), None);
        assert_eq!(holder_of(&authority), Some(("/a", FIRST + 1)));
        assert!(authority.expire(110).is_some());
        // A driver that does not outlast its process cannot be taken over this way.
        authority.take("/a", (5, false), LEASE, 200);
        assert_eq!(authority.take("/a", (5, true), LEASE, 201), TakeOutcome::Refused);
    }

    #[test]
    fn a_lease_passes_and_commands_and_renewals_begin_it_anew() {
        let mut authority = Authority::new(FIRST);
        authority.take("/a", (0, false), LEASE, 0);
        assert_eq!(authority.expire(99), None);
        authority.check_command(&received(FIRST, "/a", 0, 60), FIRST, DEADLINE).unwrap();
        assert_eq!(authority.expire(159), None);
        assert!(authority.renew("/a", FIRST, 159));
        assert_eq!(authority.expire(258), None);
        assert!(authority.expire(259).is_some());
        assert_eq!(
            authority.check_command(&received(FIRST, "/a", 1, 260), FIRST, DEADLINE),
            Err(IgnoreReason::Superseded)
        );
    }

    #[test]
    fn what_is_not_the_holders_next_command_is_not_applied() {
        let mut authority = Authority::new(FIRST);
        let check_command = |authority: &mut Authority, received| {
            authority.check_command(&received, FIRST, DEADLINE)
        };
        assert_eq!(
            check_command(&mut authority, received(FIRST, "/a", 0, 0)),
            Err(IgnoreReason::Unauthorised)
        );
        authority.take("/a", (0, false), LEASE, 0);
        for (received, why) in [
            (
                ReceivedCommand { number: None, ..received(0, "/a", 0, 1) },
                IgnoreReason::Unauthorised,
            ),
            (received(FIRST, "/b", 0, 1), IgnoreReason::Unauthorised),
            (received(FIRST - 1, "/a", 0, 1), IgnoreReason::Unauthorised),
            (received(u64::MAX, "/a", 0, 1), IgnoreReason::Unauthorised),
            (ReceivedCommand { sent_ns: 0, ..received(FIRST, "/a", 0, 51) }, IgnoreReason::Late),
        ] {
            assert_eq!(check_command(&mut authority, received), Err(why), "{received:?}");
        }
        check_command(&mut authority, received(FIRST, "/a", 5, 60)).unwrap();
        for (received, why) in [
            (received(FIRST, "/a", 5, 61), IgnoreReason::Repeated),
            (received(FIRST, "/a", 4, 61), IgnoreReason::Repeated),
            (
                ReceivedCommand { publisher: 2, ..received(FIRST, "/a", 6, 61) },
                IgnoreReason::Unauthorised,
            ),
        ] {
            assert_eq!(check_command(&mut authority, received), Err(why), "{received:?}");
        }
        check_command(&mut authority, received(FIRST, "/a", 6, 62)).unwrap();
    }

    /// Actions of drivers whose clocks are arbitrarily wrong, which are stopped in between, and which send
    /// anything.
    #[derive(Clone, Debug)]
    enum Step {
        Take(usize, i32, u64),
        /// Renews the number that was granted this many grants ago.
        Renew(usize, usize),
        Release(usize, usize),
        Lose(usize),
        /// Node, grants ago, publisher, message number, and the offset of its clock.
        Command(usize, usize, u64, u64, i64),
        Pass(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let ago = || 0..3usize;
        let node = || 0..3usize;
        let skew = prop_oneof![-200..200i64, Just(i64::MAX / 2), Just(i64::MIN / 2)];
        let step = prop_oneof![
            2 => (node(), 0..3, 1..200u64).prop_map(|(n, p, l)| Step::Take(n, p, l)),
            1 => (node(), ago()).prop_map(|(n, a)| Step::Renew(n, a)),
            1 => (node(), ago()).prop_map(|(n, a)| Step::Release(n, a)),
            1 => node().prop_map(Step::Lose),
            8 => (node(), ago(), 0..3u64, 0..40u64, skew)
                .prop_map(|(n, a, p, s, k)| Step::Command(n, a, p, s, k)),
            4 => (0..60u64).prop_map(Step::Pass),
        ];
        proptest::collection::vec(step, 1..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// Two drivers are never both in force: a command is applied only if its driver was granted authority
        /// last and has not lost it since, whatever the drivers' clocks say.
        #[test]
        fn one_driver_is_in_force_whatever_clocks_say(steps in steps()) {
            const NODES: [&str; 3] = ["/a", "/b", "/c"];
            let mut authority = Authority::new(FIRST);
            let mut now_ns = 1_000_000;
            // Grants, the current holder and its lease, and the applied commands, as the test sees them.
            let mut granted: Vec<(u64, usize)> = Vec::new();
            let mut holder: Option<(u64, usize, u64, u64)> = None;
            let mut applied: Vec<(u64, u64, u64)> = Vec::new();
            let number = |granted: &[(u64, usize)], ago: usize| {
                granted.iter().rev().nth(ago).map_or(FIRST, |(number, _)| *number)
            };
            for step in steps {
                // As the receiver's thread does before each.
                let _ = authority.expire(now_ns);
                holder = holder.filter(|(.., until)| *until > now_ns);
                match step {
                    Step::Take(node, priority, lease) => {
                        let lease_ns = Duration::from_nanos(lease);
                        match authority.take(NODES[node], (priority, false), lease_ns, now_ns) {
                            TakeOutcome::Granted { preempted } => {
                                prop_assert_eq!(preempted.is_some(), holder.is_some());
                                let number = authority.holder().unwrap().number;
                                prop_assert!(granted.last().is_none_or(|(last, _)| number > *last));
                                granted.push((number, node));
                                holder = Some((number, node, lease, now_ns + lease));
                            }
                            TakeOutcome::Refused => prop_assert!(holder.is_some()),
                        }
                    }
                    Step::Renew(node, ago) => {
                        let number = number(&granted, ago);
                        let its = holder.is_some_and(|(n, of, ..)| (n, of) == (number, node));
                        prop_assert_eq!(authority.renew(NODES[node], number, now_ns), its);
                        if let Some((.., lease, until)) = holder.as_mut().filter(|_| its) {
                            *until = now_ns + *lease;
                        }
                    }
                    Step::Release(node, ago) => {
                        let number = number(&granted, ago);
                        let its = holder.is_some_and(|(n, of, ..)| (n, of) == (number, node));
                        prop_assert_eq!(authority.release(NODES[node], number).is_some(), its);
                        holder = holder.filter(|_| !its);
                    }
                    Step::Lose(node) => {
                        let its = holder.is_some_and(|(_, of, ..)| of == node);
                        prop_assert_eq!(authority.end_lost(NODES[node]).is_some(), its);
                        holder = holder.filter(|_| !its);
                    }
                    Step::Command(node, ago, publisher, seq, skew) => {
                        let number = number(&granted, ago);
                        let sent_ns = now_ns.saturating_add_signed(skew);
                        let received = ReceivedCommand { publisher, sent_ns, ..received(number, NODES[node], seq, now_ns) };
                        if authority.check_command(&received, FIRST, DEADLINE).is_err() {
                            continue;
                        }
                        prop_assert!(holder.is_some_and(|(n, of, ..)| (n, of) == (number, node)));
                        prop_assert!(now_ns.saturating_sub(sent_ns) <= ns(DEADLINE), "it is late");
                        if let Some((before, of, last)) = applied.last() {
                            prop_assert!(number >= *before, "an earlier driver after a later one");
                            let follows = (*of, seq > *last) == (publisher, true);
                            prop_assert!(number > *before || follows);
                        }
                        applied.push((number, publisher, seq));
                        if let Some((.., lease, until)) = &mut holder {
                            *until = now_ns + *lease;
                        }
                    }
                    Step::Pass(ns) => now_ns += ns,
                }
            }
        }
    }
}
