"""The pose of the demo's camera: beside and slightly above the robot, moving along without turning.

Both renderers (camera.py with OpenGL, drawing.py without) use this view, so that their pictures match.
"""

from math import cos, radians, sin, tan

WIDTH_PX, HEIGHT_PX = 640, 480
FOV_Y_DEG = 45.0
DISTANCE_M = 3.0
AZIMUTH_DEG, ELEVATION_DEG = 125.0, -18.0  # of the line of sight, with MuJoCo's convention
LOOK_AT_HEIGHT_M = 0.3  # the target point is above or below the torso at this height

FOCAL_PX = 0.5 * HEIGHT_PX / tan(radians(0.5 * FOV_Y_DEG))
_AZ, _EL = radians(AZIMUTH_DEG), radians(ELEVATION_DEG)
# The camera's axes in the world frame.
FORWARD = (cos(_EL) * cos(_AZ), cos(_EL) * sin(_AZ), sin(_EL))
RIGHT = (sin(_AZ), -cos(_AZ), 0.0)
UP = (-sin(_EL) * cos(_AZ), -sin(_EL) * sin(_AZ), cos(_EL))
# The camera, relative to the point on the floor under the torso.
POSITION = (-DISTANCE_M * FORWARD[0], -DISTANCE_M * FORWARD[1], LOOK_AT_HEIGHT_M - DISTANCE_M * FORWARD[2])


def project(point):
    """Column and row (px, from the top left) and depth (m) of a point relative to the floor under the torso (m)."""
    dx, dy, dz = point[0] - POSITION[0], point[1] - POSITION[1], point[2] - POSITION[2]
    depth = dx * FORWARD[0] + dy * FORWARD[1] + dz * FORWARD[2]
    across = dx * RIGHT[0] + dy * RIGHT[1] + dz * RIGHT[2]
    above = dx * UP[0] + dy * UP[1] + dz * UP[2]
    return 0.5 * WIDTH_PX + FOCAL_PX * across / depth, 0.5 * HEIGHT_PX - FOCAL_PX * above / depth, depth
