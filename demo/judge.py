"""Judges the behaviour of the robot from the reports of the simulation.

The simulation reports a verdict per window (robot/verdict.py), and each time when the controller or the safe
hold took over. All times are CLOCK_MONOTONIC in ns, the same in all processes.
"""

import time

from robot.safe_hold import TIMEOUT_NS
from robot.verdict import State

WINDOW_NS = 250_000_000  # short relative to the outage, so that one window settles and another holds within it
SETTLE_NS = 1_000_000_000  # after a controller took over: it blends in for START_S = 0.5 s
MIN_CLOSED = 2  # windows, before the outage and after it
MIN_CLOSED_SHARE = 0.5  # single windows may be late on a busy machine; an open loop has no closed window
# From the cable cut to the safe hold, in simulated time: 10 ms for the last torques and for catch-up steps.
HOLD_DEADLINE_MS = TIMEOUT_NS * 1e-6 + 10

CLOSED, HELD, FALLEN, ABANDONED, SETTLING = (
    state.value
    for state in (State.LOOP_CLOSED, State.HELD_SAFE, State.FALLEN, State.ABANDONED, State.SETTLING)
)


class OutageRecord:
    """The events of an outage, with their times. `outage` and `repair` describe its cause and its end."""

    def __init__(
        self,
        outage="the controller was killed",
        repair="the controller was restarted",
        deadline_ms=None,
        min_closed_share=MIN_CLOSED_SHARE,
        judges_settling=True,
    ):
        self.outage, self.repair, self.deadline_ms = outage, repair, deadline_ms
        self.min_closed_share, self.judges_settling = min_closed_share, judges_settling
        self.begin_ns = self.killed_ns = self.restarted_ns = self.end_ns = None
        self.verdicts = []  # reports of the simulation: at_ns (end of the window), state, ...
        self.changes = []  # (at_ns, True if the controller took over, False if the safe hold did)
        self.clock = []  # (at_ns, simulated time in ns)

    def held_after_ms(self):
        """Time from the kill to the safe hold in ms, or None without one. 0 if it was engaged before."""
        before = [driven for at_ns, driven in self.changes if at_ns <= self.killed_ns]
        if before and not before[-1]:
            return 0.0
        holds = [at_ns for at_ns, driven in self.changes if not driven and at_ns > self.killed_ns]
        return (holds[0] - self.killed_ns) * 1e-6 if holds else None

    def held_after_simulated_ms(self):
        """As `held_after_ms`, but the minimum simulated time: a delayed simulation had less time to notice.
        None without a hold.
        """
        times = [at_ns for at_ns, driven in self.changes if not driven and at_ns > self.killed_ns]
        if self.held_after_ms() in (None, 0.0):
            return self.held_after_ms()
        held_ns = next(time_ns for at_ns, time_ns in self.clock if at_ns == times[0])
        before = [pair for pair in self.clock if pair[0] <= self.killed_ns]
        seen_ns, time_ns = max(before, default=(self.killed_ns, held_ns))
        return max(0.0, (held_ns - time_ns - (self.killed_ns - seen_ns)) * 1e-6)

    def driven_again_ns(self):
        """When the new controller's first torques reached the motors, or None."""
        times = [at_ns for at_ns, driven in self.changes if driven and at_ns > self.restarted_ns]
        return times[0] if times else None

    def recovery_ms(self):
        """Time from the start of the new controller's process to its first torques in ms, or None."""
        again_ns = self.driven_again_ns()
        return None if again_ns is None else (again_ns - self.restarted_ns) * 1e-6

    def _states(self, from_ns, until_ns):
        return [v["state"] for v in self.verdicts if from_ns <= v["at_ns"] - WINDOW_NS and v["at_ns"] <= until_ns]

    def failures(self):
        """All failures, as text; an empty list if the robot behaved as it should."""
        found = [f"the robot fell {self._at(v)}" for v in self.verdicts if v["state"] == FALLEN][:1]
        found += [f"the robot was neither driven nor held {self._at(v)}" for v in self.verdicts if v["state"] == ABANDONED][:1]
        found += self._closed(f"before {self.outage}", self.begin_ns, self.killed_ns)
        if self.held_after_ms() is None:
            found.append(f"the safe hold did not engage when {self.outage}")
        elif self.deadline_ms is not None and self.held_after_simulated_ms() > self.deadline_ms:
            late = f"{self.held_after_simulated_ms():.0f} ms after {self.outage}"
            found.append(f"the safe hold engaged {late}, the limit is {self.deadline_ms:.0f} ms")
        outage = self._states(self.killed_ns, self.restarted_ns)
        if not outage or outage[-1] != HELD:
            found.append(f"the robot was not held safely after {self.outage} ({self._count(outage)})")
        again_ns = self.driven_again_ns()
        if again_ns is None:
            found.append(f"the loop did not close again after {self.repair}")
        else:
            found += self._closed(f"after {self.repair}", again_ns + SETTLE_NS // 2, self.end_ns)
        return found

    def has_closed(self):
        """True if the loop closed as it should before the outage, or, once it was repaired, after the outage."""
        if self.restarted_ns is None:
            from_ns = self.begin_ns
        elif (again_ns := self.driven_again_ns()) is None:
            return False
        else:
            from_ns = again_ns + SETTLE_NS // 2
        return not any(self._closed("", from_ns, time.monotonic_ns()))

    def has_ended(self):
        """True if the robot fell or was abandoned: it does not close the loop again."""
        return any(v["state"] in (FALLEN, ABANDONED) for v in self.verdicts)

    def _closed(self, when, from_ns, until_ns):
        states = self._states(from_ns, until_ns)
        judged = [state for state in states if self.judges_settling or state != SETTLING]
        if states.count(CLOSED) < max(MIN_CLOSED, self.min_closed_share * len(judged)):
            yield f"the loop did not close {when} ({self._count(states)})"

    def _at(self, verdict):
        return f"{(verdict['at_ns'] - self.begin_ns) * 1e-9:.1f} s after the start"

    @staticmethod
    def _count(states):
        counts = {state: states.count(state) for state in dict.fromkeys(states)}
        return ", ".join(f"{count} x {state}" for state, count in counts.items()) or "no verdicts"
