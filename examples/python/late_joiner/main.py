"""A map for subscribers that join later.

The map maker publishes three revisions before any node subscribes. `transient_local=1` keeps the last
one, and a planner that joins later receives it at once.
"""

import ctypes

import rnet

SIDE = 64


class Map(ctypes.Structure):
    """An occupancy grid; the same type as in the Rust example, which may be the other side."""

    _fields_ = [
        ("revision", ctypes.c_uint32),
        # Side length of a cell, in m.
        ("resolution_m", ctypes.c_float),
        # Row by row: -1 unknown, 0 free, 100 occupied.
        ("cells", ctypes.c_int8 * SIDE * SIDE),
    ]


def main() -> None:
    maps = rnet.Node("mapper").publisher("/map", Map, transient_local=1)
    grid = Map(resolution_m=0.05)
    ctypes.memset(grid.cells, -1, ctypes.sizeof(grid.cells))
    for row in range(3):
        grid.revision += 1
        ctypes.memset(grid.cells[row], 0, SIDE)
        maps.send(grid)

    received = rnet.Node("planner").subscriber("/map", Map, transient_local=True).recv()
    free = sum(cell == 0 for row in received.cells for cell in row)
    print(f"map revision {received.revision}: {free} free cells of {received.resolution_m:.2f} m")


main()
