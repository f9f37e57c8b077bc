"""The state estimator: the body's pose, from the sensors. It reads every state, because it integrates."""

import rnet
from robot.estimator import Estimator

from .messages import BodyEstimate, RobotState
from .process import STALL_S, Process, next_one

WAIT_S = 0.05  # how often to check whether the demo is over while no state arrives


def main():
    process, estimator = Process(), Estimator()
    process.wait_to_join()
    node = rnet.Node("estimator")
    publisher = node.publisher("/robot/estimate", BodyEstimate, reliable=True, on_full=rnet.Detach(STALL_S))
    states = node.subscriber("/robot/state", RobotState)
    states.wait_for_publishers(1, timeout=10)
    process.joined()

    message = BodyEstimate()
    while not process.quiet.is_set():
        state = next_one(states, WAIT_S)
        if state is None:
            continue
        estimator.update(
            state.time_ns,
            state.angular_velocity[:],
            state.acceleration[:],
            state.joint_positions[:],
            state.joint_velocities[:],
            state.contact_forces[:],
        )
        message.time_ns = state.time_ns
        message.position[:] = estimator.position
        message.velocity[:] = estimator.velocity
        message.orientation[:] = estimator.orientation
        message.feet_loaded = estimator.feet_loaded
        publisher.send(message)
        message.count += 1

    def drain():
        while not process.stopped.is_set():
            next_one(states, WAIT_S)

    process.finish(drain, robot__estimate=message.count)


if __name__ == "__main__":
    main()
