"""The joint controller: a PD law at 1 kHz that makes the joints follow the gait.

The loop runs through messages, so it must tolerate delays: on a busy machine a torque may be in effect for
some milliseconds. The gains are chosen for that. The robot walks with torques computed only every 10 ms from
a state 10 ms old (a test checks this); from 15 ms on it trembles. A feed-forward term carries the weight, so
the gains need not be higher.
"""

from math import cos, sqrt

from .gait import Crawl
from .kinematics import ANKLE_SIGN, JOINTS, LEGS, SHIN_M
from .posture import BODY_WEIGHT_N, STAND_RAD, TORQUE_LIMIT_NM

KP_NM_RAD = 300.0
KD_NM_S_RAD = 12.0
MAX_DT_S = 0.05  # after a longer gap in the sensor stream the gait continues where it was, without a jump
START_S = 0.5  # time in which a starting controller moves the joints from their positions to the gait


def weight_torque(bend_rad):
    """Torque (N m, positive bends the leg down) with which an ankle carries a quarter of the robot's weight."""
    return 0.25 * BODY_WEIGHT_N * SHIN_M * cos(bend_rad)


class Controller:
    """`update` processes a sensor message and returns the torques to send."""

    def __init__(self):
        self.targets = list(STAND_RAD)  # rad: current joint targets
        self.torques = [0.0] * JOINTS
        self.tracking_error_rad = 0.0  # rms over the joints, of the last update
        self._gait = Crawl()
        self._last_ns = None
        self._start = None  # joint positions at the first update
        self._elapsed_s = 0.0

    def update(self, time_ns, joint_positions, joint_velocities, vx_m_s=0.0, yaw_rad_s=0.0):
        """Torques ([8] N m, one list that the next call overwrites) for a sensor message from `time_ns`.

        `joint_positions` (rad) and `joint_velocities` (rad/s) are sequences of 8 floats; lists are fastest.
        Only differences of `time_ns` matter, so any clock can be used, but always the same one.
        """
        if self._last_ns is None:
            self._last_ns, self._start = time_ns, list(joint_positions)
        dt_s = max(0.0, min(MAX_DT_S, (time_ns - self._last_ns) * 1e-9))
        self._last_ns = time_ns
        self._elapsed_s += dt_s
        # Walks only after the start, so that the blend leads to a pose and not to a moving target.
        starting = self._elapsed_s < START_S
        gait = self._gait
        gait.advance(dt_s, 0.0 if starting else vx_m_s, 0.0 if starting else yaw_rad_s)
        blend = min(1.0, self._elapsed_s / START_S)

        squares = 0.0
        for joint in range(JOINTS):
            target = self._start[joint] + blend * (gait.targets[joint] - self._start[joint])
            error = target - joint_positions[joint]
            squares += error * error
            self.targets[joint] = target
            self.torques[joint] = KP_NM_RAD * error + KD_NM_S_RAD * (
                blend * gait.rates[joint] - joint_velocities[joint]
            )
        for leg in range(LEGS):
            ankle, sign = 2 * leg + 1, ANKLE_SIGN[leg]
            self.torques[ankle] += sign * weight_torque(sign * joint_positions[ankle])
        for joint in range(JOINTS):
            self.torques[joint] = max(-TORQUE_LIMIT_NM, min(TORQUE_LIMIT_NM, self.torques[joint]))
        self.tracking_error_rad = sqrt(squares / JOINTS)
        return self.torques
