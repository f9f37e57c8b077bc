"""The battery: reads the motors and publishes its state 20 times a second. DEMO_BREAK=battery: it never
joins.
"""

import os
import sys

import rnet
from robot.battery import Battery

from .messages import BatteryState, RobotState
from .process import STALL_S, Process, newest

PERIOD_S = 0.05


def main():
    process, battery = Process(), Battery()
    process.wait_to_join()
    if os.environ.get("DEMO_BREAK") == "battery":
        sys.exit("DEMO_BREAK=battery: this node exits instead of joining")
    node = rnet.Node("battery")
    publisher = node.publisher("/battery/state", BatteryState, reliable=True, on_full=rnet.Detach(STALL_S))
    states = node.subscriber("/robot/state", RobotState)
    states.wait_for_publishers(1, timeout=10)
    process.joined()

    message = BatteryState()
    while not process.quiet.wait(PERIOD_S):
        state = newest(states, 0)
        if state is not None:
            battery.update(PERIOD_S, state.torques[:], state.joint_velocities[:])
        message.voltage, message.current, message.charge = battery.voltage, battery.current, battery.charge
        publisher.send(message)
        message.count += 1
    process.finish(battery__state=message.count)


if __name__ == "__main__":
    main()
