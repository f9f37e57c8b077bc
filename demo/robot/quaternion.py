"""Unit quaternions as plain floats, in the order x y z w.

A quaternion here always rotates body coordinates into world coordinates. Plain floats and not numpy: for four
numbers the overhead of one numpy call exceeds the whole computation.
"""

from math import asin, atan2, sqrt


def rotate(q, v):
    """Vector `v` (3 floats, body frame) expressed in the world frame."""
    x, y, z, w = q
    vx, vy, vz = v
    # v + w t + u x t with t = 2 u x v: fifteen products fewer than q v q*.
    tx, ty, tz = 2 * (y * vz - z * vy), 2 * (z * vx - x * vz), 2 * (x * vy - y * vx)
    return (
        vx + w * tx + y * tz - z * ty,
        vy + w * ty + z * tx - x * tz,
        vz + w * tz + x * ty - y * tx,
    )


def up_in_body(q):
    """The world's upward unit vector, expressed in the body frame."""
    x, y, z, w = q
    return (2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z)


def integrate(q, omega, dt_s):
    """`q` rotated for `dt_s` by the body-frame angular velocity `omega` (rad/s); the result has unit norm.

    First order in the angle: at 1 kHz and 5 rad/s the error is below 1e-8 rad per step.
    """
    x, y, z, w = q
    hx, hy, hz = (0.5 * dt_s * o for o in omega)
    nx = x + w * hx + y * hz - z * hy
    ny = y + w * hy + z * hx - x * hz
    nz = z + w * hz + x * hy - y * hx
    nw = w - x * hx - y * hy - z * hz
    scale = 1.0 / sqrt(nx * nx + ny * ny + nz * nz + nw * nw)
    return (nx * scale, ny * scale, nz * scale, nw * scale)


def roll_pitch_yaw(q):
    """Fixed-axis roll, pitch and yaw (rad), as in REP-103."""
    x, y, z, w = q
    return (
        atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)),
        asin(max(-1.0, min(1.0, 2 * (w * y - z * x)))),
        atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)),
    )
