//! Detects whether another host is heard.
//!
//! A closed connection means that the host is present and that its link exited or was killed; another link
//! has some time to replace it. A silent connection proves nothing, so silence is measured by the echoes of
//! the stamps that this link sends: they return while both directions work. If the system there still
//! answers, the link itself is stopped, and another link has the same time to replace it.

use std::time::Duration;

use rnet::{Lane, now_ns};

use super::super::lock::lock;
use super::{Host, LANES};
use crate::transport::Connection;

/// Time to replace a link whose connection has closed before its host counts as lost.
const REPLACEMENT_TIME: Duration = Duration::from_secs(2);
/// The longest interval between two checks that counts as silence. A link that was not scheduled has heard
/// nothing in that time, and receives everything that arrived at its next check.
const MAX_COUNTED_INTERVAL: Duration = Duration::from_millis(150);
/// The longest silence of one lane while the other is heard: far longer than a reconnect takes. The network
/// reports both as present.
const ONE_LANE_SILENCE: Duration = Duration::from_secs(5);

/// When a lane was heard.
#[derive(Clone, Copy, Debug, Default)]
struct LaneLiveness {
    /// The newest stamp of this link that was echoed.
    echoed_ns: u64,
    silent: Duration,
}

/// When another host was heard.
#[derive(Debug, Default)]
pub struct HostLiveness {
    /// Since when its link is absent, in ns of CLOCK_MONOTONIC.
    down_ns: Option<u64>,
    /// The newest stamp of this link that was echoed on any lane.
    echoed_ns: u64,
    silent: Duration,
    lanes: [LaneLiveness; 2],
    /// Whether its system answered at the previous check and at this one. Data may be on its way.
    system_answers: [bool; 2],
    /// Whether it was lost and was not heard since.
    is_missed: bool,
    /// Time that its link has been present without announcing its endpoints.
    unannounced_for: Duration,
}

impl HostLiveness {
    /// Whether its link is present.
    pub fn is_up(&self) -> bool {
        self.down_ns.is_none()
    }

    /// Whether it was lost and was not heard since.
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

    /// Whether it has been silent for longer than allowed.
    fn is_silent(&self, lost_after: Duration) -> bool {
        let limit = if self.system_answers.contains(&true) {
            lost_after.max(REPLACEMENT_TIME)
        } else {
            lost_after
        };
        self.silent >= limit
    }

    /// Whether one lane has been silent for too long while the other is heard. If neither is heard, the
    /// whole host is silent, and the configured limit applies.
    fn has_silent_lane(&self) -> bool {
        let [bulk, urgent] = self.lanes.map(|lane| lane.silent);
        bulk.abs_diff(urgent) >= ONE_LANE_SILENCE
    }

    /// The lane with the longest silence, if that exceeds `limit`.
    pub fn silent_lane(&self, limit: Duration) -> Option<(Lane, Duration)> {
        let lanes = LANES.into_iter().zip(self.lanes.map(|lane| lane.silent));
        lanes.filter(|(_, silent)| *silent >= limit).max_by_key(|(_, silent)| *silent)
    }

    /// Describes why it counts as lost.
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
        // One lane may still be heard while the other reconnects: then only silence ends the session.
        let speaks = self.down_ns.is_none_or(|down_ns| self.echoed_ns > down_ns);
        match speaks && echoed_ns <= self.echoed_ns {
            true => self.silent += passed.min(MAX_COUNTED_INTERVAL),
            false => self.silent = Duration::ZERO,
        }
        self.echoed_ns = echoed_ns.max(self.echoed_ns);
    }
}

impl Host {
    /// Its link is present in this term.
    pub fn up(&mut self, term: u64) {
        if term >= self.presence.term {
            self.presence.term = term;
            let HostLiveness { echoed_ns, unannounced_for, .. } = self.liveness;
            self.liveness = HostLiveness { echoed_ns, unannounced_for, ..HostLiveness::default() };
            // Data sent over an earlier connection may be lost; the following frames reveal that.
            self.lanes.iter().for_each(|lane| lane.note_connected());
        }
    }

    /// The link of that term is absent.
    pub fn down(&mut self, term: u64) {
        if term == self.presence.term {
            self.liveness.down_ns = Some(now_ns());
        }
    }

    /// Marks it as lost although the network reports its link as present.
    pub fn mark_missed(&mut self) {
        self.liveness.is_missed = true;
        self.lanes.iter().for_each(|lane| lock(&lane.stream).introduce_slowly(now_ns()));
    }

    /// Its link has restarted the session.
    pub(super) fn reset_liveness(&mut self) {
        self.liveness.reset_silence();
    }

    /// Whether each of its lanes sends at a known interval.
    pub(super) fn sends_pulses(&self) -> bool {
        self.hello.as_ref().is_some_and(|hello| hello.pulse_ms != 0)
    }

    /// Checks for echoes, `passed` after the last check. Reads the connections if no echo has arrived for
    /// long.
    pub fn check_echoes<'a>(
        &mut self,
        passed: Duration,
        connections: impl Fn() -> &'a [Connection],
    ) {
        self.liveness.count_unannounced(self.announced, passed);
        if !self.sends_pulses() {
            // A link of an earlier release is silent while it has nothing to send.
            return self.liveness.reset_silence();
        }
        let echoed = self.lanes.each_ref().map(|lane| lock(&lane.stream).last_echo_ns());
        self.liveness.update(echoed, passed);
        let is_late = self.liveness.silent + MAX_COUNTED_INTERVAL >= self.lost_after;
        self.liveness.system_answers =
            [self.liveness.system_answers[1], is_late && self.is_answered(connections())];
    }

    /// Whether it has announced its endpoints in this session.
    pub fn has_announced(&self) -> bool {
        self.announced
    }

    /// Time that its link has been present without announcing its endpoints.
    pub fn unannounced_for(&self) -> Duration {
        self.liveness.unannounced_for
    }

    /// Whether one of its lanes is silent while the other is heard.
    pub fn has_silent_lane(&self) -> bool {
        self.liveness.has_silent_lane()
    }

    /// Whether it has announced its endpoints and both lanes are heard.
    pub fn is_heard(&self) -> bool {
        let is_heard = |lane: &LaneLiveness| lane.echoed_ns > 0 && lane.silent < self.lost_after;
        self.announced && (!self.sends_pulses() || self.liveness.lanes.iter().all(is_heard))
    }

    /// Whether the network reports its link as present.
    pub(super) fn is_up(&self) -> bool {
        self.liveness.is_up()
    }

    /// Whether it has answered data that was sent after this moment, in ns of CLOCK_MONOTONIC. A link of an
    /// earlier release may be silent and counts as heard.
    pub(super) fn was_heard_since(&self, since_ns: u64) -> bool {
        !self.sends_pulses() || self.liveness.echoed_ns > since_ns
    }

    /// Describes why it counts as lost.
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
    fn time_between_late_checks_does_not_count_as_silence() {
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
    fn present_link_without_announcement_is_waited_for() {
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
    fn stopped_link_may_be_replaced() {
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
        assert!(liveness.is_silent(SILENCE), "no link replaces it");
    }

    #[test]
    fn exited_link_is_silent_only_if_it_was_heard_since() {
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

    /// A `lost_after_ms` above 5 s applies to both lanes together.
    #[test]
    fn fully_silent_host_has_no_silent_lane() {
        let mut liveness = HostLiveness::default();
        liveness.update([1; 2], TICK);
        for _ in 0..3 * ONE_LANE_SILENCE.as_millis() / TICK.as_millis() {
            liveness.update([1, 2], TICK);
        }
        assert!(liveness.silent >= 2 * ONE_LANE_SILENCE && !liveness.has_silent_lane());
    }

    #[test]
    fn lane_may_not_be_silent_for_long_while_the_other_is_heard() {
        let mut liveness = HostLiveness::default();
        let checks = ONE_LANE_SILENCE.as_millis() as u64 / TICK.as_millis() as u64;
        for at in 1..=checks {
            liveness.update([at, 1], TICK);
        }
        assert!(!liveness.has_silent_lane() && !liveness.is_silent(SILENCE));
        liveness.update([checks + 1, 1], TICK);
        assert!(liveness.has_silent_lane() && !liveness.is_silent(SILENCE));
        liveness.update([checks + 2, 2], TICK);
        assert!(!liveness.has_silent_lane());
        // The network reports its link as absent: it may be replaced.
        liveness.down_ns = Some(1);
        for at in 1..=2 * checks {
            liveness.update([checks + at, 2], TICK);
        }
        assert!(!liveness.has_silent_lane());
    }
}
