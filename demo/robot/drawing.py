"""A camera image drawn with numpy alone, for machines without OpenGL: sky, tiled floor, torso and legs.

Everything independent of the robot is computed once: the sky, and for each floor pixel its position in the
world. Per frame, the floor is one shift and one exclusive-or of those positions, and each limb is a capsule
that is filled within its bounding box. A frame takes about 2 ms, while software OpenGL takes 11 to 27 ms.
"""

import numpy as np

from . import view
from .kinematics import FOOT_RADIUS_M, LEGS, leg_points
from .quaternion import rotate

SKY_TOP, SKY_BOTTOM = (70, 120, 190), (205, 220, 235)
TILES = ((150, 160, 150), (105, 118, 108))
TORSO, THIGH, SHIN = (210, 140, 60), (225, 175, 95), (200, 155, 110)
TORSO_RADIUS_M, LIMB_RADIUS_M = 0.25, FOOT_RADIUS_M
FLOOR_LIMIT_M = 25.0  # beyond it tiles are smaller than a pixel and would flicker: one colour there

# Floor coordinates are int16 in units of 1/512 m: bit 8 then alternates every half metre, which is a tile,
# and the wrap-around at 128 m is a whole number of tiles.
_UNITS_PER_M, _TILE_BIT = 512, 8


class Drawing:
    """Draws frames; keeps the scratch arrays, so an instance belongs to one thread."""

    def __init__(self):
        rows = (0.5 * view.HEIGHT_PX - 0.5 - np.arange(view.HEIGHT_PX)) / view.FOCAL_PX
        columns = (np.arange(view.WIDTH_PX) + 0.5 - 0.5 * view.WIDTH_PX) / view.FOCAL_PX
        # The camera does not roll, so each image row has one elevation and the horizon is a row.
        fall = -(view.FORWARD[2] + rows * view.UP[2])
        range_ = np.where(fall > 1e-6, view.POSITION[2] / np.maximum(fall, 1e-6), np.inf)
        self._floor_row = int(np.argmax(range_ < FLOOR_LIMIT_M))
        horizon_row = int(np.argmax(range_ < np.inf))

        self._background = np.empty((self._floor_row, view.WIDTH_PX, 3), np.uint8)
        blend = np.linspace(0.0, 1.0, horizon_row)[:, None, None]
        self._background[:horizon_row] = (1 - blend) * np.array(SKY_TOP) + blend * np.array(SKY_BOTTOM)
        self._background[horizon_row:] = np.mean(TILES, axis=0)

        rows, range_ = rows[self._floor_row :, None], range_[self._floor_row :, None]
        self._floor = []
        for axis in (0, 1):
            ray = view.FORWARD[axis] + rows * view.UP[axis] + columns[None, :] * view.RIGHT[axis]
            place = view.POSITION[axis] + range_ * ray
            self._floor.append(np.floor(place * _UNITS_PER_M).astype(np.int64).astype(np.int16))
        self._scratch = [np.empty_like(self._floor[0]) for _ in range(2)]
        self._tiles = np.array(TILES, np.uint8)
        self._columns = np.arange(view.WIDTH_PX, dtype=np.float32)[None, :]
        self._rows = np.arange(view.HEIGHT_PX, dtype=np.float32)[:, None]

    def render(self, out, base_position, orientation, joint_positions):
        """Fills `out` (480 x 640 x 3, uint8, RGB); m, x y z w, rad."""
        out[: self._floor_row] = self._background
        self._draw_floor(out[self._floor_row :], base_position)
        # Painter's algorithm: far limbs first.
        for _, capsule in sorted(self._capsules(base_position, orientation, joint_positions), reverse=True):
            self._draw_capsule(out, *capsule)

    def close(self):
        """Nothing to free; gives the camera the same interface for both ways of drawing."""

    def _draw_floor(self, out, base_position):
        for axis in (0, 1):
            shift = round(base_position[axis] * _UNITS_PER_M) % 65536
            shift = np.int16(shift - 65536 if shift >= 32768 else shift)
            np.add(self._floor[axis], shift, out=self._scratch[axis])
        tile, other = self._scratch
        np.bitwise_xor(tile, other, out=tile)
        np.right_shift(tile, _TILE_BIT, out=tile)
        np.bitwise_and(tile, 1, out=tile)
        # Four times as fast as indexing; "clip" lets take write without a copy.
        np.take(self._tiles, tile, axis=0, out=out, mode="clip")

    @staticmethod
    def _capsules(base_position, orientation, joint_positions):
        """(depth, capsule) of each visible part; a capsule is two projected ends, a radius in px, and a colour."""

        def part(start, end, radius_m, colour):
            ends = [(x, y, z + height) for x, y, z in (rotate(orientation, start), rotate(orientation, end))]
            (x0, y0, depth0), (x1, y1, depth1) = (view.project(point) for point in ends)
            depth = 0.5 * (depth0 + depth1)
            return depth, ((x0, y0), (x1, y1), radius_m * view.FOCAL_PX / depth, colour)

        height, centre = base_position[2], (0.0, 0.0, 0.0)
        parts = [part(centre, centre, TORSO_RADIUS_M, TORSO)]
        for leg in range(LEGS):
            hip, ankle, foot = leg_points(leg, joint_positions[2 * leg], joint_positions[2 * leg + 1])
            # Only the part outside of the torso: the depth order would paint the rest over it.
            parts.append(part((0.8 * hip[0], 0.8 * hip[1], 0.0), hip, LIMB_RADIUS_M, THIGH))
            parts.append(part(hip, ankle, LIMB_RADIUS_M, THIGH))
            parts.append(part(ankle, foot, LIMB_RADIUS_M, SHIN))
        return parts

    def _draw_capsule(self, out, start, end, radius, colour):
        (x0, y0), (x1, y1) = start, end
        left, right = max(0, int(min(x0, x1) - radius)), min(view.WIDTH_PX, int(max(x0, x1) + radius) + 2)
        top, bottom = max(0, int(min(y0, y1) - radius)), min(view.HEIGHT_PX, int(max(y0, y1) + radius) + 2)
        if left >= right or top >= bottom:
            return
        dx, dy = x1 - x0, y1 - y0
        x, y = self._columns[:, left:right] - np.float32(x0), self._rows[top:bottom] - np.float32(y0)
        length2 = dx * dx + dy * dy
        along = np.clip((x * np.float32(dx) + y * np.float32(dy)) / np.float32(max(length2, 1e-6)), 0.0, 1.0)
        distance2 = (x - along * np.float32(dx)) ** 2 + (y - along * np.float32(dy)) ** 2
        distance2 /= np.float32(radius * radius)
        inside = distance2 < 1.0
        # Darker towards the edge, which makes the flat shape look round.
        shade = 1.0 - 0.55 * distance2[inside]
        out[top:bottom, left:right][inside] = shade[:, None] * np.array(colour, np.float32)
