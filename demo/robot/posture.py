"""Constants of simulation, controller and safe hold: the standing pose, the weight, the motors' limit."""

from math import radians, sin

from .kinematics import ANKLE_SIGN, FOOT_RADIUS_M, LEGS, SHIN_M

# At 45 degrees the ground would have to push sideways as hard as upwards to hold a limp leg, and its friction
# is below 1: so the robot stands only while its motors work.
STAND_BEND_RAD = radians(45.0)
STAND_RAD = tuple(angle for leg in range(LEGS) for angle in (0.0, ANKLE_SIGN[leg] * STAND_BEND_RAD))
STAND_HEIGHT_M = FOOT_RADIUS_M + SHIN_M * sin(STAND_BEND_RAD)

BODY_WEIGHT_N = 18.2 * 9.81  # of the model that `model.load_model` creates; a test compares them
TORQUE_LIMIT_NM = 60.0
