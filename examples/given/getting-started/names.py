"""A foot, whose force is read endlessly."""

import ctypes

import rnet


class Force(ctypes.Structure):
    _fields_ = [("newton", ctypes.c_double * 3), ("time_ns", ctypes.c_int64)]


foot = rnet.Node("foot")
forces = foot.publisher("/foot/force", Force)
standing = Force((0.0, 0.0, 120.5), 0)
timer = foot.timer(0.02, lambda tick: forces.send(standing))
print = until(2, print)  # noqa: A001
