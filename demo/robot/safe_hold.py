"""The actuators' behaviour without commands: stop, and hold the last safe pose.

This runs beside the motors, in the process of the simulator, and depends on nothing else. While commands
arrive, it passes them on. When the last one is older than `timeout_ns`, it takes over: it damps the joints
and moves them, within RAMP_S, to the last pose in which the robot stood upright on four feet (a controller
may die with a leg in the air, which is not a pose to keep). The next command ends the hold at once.
"""

from math import cos

from .control import KD_NM_S_RAD, KP_NM_RAD, weight_torque
from .kinematics import ANKLE_SIGN, JOINTS, LEGS
from .posture import STAND_RAD, TORQUE_LIMIT_NM
from .quaternion import up_in_body

# Long against the 1 ms of the loop, so that a busy machine does not trigger it; short against a fall: in 20
# ms an unsupported body drops by 2 mm.
TIMEOUT_NS = 20_000_000
RAMP_S = 0.5
MIN_FOOT_FORCE_N = 5.0
MIN_UPRIGHT = cos(0.35)  # cosine of the tilt


class SafeHold:
    """Selects the torques of each physics step: the controller's, or its own.

    Times are those of one clock, in ns. Simulated time is the natural one: if the simulator itself is
    stopped, the robot does not fall meanwhile, and need not be held.
    """

    def __init__(self, timeout_ns=TIMEOUT_NS):
        self.timeout_ns = timeout_ns
        self.safe_pose = list(STAND_RAD)  # rad: the target pose of a hold
        self.trips = 0  # how often the hold took over
        self._command = None
        self._command_ns = None
        self._trip_ns = None
        self._trip_pose = None
        self._torques = [0.0] * JOINTS

    @property
    def active(self) -> bool:
        """True while the robot is held, False while it follows commands."""
        return self._trip_ns is not None

    def command(self, time_ns, torques):
        """Sets a command ([8] N m) of `time_ns`, in effect until the next one or the timeout."""
        self._command, self._command_ns = list(torques), time_ns
        self._trip_ns = None

    def trip(self, time_ns, joint_positions):
        """Takes over now; for a transport that detects by itself that the driver is gone."""
        if self._trip_ns is None:
            self.trips += 1
            self._trip_ns, self._trip_pose = time_ns, list(joint_positions)

    def torques(self, time_ns, joint_positions, joint_velocities, contact_forces, orientation):
        """Torques ([8] N m) for the step that begins at `time_ns`; the arguments are sequences of floats."""
        if self._trip_ns is None:
            if self._command is not None and time_ns - self._command_ns <= self.timeout_ns:
                self._remember(joint_positions, contact_forces, orientation)
                return self._command
            self.trip(time_ns, joint_positions)
        return self._hold(time_ns, joint_positions, joint_velocities)

    def _remember(self, joint_positions, contact_forces, orientation):
        # Only a commanded pose counts; during a hold, the pose is not updated.
        if min(contact_forces) >= MIN_FOOT_FORCE_N and up_in_body(orientation)[2] >= MIN_UPRIGHT:
            self.safe_pose[:] = joint_positions

    def _hold(self, time_ns, joint_positions, joint_velocities):
        blend = min(1.0, (time_ns - self._trip_ns) * 1e-9 / RAMP_S)
        torques = self._torques
        for joint in range(JOINTS):
            start = self._trip_pose[joint]
            target = start + blend * (self.safe_pose[joint] - start)
            torques[joint] = KP_NM_RAD * (target - joint_positions[joint]) - KD_NM_S_RAD * joint_velocities[joint]
        for leg in range(LEGS):
            ankle, sign = 2 * leg + 1, ANKLE_SIGN[leg]
            torques[ankle] += sign * weight_torque(sign * joint_positions[ankle])
        for joint in range(JOINTS):
            torques[joint] = max(-TORQUE_LIMIT_NM, min(TORQUE_LIMIT_NM, torques[joint]))
        return torques
