"""A camera image by MuJoCo's own renderer, without a screen.

This needs libEGL and a Mesa driver (Debian: libegl1, libegl-mesa0 and libgl1-mesa-dri, whose llvmpipe renders
in software without a GPU), or else libosmesa6. The context is created here and not by mujoco.Renderer: that
one uses the value of MUJOCO_GL when mujoco was first imported, and a wrong value makes that import fail.
"""

import ctypes.util

import mujoco
import numpy as np

from . import view
from .kinematics import JOINTS
from .model import load_model


def _gl_context(width_px, height_px):
    """A context without a window, and the name of its platform; the first with an installed library.

    PyOpenGL binds itself to one platform for the life of the process, so trying others is impossible.
    """
    if ctypes.util.find_library("EGL"):
        from mujoco.egl import GLContext

        return GLContext(width_px, height_px), "egl"
    if ctypes.util.find_library("OSMesa"):
        from mujoco.osmesa import GLContext

        return GLContext(width_px, height_px), "osmesa"
    raise RuntimeError("neither libEGL nor libOSMesa is installed")


class OpenGl:
    """Draws frames; belongs to the thread that created it. `platform` is "egl" or "osmesa"."""

    def __init__(self):
        self._context, self.platform = _gl_context(view.WIDTH_PX, view.HEIGHT_PX)
        self._context.make_current()
        self._model = load_model()
        self._model.vis.global_.fovy = view.FOV_Y_DEG
        self._data = mujoco.MjData(self._model)
        self._scene = mujoco.MjvScene(self._model, maxgeom=100)
        # Shadows cost three quarters of a frame in software rendering.
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        self._option = mujoco.MjvOption()
        self._renderer = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._renderer)
        self._rect = mujoco.MjrRect(0, 0, view.WIDTH_PX, view.HEIGHT_PX)
        self._camera = mujoco.MjvCamera()
        self._camera.type = mujoco.mjtCamera.mjCAMERA_FREE
        self._camera.distance = view.DISTANCE_M
        self._camera.azimuth, self._camera.elevation = view.AZIMUTH_DEG, view.ELEVATION_DEG
        self._bottom_up = np.empty((view.HEIGHT_PX, view.WIDTH_PX, 3), np.uint8)

    def render(self, out, base_position, orientation, joint_positions):
        """Fills `out` (480 x 640 x 3, uint8, RGB); m, x y z w, rad."""
        model, data = self._model, self._data
        x, y, z, w = orientation
        data.qpos[0:3] = base_position
        data.qpos[3:7] = (w, x, y, z)
        data.qpos[7 : 7 + JOINTS] = joint_positions
        # Everything that drawing needs, without dynamics.
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_camlight(model, data)
        self._camera.lookat[:] = (base_position[0], base_position[1], view.LOOK_AT_HEIGHT_M)
        self._context.make_current()
        mujoco.mjv_updateScene(model, data, self._option, None, self._camera, mujoco.mjtCatBit.mjCAT_ALL, self._scene)
        mujoco.mjr_render(self._rect, self._scene, self._renderer)
        mujoco.mjr_readPixels(self._bottom_up, None, self._rect, self._renderer)
        out[:] = self._bottom_up[::-1]  # OpenGL's first row is the lowest

    def close(self):
        """Frees the context."""
        self._context.make_current()
        self._renderer.free()
        self._context.free()
