"""The controller: answers each state of the robot with torques, and so closes the loop at 1 kHz.

It is the one that is killed in the middle of the demo. DEMO_BREAK=controller makes it join and never say a word.
"""

import os

import rnet
from robot.control import Controller

from .messages import DriveCommand, JointTorques, RobotState, StopEvent
from .process import STALL_S, Process, newest

# A controller that has seen no state for so long starts anew: the actuators are held, the joints are elsewhere.
GAP_NS = 100_000_000
WAIT_S = 0.05  # how often to look whether the demo is over while no state comes


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
    publisher = node.publisher("/robot/torque", JointTorques, reliable=True, on_full=rnet.Detach(STALL_S))
    states = node.subscribe("/robot/state", RobotState)
    node.subscribe("/operator/drive", DriveCommand, on=on_drive)
    node.subscribe("/safety/stop", StopEvent, on=on_stop)
    states.wait_for_publishers(1, timeout=10)
    process.joined()

    message, last_ns = JointTorques(), 0
    while not process.quiet.is_set():
        state = newest(states, WAIT_S)
        if state is None or broken:
            continue
        if state.time_ns - last_ns > GAP_NS:
            controller = Controller()
        last_ns = state.time_ns
        vx, yaw = (0.0, 0.0) if stopped else (drive.vx, drive.yaw)
        torques = controller.update(state.time_ns, state.joint_positions[:], state.joint_velocities[:], vx, yaw)
        message.time_ns = state.time_ns
        message.torques[:] = torques
        message.tracking_error = controller.tracking_error_rad
        publisher.send(message)
        message.count += 1

    def drain():
        while not process.stopped.is_set():
            newest(states, WAIT_S)

    process.finish(drain, robot__torque=message.count)


if __name__ == "__main__":
    main()
