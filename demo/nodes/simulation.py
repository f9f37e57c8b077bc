"""The simulation: runs the physics at 1 kHz of real time, in place of a robot's motors and sensors.

Each millisecond it sends the sensor values, waits for the controller's answer until the next step is due, and
applies it. The torques are a command: the driver with authority moves the motors. This is the controller, or
the safety monitor, which sends nothing to stop them. If no torques arrive within the deadline, the safe hold
beside the motors takes over.
"""

import queue
import time

import numpy as np
import rnet
from judge import WINDOW_NS
from robot.model import STEP_NS, Quadruped
from robot.safe_hold import TIMEOUT_NS, SafeHold
from robot.verdict import Monitor

from .messages import BodyPose, JointTorques, RobotState
from .process import STALL_S, Process

SHUTTER_HZ = 30
# After a longer delay, the simulation continues from now instead of catching up, because no controller could
# answer.
MAX_BEHIND_NS = 5_000_000


class Simulation:
    def __init__(self):
        self.robot, self.hold, self.monitor = Quadruped(), SafeHold(), Monitor(WINDOW_NS)
        self.process = Process()
        self.process.wait_to_join()
        self.node = rnet.Node("simulation")
        self.state_publisher = self.node.publisher(
            "/robot/state", RobotState, reliable=True, on_full=rnet.Detach(STALL_S)
        )
        self.pose_publisher = self.node.publisher("/camera/shutter", BodyPose)
        # From the command's thread: torques of the driver in force, or why there are none.
        self.said = queue.SimpleQueue()
        self.command = self.node.command(
            "/robot/torque", JointTorques, self.said.put, deadline=TIMEOUT_NS * 1e-9, fallback=self.said.put
        )
        self.process.joined()
        self.state, self.pose = RobotState(), BodyPose()
        # The messages' doubles as arrays, which are several times faster to fill than ctypes fields.
        self.state_values = np.frombuffer(self.state, np.float64, offset=RobotState.joint_positions.offset)
        self.pose_values = np.frombuffer(self.pose, np.float64, offset=BodyPose.position.offset)
        self.tracking_error = 0.0
        self.driven = False
        self.round_trips_ns = []
        self.late = 0

    def run(self):
        next_frame, sent_ns, due_ns = 0, 0, time.monotonic_ns()
        begin_ns = due_ns
        while not self.process.quiet.is_set():
            self._send_state()
            sent_ns = time.monotonic_ns()
            if self.robot.time_ns * SHUTTER_HZ >= next_frame * 1_000_000_000:
                next_frame += 1
                self._send_pose()
            due_ns += STEP_NS
            if sent_ns > due_ns + MAX_BEHIND_NS:
                self.late += 1
                due_ns = sent_ns
            self._wait_for_answer(sent_ns, due_ns)
            rest_ns = due_ns - time.monotonic_ns()
            if rest_ns > 0:
                time.sleep(rest_ns * 1e-9)
            self._step()
        self._report_loop((time.monotonic_ns() - begin_ns) * 1e-9)

    def _send_state(self):
        state, robot, values = self.state, self.robot, self.state_values
        state.time_ns = robot.time_ns
        values[0:8] = robot.joint_positions
        values[8:16] = robot.joint_velocities
        values[24:28] = robot.contact_forces
        imu = robot.imu
        values[28:32] = imu.orientation
        values[32:35] = imu.angular_velocity
        values[35:38] = imu.acceleration
        self.state_publisher.send(state)
        state.count += 1

    def _send_pose(self):
        pose, robot, values = self.pose, self.robot, self.pose_values
        pose.time_ns = robot.time_ns
        values[0:3] = robot.base_position
        values[3:7] = robot.imu.orientation
        values[7:15] = robot.joint_positions
        self.pose_publisher.send(pose)
        pose.count += 1

    def _wait_for_answer(self, sent_ns, due_ns):
        """Reads torques until those for the current state arrive or the next step is due."""
        while True:
            try:
                said = self.said.get(timeout=max(0, due_ns - time.monotonic_ns()) * 1e-9)
            except queue.Empty:
                return
            if not isinstance(said, JointTorques):
                self.hold.trip(self.robot.time_ns, self.state_values[0:8].tolist())
                continue
            self._command(said)
            if said.time_ns == self.robot.time_ns:
                self.round_trips_ns.append(time.monotonic_ns() - sent_ns)
                return

    def _command(self, torques):
        # A stale answer, as a link delivers it after an outage, does not match the robot's current state.
        if self.robot.time_ns - torques.time_ns <= TIMEOUT_NS:
            self.hold.command(self.robot.time_ns, torques.torques[:])
            self.tracking_error = torques.tracking_error

    def _step(self):
        robot, hold, values = self.robot, self.hold, self.state_values
        numbers = values.tolist()
        torques = hold.torques(robot.time_ns, numbers[0:8], numbers[8:16], numbers[24:28], numbers[28:32])
        values[16:24] = torques
        robot.step(torques)
        if self.driven == hold.active:
            self.driven = not hold.active
            self.process.report(
                "driven", at_ns=time.monotonic_ns(), time_ns=robot.time_ns, by_controller=self.driven
            )
        verdict = self.monitor.observe(
            robot.time_ns,
            float(robot.base_position[2]),
            robot.imu.orientation.tolist(),
            numbers[8:16],
            tracking_error_rad=self.tracking_error if self.driven else None,
            held=hold.active,
        )
        if verdict:
            self._report_verdict(verdict)

    def _report_verdict(self, verdict):
        error = verdict.tracking_error_rad
        self.process.report(
            "verdict",
            at_ns=time.monotonic_ns(),
            time_ns=verdict.time_ns,
            state=verdict.state.value,
            min_height_m=verdict.min_height_m,
            max_tilt_rad=verdict.max_tilt_rad,
            tracking_error_rad=None if error != error else error,
            joint_speed_rad_s=verdict.joint_speed_rad_s,
            driven=verdict.driven,
            held=verdict.held,
        )

    def _report_loop(self, seconds):
        trips_us = np.array(self.round_trips_ns or [0]) * 1e-3
        p50, p99, p999 = np.percentile(trips_us, (50, 99, 99.9)).tolist()
        self.process.report(
            "loop",
            rate_hz=self.state.count / seconds,
            answered_in_time=len(self.round_trips_ns) / max(1, self.state.count),
            holds=self.hold.trips,
            held_up=self.late,
            round_trip_us={"p50": p50, "p99": p99, "p999": p999, "max": float(trips_us.max())},
        )


def main():
    simulation = Simulation()
    simulation.run()
    sent = {"robot__state": simulation.state.count, "camera__shutter": simulation.pose.count}
    simulation.process.finish(**sent)


if __name__ == "__main__":
    main()
