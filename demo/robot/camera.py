"""The camera: fills a caller's 640 x 480 RGB buffer with a picture of the robot in a given state.

It takes the state as arguments and shares nothing with the simulator, so it can be a separate node. The
picture comes from MuJoCo's OpenGL renderer (opengl.py) if that works, otherwise from drawing.py; `source` is
the one used.
"""

import numpy as np

from . import view
from .drawing import Drawing

FRAME_SHAPE = (view.HEIGHT_PX, view.WIDTH_PX, 3)


class Camera:
    """Use it only from the thread that created it: an OpenGL context belongs to a thread.

    `source`: "auto" uses OpenGL if it works, "mujoco" requires it, "synthetic" avoids it (a machine without a
    GPU renders in software, at several times the cost of the drawing). Afterwards `camera.source` is one of
    "mujoco-egl", "mujoco-osmesa" and "synthetic".
    """

    def __init__(self, source="auto"):
        if source not in ("auto", "mujoco", "synthetic"):
            raise ValueError(f"source is {source!r}, expected 'auto', 'mujoco' or 'synthetic'")
        self._backend, self.source = None, "synthetic"
        if source != "synthetic":
            try:
                from .opengl import OpenGl  # here, so that a synthetic camera needs neither MuJoCo nor OpenGL

                self._backend = OpenGl()
                self.source = f"mujoco-{self._backend.platform}"
            # PyOpenGL reports a missing library by an arbitrary exception on first use (AttributeError among
            # them).
            except Exception as error:
                if source == "mujoco":
                    raise RuntimeError(f"OpenGL does not work here: {error}") from error
        if self._backend is None:
            self._backend = Drawing()

    def render(self, out, base_position, orientation, joint_positions):
        """Fills `out` ([480, 640, 3] uint8, RGB) for a robot in the given state (m, x y z w, rad)."""
        if out.shape != FRAME_SHAPE or out.dtype != np.uint8:
            raise ValueError(f"out is {out.dtype} {out.shape}, expected uint8 {FRAME_SHAPE}")
        self._backend.render(out, base_position, orientation, joint_positions)

    def close(self):
        """Frees the OpenGL context; `render` must not be called afterwards."""
        self._backend.close()
        self._backend = None
