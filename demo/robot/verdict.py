"""Decides whether the loop is closed, the robot is held safe, or has fallen.

A `Monitor` in the simulator observes every step, and summarizes windows of one second. The thresholds are
between these measured values (the worst window of each situation; "dies" over twelve moments of a walking
gait):

    situation                                 height (m)   tilt (rad)   tracking rms (rad)   joint speed rms (rad/s)
    controller, standing                      0.477        0.000        0.022                0.02
    controller, walking and turning           0.458        0.079        0.042                0.34 to 1.31
    controller, torques 12 to 24 ms old       0.456        0.086        0.061                3.1
    controller, torques 15 to 30 ms old       0.452        0.132        0.118                5.3
    it dies, safe hold, first 2 s             0.480        0.073        -                    0.94
    it dies, safe hold, later                 0.490        0.015        -                    0.008
    it dies, motors limp                      0.245        0.323        -                    0.61
    it dies, the last torque stays            0.250        0.477        -                    0.46
"""

from enum import Enum
from math import acos, sqrt
from typing import NamedTuple

from .kinematics import JOINTS
from .quaternion import up_in_body

WINDOW_NS = 1_000_000_000
MIN_HEIGHT_M = 0.40
MAX_TILT_RAD = 0.20
MAX_TRACKING_ERROR_RAD = 0.10
MAX_HELD_JOINT_SPEED_RAD_S = 0.05
MIN_SHARE = 0.9  # minimum share of the window's steps with the same source of torques


class State(Enum):
    LOOP_CLOSED = "loop closed"  # a controller drives, the robot stands or walks, and the joints follow their targets
    LOOP_LATE = "loop late"  # a controller drives, but the joints do not follow: probably its torques are too old
    HELD_SAFE = "held safe"  # the safe hold is in control and the robot does not move
    SETTLING = "settling"  # upright, in transition from one state to another
    ABANDONED = "abandoned"  # upright by chance: neither a controller nor the safe hold is in control
    FALLEN = "fallen"


class Verdict(NamedTuple):
    state: State
    time_ns: int  # end of the window
    min_height_m: float
    max_tilt_rad: float
    tracking_error_rad: float  # rms over joints and commanded steps; NaN without a controller
    joint_speed_rad_s: float  # rms over joints and steps
    driven: float  # share of the steps driven by a controller, 0 to 1
    held: float  # share of the steps driven by the safe hold, 0 to 1


class Monitor:
    """Call `observe` once per step; it returns a `Verdict` at the end of each window and None otherwise."""

    def __init__(self, window_ns=WINDOW_NS):
        self.window_ns = window_ns
        self._begin(0)

    def _begin(self, time_ns):
        self._start_ns = time_ns
        self._steps = self._driven = self._held = 0
        self._min_height, self._min_up = float("inf"), 1.0
        self._error_squares = self._speed_squares = 0.0

    def observe(self, time_ns, height_m, orientation, joint_velocities, *, tracking_error_rad=None, held=False):
        """One step. `tracking_error_rad`: from the controller's message that drove this step, or None.
        `held`: whether the safe hold drove it.
        """
        self._steps += 1
        self._min_height = min(self._min_height, height_m)
        self._min_up = min(self._min_up, up_in_body(orientation)[2])
        for speed in joint_velocities:
            self._speed_squares += speed * speed
        if tracking_error_rad is not None:
            self._driven += 1
            self._error_squares += tracking_error_rad * tracking_error_rad
        self._held += bool(held)
        if time_ns - self._start_ns < self.window_ns:
            return None
        verdict = self._judge(time_ns)
        self._begin(time_ns)
        return verdict

    def _judge(self, time_ns):
        tilt = acos(max(-1.0, min(1.0, self._min_up)))
        speed = sqrt(self._speed_squares / (self._steps * JOINTS))
        error = sqrt(self._error_squares / self._driven) if self._driven else float("nan")
        driven, held = self._driven / self._steps, self._held / self._steps
        if self._min_height < MIN_HEIGHT_M or tilt > MAX_TILT_RAD:
            state = State.FALLEN
        elif driven >= MIN_SHARE:
            state = State.LOOP_CLOSED if error <= MAX_TRACKING_ERROR_RAD else State.LOOP_LATE
        elif held >= MIN_SHARE and speed <= MAX_HELD_JOINT_SPEED_RAD_S:
            state = State.HELD_SAFE
        elif driven + held < MIN_SHARE:
            state = State.ABANDONED
        else:
            state = State.SETTLING
        return Verdict(state, time_ns, self._min_height, tilt, error, speed, driven, held)
