"""Joint targets of a slow crawl, from an operator's command and the time.

One leg after the other lifts and returns, while the sweeping hips of the other three push the body along. The
ant's legs have no third joint, so a foot cannot follow a straight line on the ground: it moves across its own
leg. For a turn that is exact. When going straight each foot also pulls sideways; the four cancel in the
body's motion and cause slip, which PUSH_GAIN compensates. Without a command the robot stands and sways its
height slowly, which shows that the loop is active.
"""

from math import cos, exp, pi, sin

from .kinematics import ANKLE_SIGN, HIP_M, JOINTS, LEGS, SHIN_M, THIGH_M
from .posture import STAND_BEND_RAD, STAND_RAD

PERIOD_S = 1.2
STANCE = 0.75  # share of the period that a foot spends on the ground: three feet of four at any time
LIFT_RAD = 0.2  # how far a leg in the air unbends: about 8 cm at the foot
SWAY_RAD, SWAY_PERIOD_S = 0.04, 3.0
MAX_VX_M_S, MAX_YAW_RAD_S = 0.15, 0.4
COMMAND_TIME_CONSTANT_S = 0.3  # a step of the joystick becomes a ramp of the gait
FULL_LIFT_RAD_S = 0.1  # hip speed from which the feet are lifted fully

_PUSH_GAIN = 1.9  # commanded / reached forward speed without it, measured in this simulation
_REACH_M = THIGH_M + SHIN_M * cos(STAND_BEND_RAD)  # from the hip's axis to the foot, seen from above
# A foot moves at reach * hip rate across its leg; cos 45 degrees of that points forward.
_HIP_RATE_PER_VX = _PUSH_GAIN * 2**0.5 / _REACH_M
# Turning on the spot: the feet circle at HIP + reach around the body's centre, at reach around their hips.
_HIP_RATE_PER_YAW = (HIP_M + _REACH_M) / _REACH_M
_SIDE = (1.0, 1.0, -1.0, -1.0)  # left legs push backwards with a positive hip rate, right legs with a negative one
_PHASE_OFFSET = (0.0, 0.5, 0.75, 0.25)


class Crawl:
    """Call `advance` once per control period, then read `targets` [8] rad and `rates` [8] rad/s."""

    def __init__(self):
        self.targets = list(STAND_RAD)
        self.rates = [0.0] * JOINTS
        self._phase = 0.0
        self._sway_phase = 0.0
        self._vx = self._yaw = 0.0

    def advance(self, dt_s, vx_m_s, yaw_rad_s):
        """Advances by `dt_s` under the command (forward speed in m/s, turn rate in rad/s, left positive)."""
        vx_m_s = max(-MAX_VX_M_S, min(MAX_VX_M_S, vx_m_s))
        yaw_rad_s = max(-MAX_YAW_RAD_S, min(MAX_YAW_RAD_S, yaw_rad_s))
        mix = 1.0 - exp(-dt_s / COMMAND_TIME_CONSTANT_S)
        self._vx += mix * (vx_m_s - self._vx)
        self._yaw += mix * (yaw_rad_s - self._yaw)
        self._phase = (self._phase + dt_s / PERIOD_S) % 1.0
        self._sway_phase = (self._sway_phase + dt_s / SWAY_PERIOD_S) % 1.0

        forward, turn = _HIP_RATE_PER_VX * self._vx, -_HIP_RATE_PER_YAW * self._yaw
        lift = LIFT_RAD * min(1.0, (abs(forward) + abs(turn)) / FULL_LIFT_RAD_S)
        sway = SWAY_RAD * sin(2 * pi * self._sway_phase)
        sway_rate = SWAY_RAD * (2 * pi / SWAY_PERIOD_S) * cos(2 * pi * self._sway_phase)
        for leg in range(LEGS):
            sweep = _SIDE[leg] * forward + turn  # hip rate while the foot is on the ground
            half_range = sweep * PERIOD_S * STANCE / 2
            phase = (self._phase + _PHASE_OFFSET[leg]) % 1.0
            bend, bend_rate = STAND_BEND_RAD + sway, sway_rate
            if phase < STANCE:  # on the ground: from -half_range to +half_range at constant speed
                hip, hip_rate = half_range * (2 * phase / STANCE - 1), sweep
            else:  # in the air: back along a cosine; 1 - cos leaves and meets the ground at zero speed
                angle, angle_rate = pi * (phase - STANCE) / (1 - STANCE), pi / (PERIOD_S * (1 - STANCE))
                hip, hip_rate = half_range * cos(angle), -half_range * angle_rate * sin(angle)
                bend -= 0.5 * lift * (1 - cos(2 * angle))
                bend_rate -= lift * angle_rate * sin(2 * angle)
            sign = ANKLE_SIGN[leg]
            self.targets[2 * leg], self.targets[2 * leg + 1] = hip, sign * bend
            self.rates[2 * leg], self.rates[2 * leg + 1] = hip_rate, sign * bend_rate
