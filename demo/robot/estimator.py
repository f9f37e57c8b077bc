"""State estimation from the IMU and the joints alone: position, orientation and velocity of the body.

- Orientation: a complementary filter (after Mahony et al., "Nonlinear complementary filters on the special
  orthogonal group", 2008). The gyro is integrated; the accelerometer, which on average points up, slowly corrects
  roll and pitch and reveals the gyro's bias. Nothing here observes yaw: it drifts with the gyro's z bias.
- Height: from the leg geometry. Loaded feet are on the floor, at height 0.
- Velocity: the contact point of a loaded foot does not move, so the body moves opposite to it.
- Position in the plane is the integral of that velocity: odometry, which drifts, here mostly because feet slip.
"""

from math import exp

from .kinematics import FOOT_RADIUS_M, LEGS, leg_points, point_velocity
from .posture import STAND_HEIGHT_M
from .quaternion import integrate, rotate, up_in_body

GRAVITY_M_S2 = 9.81
ACCELERATION_GAIN_S = 0.5  # 1/s: roll and pitch errors fade with a time constant of 2 s
BIAS_GAIN_S2 = 0.05  # 1/s^2: slightly less than the square of half the gain, so that both settle without ringing
LOADED_FOOT_N = 10.0
VELOCITY_TIME_CONSTANT_S = 0.05  # smooths the changes of stance
MAX_DT_S = 0.05


class Estimator:
    """`update` processes a sensor message; the estimate is in the attributes. All vectors are in the world
    frame.
    """

    def __init__(self):
        self.orientation = (0.0, 0.0, 0.0, 1.0)  # x y z w, body to world; starts with yaw 0
        self.position = [0.0, 0.0, STAND_HEIGHT_M]  # m
        self.velocity = [0.0, 0.0, 0.0]  # m/s
        self.gyro_bias = [0.0, 0.0, 0.0]  # rad/s, body frame
        self.feet_loaded = 0
        self._last_ns = None

    def update(self, time_ns, angular_velocity, acceleration, joint_positions, joint_velocities, contact_forces):
        """Processes a sensor message: rad/s, m/s^2 in the body frame; rad, rad/s, N; sequences of floats."""
        dt_s = 0.0 if self._last_ns is None else max(0.0, min(MAX_DT_S, (time_ns - self._last_ns) * 1e-9))
        self._last_ns = time_ns
        omega = [rate - bias for rate, bias in zip(angular_velocity, self.gyro_bias)]
        self._turn(dt_s, omega, acceleration)
        self._walk(dt_s, omega, joint_positions, joint_velocities, contact_forces)

    def _turn(self, dt_s, omega, acceleration):
        ax, ay, az = acceleration
        ux, uy, uz = up_in_body(self.orientation)
        # measured up x estimated up: the rotation, in the body frame, from one to the other. It is divided by
        # g and not by the measured length, and no sample is rejected: a step's impacts and its free fall
        # cancel in the mean, and rejecting the strong ones tilts the estimate (by 0.05 rad while walking,
        # against 0.01).
        error = [c / GRAVITY_M_S2 for c in (ay * uz - az * uy, az * ux - ax * uz, ax * uy - ay * ux)]
        corrected = list(omega)
        for axis in range(3):
            corrected[axis] += ACCELERATION_GAIN_S * error[axis]
            self.gyro_bias[axis] -= BIAS_GAIN_S2 * error[axis] * dt_s
        self.orientation = integrate(self.orientation, corrected, dt_s)

    def _walk(self, dt_s, omega, joint_positions, joint_velocities, contact_forces):
        down = [-FOOT_RADIUS_M * c for c in up_in_body(self.orientation)]
        ox, oy, oz = omega
        loaded, height = 0, 0.0
        velocity = [0.0, 0.0, 0.0]  # of the body over the floor, in the body frame
        for leg in range(LEGS):
            if contact_forces[leg] < LOADED_FOOT_N:
                continue
            loaded += 1
            hip_rad = joint_positions[2 * leg]
            hip, ankle, foot = leg_points(leg, hip_rad, joint_positions[2 * leg + 1])
            touch = [foot[axis] + down[axis] for axis in range(3)]
            height -= rotate(self.orientation, touch)[2]
            vx, vy, vz = point_velocity(
                leg, hip_rad, joint_velocities[2 * leg], joint_velocities[2 * leg + 1], hip, ankle, touch
            )
            tx, ty, tz = touch
            velocity[0] -= vx + oy * tz - oz * ty
            velocity[1] -= vy + oz * tx - ox * tz
            velocity[2] -= vz + ox * ty - oy * tx
        self.feet_loaded = loaded
        if loaded:
            mix = 1.0 - exp(-dt_s / VELOCITY_TIME_CONSTANT_S)
            for axis, speed in enumerate(rotate(self.orientation, [v / loaded for v in velocity])):
                self.velocity[axis] += mix * (speed - self.velocity[axis])
            self.position[2] = height / loaded
        self.position[0] += dt_s * self.velocity[0]
        self.position[1] += dt_s * self.velocity[1]
