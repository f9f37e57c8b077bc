"""Geometry of the legs: where hip, ankle and foot are, given the joint angles.

All four legs are alike. In the body frame (x forward, y left, z up, origin at the torso's centre) leg i leaves
the torso horizontally at azimuth a_i. The hip, at distance HIP_M, turns the leg about z by theta; the ankle, one
THIGH_M further out, bends the shin down by beta:

    u     = (cos(a + theta), sin(a + theta), 0)          the direction of the leg, from above
    hip   = HIP_M * (cos a, sin a, 0)
    ankle = hip + THIGH_M * u
    foot  = ankle + SHIN_M * (cos(beta) * u - sin(beta) * z)

ant.xml bends legs 2 and 3 by negative angles; ANKLE_SIGN hides that, so that beta > 0 is "down" everywhere.
ant.xml also calls leg 2 `front_right` although it points backwards and to the left; LEG_NAMES tells where legs are.
"""

from math import cos, pi, sin, sqrt

LEGS = 4
JOINTS = 8  # hip and ankle of each leg, leg by leg: the order of every 8-vector in this package
JOINT_NAMES = tuple(f"{part}_{leg}" for leg in (1, 2, 3, 4) for part in ("hip", "ankle"))
LEG_NAMES = ("front_left", "rear_left", "rear_right", "front_right")
LEG_AZIMUTH_RAD = (pi / 4, 3 * pi / 4, 5 * pi / 4, 7 * pi / 4)
ANKLE_SIGN = (1.0, -1.0, -1.0, 1.0)

HIP_M = 0.2 * sqrt(2)
THIGH_M = 0.2 * sqrt(2)
SHIN_M = 0.4 * sqrt(2)
FOOT_RADIUS_M = 0.08


def leg_points(leg, hip_rad, ankle_rad):
    """Hip, ankle and foot centre of `leg` (0 to 3) in the body frame (m); angles as in ant.xml (rad)."""
    azimuth = LEG_AZIMUTH_RAD[leg]
    ux, uy = cos(azimuth + hip_rad), sin(azimuth + hip_rad)
    bend = ANKLE_SIGN[leg] * ankle_rad
    hx, hy = HIP_M * cos(azimuth), HIP_M * sin(azimuth)
    ax, ay = hx + THIGH_M * ux, hy + THIGH_M * uy
    reach = SHIN_M * cos(bend)
    return (hx, hy, 0.0), (ax, ay, 0.0), (ax + reach * ux, ay + reach * uy, -SHIN_M * sin(bend))


def point_velocity(leg, hip_rad, hip_rad_s, ankle_rad_s, hip, ankle, point):
    """Velocity (m/s, body frame) of the shin's material `point` relative to the torso.

    `hip` and `ankle` are those of `leg_points`. The point need not be the foot's centre: odometry uses the
    contact point with the ground, because that one does not move while the round foot rolls over it.
    """
    azimuth = LEG_AZIMUTH_RAD[leg] + hip_rad
    bend_rad_s = ANKLE_SIGN[leg] * ankle_rad_s
    # The bend axis is (-sin, cos, 0), horizontal and across the leg.
    wx, wy = -sin(azimuth) * bend_rad_s, cos(azimuth) * bend_rad_s
    dx, dy, dz = point[0] - ankle[0], point[1] - ankle[1], point[2] - ankle[2]
    return (
        wy * dz - hip_rad_s * (point[1] - hip[1]),
        -wx * dz + hip_rad_s * (point[0] - hip[0]),
        wx * dy - wy * dx,
    )
