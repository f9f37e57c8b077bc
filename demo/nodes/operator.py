"""The operator: drives the robot around with 20 commands a second, and sends zero during a stop."""

import time

import rnet

from .messages import BatteryState, BodyEstimate, DriveCommand, StopEvent
from .process import STALL_S, Process

PERIOD_S = 0.05
# (seconds, m/s, rad/s), repeated.
ROUTE = ((2.0, 0.15, 0.0), (2.0, 0.15, 0.2), (2.0, 0.1, -0.2), (1.0, 0.0, 0.3))


def command_at(elapsed_s):
    """(vx, yaw) of the route at a time."""
    elapsed_s %= sum(leg[0] for leg in ROUTE)
    for seconds, vx, yaw in ROUTE:
        if elapsed_s < seconds:
            return vx, yaw
        elapsed_s -= seconds
    return 0.0, 0.0


def main():
    process = Process()
    stopped, charge = False, 1.0

    def on_stop(event):
        nonlocal stopped
        stopped = bool(event.active)

    def on_battery(battery):
        nonlocal charge
        charge = battery.charge

    process.wait_to_join()
    node = rnet.Node("operator")
    publisher = node.publisher("/operator/drive", DriveCommand, reliable=True, on_full=rnet.Detach(STALL_S))
    estimates = node.subscriber("/robot/estimate", BodyEstimate)
    node.subscriber("/safety/stop", StopEvent, on=on_stop)
    node.subscriber("/battery/state", BatteryState, on=on_battery)
    estimates.wait_for_publishers(1, timeout=10)
    process.joined()
    estimates.close()

    message, begin = DriveCommand(), time.monotonic()
    while not process.quiet.wait(PERIOD_S):
        halt = stopped or charge < 0.05
        message.vx, message.yaw = (0.0, 0.0) if halt else command_at(time.monotonic() - begin)
        publisher.send(message)
        message.count += 1
    process.finish(operator__drive=message.count)


if __name__ == "__main__":
    main()
