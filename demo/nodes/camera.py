"""The camera: on each shutter message, at 30 Hz, draws a picture of 640 x 480 x 3 bytes directly into the
memory that its subscribers read (`loan`).
"""

import time

import numpy as np
import rnet
from robot.camera import Camera

from .messages import IMAGE_LEN_BYTES, IMAGE_SHAPE, BodyPose
from .process import Process, newest

WAIT_S = 0.05  # how often to check whether the demo is over while no shutter message arrives
# Maximum cost of a picture. A software renderer would occupy the cores that the other nodes need.
MAX_RENDER_S = 0.008
TRIALS = 3


def choose_camera():
    """OpenGL if it is available and fast, otherwise the drawing."""
    camera = Camera("auto")
    if camera.source != "synthetic":
        frame, times = np.zeros(IMAGE_SHAPE, np.uint8), []
        for _ in range(TRIALS):
            begin = time.perf_counter()
            camera.render(frame, (0.0, 0.0, 0.5), (0.0, 0.0, 0.0, 1.0), [0.0] * 8)
            times.append(time.perf_counter() - begin)
        if min(times) > MAX_RENDER_S:
            camera.close()
            camera = Camera("synthetic")
    return camera


def main():
    camera = choose_camera()
    process = Process()
    process.wait_to_join()
    node = rnet.Node("camera")
    publisher = node.publisher("/camera/image")
    shutter = node.subscriber("/camera/shutter", BodyPose)
    shutter.wait_for_publishers(1, timeout=10)
    process.joined()
    process.report("source", source=camera.source)

    sent = 0
    while not process.quiet.is_set():
        pose = newest(shutter, WAIT_S)
        if pose is None:
            continue
        with publisher.loan(IMAGE_LEN_BYTES) as image:
            frame = np.frombuffer(image, np.uint8).reshape(IMAGE_SHAPE)
            camera.render(frame, pose.position[:], pose.orientation[:], pose.joint_positions[:])
            del frame  # the memory must not be used after sending
        sent += 1

    def drain():
        while not process.stopped.is_set():
            newest(shutter, WAIT_S)

    process.finish(drain, camera__image=sent)
    camera.close()


if __name__ == "__main__":
    main()
