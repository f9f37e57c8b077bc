"""The messages of the demo, the same as in `nodes-rust/src/messages.rs` and `nodes-cpp/messages.hpp`.

rnet compares name, size and fields of both sides when nodes meet, so a difference between the files is
detected. SI units; vectors of eight are ordered by leg, hip then ankle; quaternions
are x y z w. `count` numbers a sender's messages from 0: with it the logger detects losses independently of
rnet. `time_ns` is simulated time.
"""

from ctypes import Structure, c_double, c_float, c_int64, c_uint32, c_uint64

IMAGE_SHAPE = (480, 640, 3)
IMAGE_LEN_BYTES = 480 * 640 * 3


class RobotState(Structure):
    """What the robot's sensors measure, at 1 kHz."""

    _fields_ = [
        ("count", c_uint64),
        ("time_ns", c_int64),
        ("joint_positions", c_double * 8),  # rad
        ("joint_velocities", c_double * 8),  # rad/s
        ("torques", c_double * 8),  # N m, applied in the last step
        ("contact_forces", c_double * 4),  # N, under each foot
        ("orientation", c_double * 4),  # body to world
        ("angular_velocity", c_double * 3),  # rad/s, body frame
        ("acceleration", c_double * 3),  # m/s^2, body frame, specific force
    ]


class JointTorques(Structure):
    """The controller's answer to a RobotState."""

    _fields_ = [
        ("count", c_uint64),
        ("time_ns", c_int64),  # of the answered state
        ("torques", c_double * 8),  # N m
        ("tracking_error", c_double),  # rad, rms over the joints
    ]


class BodyPose(Structure):
    """True pose of the robot, at 30 Hz: the shutter of the camera."""

    _fields_ = [
        ("count", c_uint64),
        ("time_ns", c_int64),
        ("position", c_double * 3),  # m
        ("orientation", c_double * 4),
        ("joint_positions", c_double * 8),  # rad
    ]


class BodyEstimate(Structure):
    """Estimated pose of the robot, at 1 kHz."""

    _fields_ = [
        ("count", c_uint64),
        ("time_ns", c_int64),  # of the state it was computed from
        ("position", c_double * 3),  # m
        ("velocity", c_double * 3),  # m/s, world frame
        ("orientation", c_double * 4),
        ("feet_loaded", c_uint64),
    ]


class FootForces(Structure):
    """What the load cells in the feet measure, at 10 kHz."""

    _fields_ = [
        ("count", c_uint64),
        ("sampled_ns", c_uint64),  # CLOCK_MONOTONIC
        ("force", c_float * 4),  # N
    ]


class DriveCommand(Structure):
    """The operator's command."""

    _fields_ = [
        ("count", c_uint64),
        ("vx", c_double),  # m/s, forward
        ("yaw", c_double),  # rad/s, to the left
    ]


class BatteryState(Structure):
    """The battery, at 20 Hz."""

    _fields_ = [
        ("count", c_uint64),
        ("voltage", c_double),  # V
        ("current", c_double),  # A, positive out of the battery
        ("charge", c_double),  # 0 to 1
    ]


STOP_CONTROLLER_SILENT, STOP_FORCE, STOP_TILT, STOP_ORDERED = 1, 2, 3, 4


class StopEvent(Structure):
    """A stop of the safety monitor, or its release."""

    _fields_ = [
        ("count", c_uint64),
        ("raised_ns", c_uint64),  # CLOCK_MONOTONIC of the decision
        ("active", c_uint32),  # 1: stop; 0: released
        ("reason", c_uint32),  # one of STOP_...
    ]
