//! Whether another host is heard.
//!
//! A connection that has ended says that the host is there, and that its link has ended or was killed: another one
//! has the time to take over. One that is silent says nothing, so silence is judged by what comes back of the
//! stamps that this link sends: it does while both directions work. Where the system there goes on to answer, it is
//! the link that stands still, and another one has the same time.

use std::time::Duration;

use rnet::{Lane, now_ns};

use super::super::lock::lock;
use super::{Host, LANES};
use crate::transport::Connection;

/// For how long a link whose connection has ended may be replaced before its host counts as lost.
const REPLACEMENT_TIME: Duration = Duration::from_secs(2);
/// So much of the time between two looks counts as silence at most. A link that was not run itself has heard nothing
/// for that, and learns in one look what has come meanwhile.
const MAX_COUNTED_INTERVAL: Duration = Duration::from_millis(150);
/// For how much longer one lane may be silent than the other one: far longer than it takes to connect again. The
/// network says that both are there.
const ONE_LANE_SILENCE: Duration = Duration::from_secs(5);

/// When a lane was heard.
#[derive(Clone, Copy, Debug, Default)]
struct LaneLiveness {
    /// The newest stamp of ours that has come back.
    echoed_ns: u64,
    silent: Duration,
}

/// When another host was heard.
#[derive(Debug, Default)]
pub struct HostLiveness {
    /// Since when its link is not there, ns of CLOCK_MONOTONIC.
    down_ns: Option<u64>,
    /// The newest stamp of ours that has come back, by the lane with the newest.
    echoed_ns: u64,
    silent: Duration,
    lanes: [LaneLiveness; 2],
    /// Whether its system answers meanwhile: at the look before, and at this one. Something may be on its way.
    system_answers: [bool; 2],
    /// Whether it was lost, and not heard since.
    is_missed: bool,
    /// For how long its link has been there without telling what its host has.
    unannounced_for: Duration,
}

impl HostLiveness {
    /// Whether its link is there.
    pub fn is_up(&self) -> bool {
        self.down_ns.is_none()
    }

    /// Whether it was lost before, and was not heard since.
    pub fn is_missed(&self) -> bool {
        self.is_missed
    }

    fn reset_silence(&mut self) {
        self.silent = Duration::ZERO;
        self.lanes.iter_mut().for_each(|lane| lane.silent = Duration::ZERO);
    }

    fn count_unannounced(&mut self, announced: bool, passed: Duration) {
        match announced || !self.is_up() {
            true => self.unannounced_for = Duration::ZERO,
            false => self.unannounced_for += passed.min(MAX_COUNTED_INTERVAL),
        }
    }

    /// Whether it is silent for longer than it may be.
    fn is_silent(&self, lost_after: Duration) -> bool {
        let limit = if self.system_answers.contains(&true) {
            lost_after.max(REPLACEMENT_TIME)
        } else {
            lost_after
        };
        self.silent >= limit
    }

    /// Whether one lane is silent for longer than it may be while the other one is heard. If neither is, the host is
    /// silent, and may be for as long as its configuration says.
    fn has_silent_lane(&self) -> bool {
        let [bulk, urgent] = self.lanes.map(|lane| lane.silent);
        bulk.abs_diff(urgent) >= ONE_LANE_SILENCE
    }

    /// The lane that is silent for longest, if that is for so long.
    pub fn silent_lane(&self, limit: Duration) -> Option<(Lane, Duration)> {
        let lanes = LANES.into_iter().zip(self.lanes.map(|lane| lane.silent));
        lanes.filter(|(_, silent)| *silent >= limit).max_by_key(|(_, silent)| *silent)
    }

    /// Why it counts as lost, in words.
    fn lost_reason(&self) -> &'static str {
        match (self.is_up(), self.system_answers.contains(&true)) {
            (false, _) => "its link has exited, and no other one has taken over",
            (true, true) => "its link is silent, but its system answers: the link does not respond",
            (true, false) => "nothing arrives from it any more",
        }
    }

    fn update(&mut self, echoed_ns: [u64; 2], passed: Duration) {
        let is_up = self.is_up();
        for (lane, echoed_ns) in self.lanes.iter_mut().zip(echoed_ns) {
            match is_up && echoed_ns <= lane.echoed_ns {
                true => lane.silent += passed.min(MAX_COUNTED_INTERVAL),
                false => lane.silent = Duration::ZERO,
            }
            lane.echoed_ns = echoed_ns.max(lane.echoed_ns);
        }
        let echoed_ns = echoed_ns.into_iter().max().unwrap_or_default();
        // One lane may go on while the other connects again: then silence is what ends it.
        let speaks = self.down_ns.is_none_or(|down_ns| self.echoed_ns > down_ns);
        match speaks && echoed_ns <= self.echoed_ns {
            true => self.silent += passed.min(MAX_COUNTED_INTERVAL),
            false => self.silent = Duration::ZERO,
        }
        self.echoed_ns = echoed_ns.max(self.echoed_ns);
    }
}

impl Host {
    /// Its link is there, in this term.
    pub fn up(&mut self, term: u64) {
        if term >= self.presence.term {
            self.presence.term = term;
            let HostLiveness { echoed_ns, unannounced_for, .. } = self.liveness;
            self.liveness = HostLiveness { echoed_ns, unannounced_for, ..HostLiveness::default() };
            // What was under way over an earlier connection may be lost, and is found missing by what follows.
            self.lanes.iter().for_each(|lane| lane.note_connected());
        }
    }

    /// The link of that term is not.
    pub fn down(&mut self, term: u64) {
        if term == self.presence.term {
            self.liveness.down_ns = Some(now_ns());
        }
    }

    /// It was lost, and the network says that its link is there.
    pub fn mark_missed(&mut self) {
        self.liveness.is_missed = true;
        self.lanes.iter().for_each(|lane| lock(&lane.stream).introduce_slowly(now_ns()));
    }

    /// Its link has begun anew.
    pub(super) fn reset_liveness(&mut self) {
        self.liveness.reset_silence();
    }

    /// Whether each of its lanes is known to send something now and then.
    pub(super) fn sends_pulses(&self) -> bool {
        self.hello.as_ref().is_some_and(|hello| hello.pulse_ms != 0)
    }

    /// Looks whether something has come back, `passed` after the last look. The connections are asked for if nothing
    /// has for long.
    pub fn check_echoes<'a>(
        &mut self,
        passed: Duration,
        connections: impl Fn() -> &'a [Connection],
    ) {
        self.liveness.count_unannounced(self.announced, passed);
        if !self.sends_pulses() {
            // Of an earlier release, which sends nothing while it has nothing to say.
            return self.liveness.reset_silence();
        }
        let echoed = self.lanes.each_ref().map(|lane| lock(&lane.stream).last_echo_ns());
        self.liveness.update(echoed, passed);
        let is_late = self.liveness.silent + MAX_COUNTED_INTERVAL >= self.lost_after;
        self.liveness.system_answers =
            [self.liveness.system_answers[1], is_late && self.is_answered(connections())];
    }

    /// Whether it has told of its endpoints in this session.
    pub fn has_announced(&self) -> bool {
        self.announced
    }

    /// For how long its link has been there without telling what its host has.
    pub fn unannounced_for(&self) -> Duration {
        self.liveness.unannounced_for
    }

    /// Whether one of its lanes is silent, and the other one is not.
    pub fn has_silent_lane(&self) -> bool {
        self.liveness.has_silent_lane()
    }

    /// Whether it has told of its endpoints, and both lanes are heard.
    pub fn is_heard(&self) -> bool {
        let is_heard = |lane: &LaneLiveness| lane.echoed_ns > 0 && lane.silent < self.lost_after;
        self.announced && (!self.sends_pulses() || self.liveness.lanes.iter().all(is_heard))
    }

    /// Whether its link is there, as the network says.
    pub(super) fn is_up(&self) -> bool {
        self.liveness.is_up()
    }

    /// Whether it has answered something that was sent after this moment, ns of CLOCK_MONOTONIC. One of an earlier
    /// release, which may be silent, counts as heard.
    pub(super) fn was_heard_since(&self, since_ns: u64) -> bool {
        !self.sends_pulses() || self.liveness.echoed_ns > since_ns
    }

    /// Why it counts as lost, in words.
    pub fn lost_reason(&self) -> &'static str {
        self.liveness.lost_reason()
    }

    /// Whether it counts as lost.
    pub fn is_lost(&self) -> bool {
        let replaced_ns = REPLACEMENT_TIME.as_nanos() as u64;
        self.liveness.down_ns.is_some_and(|down_ns| now_ns().saturating_sub(down_ns) >= replaced_ns)
            || self.liveness.is_silent(self.lost_after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DEFAULT_LOST_AFTER as SILENCE;

    const TICK: Duration = Duration::from_millis(100);

    #[test]
    fn time_in_which_nobody_looked_is_no_silence() {
        let mut liveness = HostLiveness::default();
        liveness.update([1; 2], TICK);
        for _ in 0..4 {
            liveness.update([1; 2], Duration::from_secs(10));
        }
        assert!(liveness.silent < SILENCE);
        liveness.update([2; 2], TICK);
        assert_eq!(liveness.silent, Duration::ZERO);
        for _ in 0..8 {
            liveness.update([2; 2], TICK);
        }
        assert!(liveness.silent >= SILENCE);
    }

    #[test]
    fn who_tells_nothing_is_waited_for_while_it_is_there() {
        let mut liveness = HostLiveness::default();
        liveness.count_unannounced(false, TICK);
        liveness.count_unannounced(false, Duration::from_secs(10));
        assert_eq!(liveness.unannounced_for, TICK + MAX_COUNTED_INTERVAL);
        liveness.count_unannounced(true, TICK);
        assert_eq!(liveness.unannounced_for, Duration::ZERO);
        liveness.count_unannounced(false, TICK);
        liveness.down_ns = Some(1);
        liveness.count_unannounced(false, TICK);
        assert_eq!(liveness.unannounced_for, Duration::ZERO);
    }

    #[test]
    fn a_link_that_stands_still_may_be_replaced() {
        let mut liveness =
            HostLiveness { system_answers: [false, true], ..HostLiveness::default() };
        for _ in 0..8 {
            liveness.update([0; 2], TICK);
        }
        assert!(liveness.silent >= SILENCE && !liveness.is_silent(SILENCE));
        liveness.system_answers = [false; 2];
        assert!(liveness.is_silent(SILENCE), "its cable is cut, too");
        liveness.system_answers = [true, false];
        for _ in 0..12 {
            liveness.update([0; 2], TICK);
        }
        assert!(liveness.is_silent(SILENCE), "nobody replaces it");
    }

    #[test]
    fn a_link_that_has_ended_is_not_silent_unless_it_speaks() {
        let mut liveness = HostLiveness { down_ns: Some(10), ..HostLiveness::default() };
        for _ in 0..20 {
            liveness.update([9; 2], TICK);
        }
        assert_eq!(liveness.silent, Duration::ZERO);
        for _ in 0..20 {
            liveness.update([11; 2], TICK);
        }
        assert!(liveness.silent >= SILENCE);
    }

    /// With a `lost_after_ms` of more than 5 s it is waited for, as configured.
    #[test]
    fn a_host_of_which_nothing_comes_is_not_half_heard() {
        let mut liveness = HostLiveness::default();
        liveness.update([1; 2], TICK);
        for _ in 0..3 * ONE_LANE_SILENCE.as_millis() / TICK.as_millis() {
            liveness.update([1, 2], TICK);
        }
        assert!(liveness.silent >= 2 * ONE_LANE_SILENCE && !liveness.has_silent_lane());
    }

    #[test]
    fn a_lane_is_not_silent_for_long_while_the_other_is_heard() {
        let mut liveness = HostLiveness::default();
        let looks = ONE_LANE_SILENCE.as_millis() as u64 / TICK.as_millis() as u64;
        for at in 1..=looks {
            liveness.update([at, 1], TICK);
        }
        assert!(!liveness.has_silent_lane() && !liveness.is_silent(SILENCE));
        liveness.update([looks + 1, 1], TICK);
        assert!(liveness.has_silent_lane() && !liveness.is_silent(SILENCE));
        liveness.update([looks + 2, 2], TICK);
        assert!(!liveness.has_silent_lane());
        // Its link is not there, as the network says: it may be replaced.
        liveness.down_ns = Some(1);
        for at in 1..=2 * looks {
            liveness.update([looks + at, 2], TICK);
        }
        assert!(!liveness.has_silent_lane());
    }
}
