"""Driver of the left gripper, first version: publishes its state ten times a second."""

import contextlib
import time

import rnet

robot = rnet.load_proto("proto/v1/robot.proto")
gripper = rnet.Node("left_gripper").publisher("/gripper", robot.Gripper)
with contextlib.suppress(KeyboardInterrupt):
    while True:
        gripper.send(
            robot.Gripper(
                name="left", mode=robot.Mode.MODE_OPEN, width=0.08, force=0.5, vendor_code=17
            )
        )
        time.sleep(0.1)  # sleep: the period of the driver
