"""The controller: answers each state of the robot with torques, which closes the loop at 1 kHz.

It is killed in the middle of the demo. DEMO_BREAK=controller makes it join without sending.
DEMO_WITHOUT_AUTHORITY=1 makes the torques a topic, because a re-run has no receiver that gives authority.
Torques are a command; the controller has authority while no driver with a higher priority stops the motors.
"""

import os
import time

import rnet
from robot.control import Controller

from .messages import DriveCommand, JointTorques, RobotState, StopEvent
from .process import Process, newest

# After a gap of this length in the states, a controller restarts its gait: the actuators hold, and the joints
# have moved.
GAP_NS = 100_000_000
WAIT_S = 0.05  # how often to check whether the demo is over while no state arrives
PRIORITY = 10  # the safety monitor's is 100
ASK_S = 0.1  # how often to request authority


class Motors:
    """Sends the torques. Authority may be lost at any time, and is then requested again."""

    def __init__(self, node):
        self._node, self._driver, self._sent, self._ask_at = node, None, 0, 0.0
        # A re-run does not give authority, because calls are not replayed. The sent torques are compared.
        if os.environ.get("DEMO_WITHOUT_AUTHORITY"):
            self._driver = node.publisher("/robot/torque", JointTorques, reliable=True)

    def take(self):
        """Whether it has authority."""
        if self._driver is None and time.monotonic() >= self._ask_at:
            try:
                self._driver = self._node.drive("/robot/torque", JointTorques, priority=PRIORITY)
                self._sent = 0
            except (rnet.errors.NotInForceError, rnet.WaitTimeoutError, rnet.ServerLostError):
                pass  # a driver with a higher priority has it, or the motors are unreachable
            self._ask_at = time.monotonic() + ASK_S
        return self._driver is not None

    def send(self, torques):
        """Sends torques; returns whether they were sent."""
        try:
            self._driver.send(torques)
        except rnet.errors.NotInForceError:
            self._driver.close()
            self._driver = None
            return False
        self._sent += 1
        return True

    def sent(self):
        """Messages sent with the current authority, by topic."""
        return {"robot__torque": self._sent} if self._driver else {}


def main():
    process, controller = Process(), Controller()
    broken = os.environ.get("DEMO_BREAK") == "controller"
    drive, stopped = DriveCommand(), False

    def on_drive(command):
        nonlocal drive
        drive = command

    def on_stop(event):
        nonlocal stopped
        stopped = bool(event.active)

    process.wait_to_join()
    node = rnet.Node("controller")
    motors = Motors(node)
    states = node.subscriber("/robot/state", RobotState)
    node.subscriber("/operator/drive", DriveCommand, on=on_drive)
    node.subscriber("/safety/stop", StopEvent, on=on_stop)
    states.wait_for_publishers(1, timeout=10)
    process.joined()

    message, last_ns = JointTorques(), 0
    while not process.quiet.is_set():
        state = newest(states, WAIT_S)
        if state is None or not motors.take() or broken:
            continue
        if state.time_ns - last_ns > GAP_NS:
            controller = Controller()
        last_ns = state.time_ns
        vx, yaw = (0.0, 0.0) if stopped else (drive.vx, drive.yaw)
        torques = controller.update(state.time_ns, state.joint_positions[:], state.joint_velocities[:], vx, yaw)
        message.time_ns = state.time_ns
        message.torques[:] = torques
        message.tracking_error = controller.tracking_error_rad
        message.count += motors.send(message)

    def drain():
        while not process.stopped.is_set():
            newest(states, WAIT_S)

    process.finish(drain, **motors.sent())


if __name__ == "__main__":
    main()
