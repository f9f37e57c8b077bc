"""Driver of a third gripper, with an incompatible change of the type."""

import contextlib
import time

import rnet

robot = rnet.load_proto("proto/v3/robot.proto")
gripper = rnet.Node("spare_gripper").publisher("/gripper", robot.Gripper)
with contextlib.suppress(rnet.IncompatibleTypeError, rnet.WaitTimeoutError):
    gripper.wait_for_subscribers(timeout=10)  # Its node logs the incompatible ones; the others are served.
with contextlib.suppress(KeyboardInterrupt):
    while True:
        gripper.send(robot.Gripper(name="spare", opening=0.05, force=1.0))
        time.sleep(0.1)  # sleep: the period of the driver
