"""The controller: answers each state of the robot with torques, and so closes the loop at 1 kHz.

It is the one that is killed in the middle of the demo. DEMO_BREAK=controller makes it join and never say a word.
DEMO_WITHOUT_AUTHORITY=1 makes the torques a topic: a re-run has nobody who gives authority.
Torques are a command, for which it has authority while nobody of a higher priority wants the motors to stand still.
"""

import os
import time

import rnet
from robot.control import Controller

from .messages import DriveCommand, JointTorques, RobotState, StopEvent
from .process import Process, newest

# A controller that has seen no state for so long starts anew: the actuators are held, the joints are elsewhere.
GAP_NS = 100_000_000
WAIT_S = 0.05  # how often to look whether the demo is over while no state comes
PRIORITY = 10  # the safety monitor's is 100
ASK_S = 0.1  # how often to ask for authority


class Motors:
    """The sending end of the torques. Authority may be lost at any time, and is then asked for again."""

    def __init__(self, node):
        self._node, self._driver, self._sent, self._ask_at = node, None, 0, 0.0
        # In a re-run nobody gives authority: calls are not replayed. What is compared is what is sent.
        if os.environ.get("DEMO_WITHOUT_AUTHORITY"):
            self._driver = node.publisher("/robot/torque", JointTorques, reliable=True)

    def take(self):
        """Whether there is authority."""
        if self._driver is None and time.monotonic() >= self._ask_at:
            try:
                self._driver = self._node.drive("/robot/torque", JointTorques, priority=PRIORITY)
                self._sent = 0
            except (rnet.errors.NotInForceError, rnet.WaitTimeoutError, rnet.ServerLostError):
                pass  # somebody has it who may stop the robot, or the motors cannot be reached
            self._ask_at = time.monotonic() + ASK_S
        return self._driver is not None

    def send(self, torques):
        """Whether they were sent."""
        try:
            self._driver.send(torques)
        except rnet.errors.NotInForceError:
            self._driver.close()
            self._driver = None
            return False
        self._sent += 1
        return True

    def sent(self):
        """What was sent, by topic, with the authority that there is now."""
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
