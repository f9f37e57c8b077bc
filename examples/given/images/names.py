"""A camera, a lidar, display and computation functions, and a node that sends the page's messages."""

import types

import numpy as np
import rnet
from rnet.msgs import Image, PointCloud, Tensor

feeder = rnet.Node("feeder")
cameras = feeder.publisher("/camera", Image)
lidars = feeder.publisher("/lidar", PointCloud)
networks = feeder.publisher("/features", Tensor)
PIXELS = np.arange(480 * 640 * 3, dtype=np.uint8).reshape(480, 640, 3)
xyz = np.zeros((100, 3), np.float32)
intensity = np.zeros(100, np.float32)
points = np.zeros(100, [("x", "f4"), ("y", "f4"), ("z", "f4"), ("ring", "u2")])
features = np.ones((2, 3), np.float32)


def feed(_: object) -> None:
    cameras.send(Image.from_array(PIXELS, "rgb8"))
    lidars.send(PointCloud.from_array(points))
    networks.send(Tensor.from_array(features))


feeding = feeder.timer(0.02, feed)


def show_the_camera(array: np.ndarray, encoding: str, timestamp_ns: int) -> None:
    assert (array.shape, encoding) == ((480, 640, 3), "rgb8")


def see(ring: np.ndarray, near: np.ndarray) -> None:
    assert ring.dtype == np.uint16
    assert near.shape == (100, 3)


def compute(array: np.ndarray) -> None:
    assert array.shape == (2, 3)


camera = types.SimpleNamespace(
    time_ns=1, read=until(3, lambda: PIXELS), read_into=lambda array: array.__setitem__(..., PIXELS)
)
driver = types.SimpleNamespace(fill=lambda cloud: cloud["ring"].fill(1))
torch = types.SimpleNamespace(from_numpy=until(2, compute))
show = until(2, show_the_camera)
see = until(2, see)
