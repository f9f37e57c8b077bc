"""Tests of the demo's robot. They run in simulated time and assert nothing about the machine's speed.

pip install mujoco gymnasium numpy pytest && pytest demo/robot
"""

from math import isnan, pi, sqrt

import mujoco
import numpy as np
import pytest

from . import kinematics, view
from .battery import Battery, motor_power
from .camera import FRAME_SHAPE, Camera
from .control import START_S, Controller
from .estimator import Estimator
from .model import STEP_NS, Quadruped
from .posture import BODY_WEIGHT_N, STAND_HEIGHT_M, STAND_RAD, TORQUE_LIMIT_NM
from .quaternion import integrate, roll_pitch_yaw, rotate, up_in_body
from .safe_hold import MIN_FOOT_FORCE_N, TIMEOUT_NS, SafeHold
from .verdict import MAX_TILT_RAD, Monitor, State

LEVEL = (0.0, 0.0, 0.0, 1.0)


class Simulation:
    """The demo without messages: robot, controller, safe hold and monitor in one loop."""

    def __init__(self, *, safe_hold=True, control_every=1):
        self.robot, self.controller = Quadruped(), Controller()
        self.hold, self.monitor = SafeHold(), Monitor()
        self.safe_hold, self.control_every = safe_hold, control_every
        self.verdicts, self.estimator, self.estimator_input = [], None, lambda gyro, acceleration: (gyro, acceleration)
        self._pending = [0.0] * kinematics.JOINTS
        self._torques = [0.0] * kinematics.JOINTS

    def run(self, seconds, *, vx=0.0, yaw=0.0, controller=True, unheld="limp"):
        """`unheld`: the motors' behaviour without controller and safe hold: go "limp", or keep the "last"
        torque.
        """
        robot = self.robot
        for step in range(round(seconds * 1e9 / STEP_NS)):
            now, positions = robot.time_ns, robot.joint_positions.tolist()
            velocities, forces = robot.joint_velocities.tolist(), robot.contact_forces.tolist()
            if controller and step % self.control_every == 0:
                # With a period of more than one step the torques are also one period late: twice the age.
                fresh = list(self.controller.update(now, positions, velocities, vx, yaw))
                self.hold.command(now, self._pending if self.control_every > 1 else fresh)
                self._pending = fresh
            if controller or self.safe_hold:
                orientation = robot.imu.orientation.tolist()
                self._torques = self.hold.torques(now, positions, velocities, forces, orientation)
            elif unheld == "limp":
                self._torques = [0.0] * kinematics.JOINTS
            if self.estimator:
                gyro, acceleration = self.estimator_input(robot.imu.angular_velocity, robot.imu.acceleration)
                self.estimator.update(now, gyro.tolist(), acceleration.tolist(), positions, velocities, forces)
            robot.step(self._torques)
            driven = controller and not self.hold.active
            verdict = self.monitor.observe(
                robot.time_ns,
                float(robot.base_position[2]),
                robot.imu.orientation.tolist(),
                robot.joint_velocities.tolist(),
                tracking_error_rad=self.controller.tracking_error_rad if driven else None,
                held=self.hold.active,
            )
            if verdict:
                self.verdicts.append(verdict)
        return self


# --- geometry -----------------------------------------------------------------------------------------------


def test_quaternion_rotates_like_rotation_matrix():
    quarter = (0.0, 0.0, sqrt(0.5), sqrt(0.5))  # 90 degrees to the left
    assert rotate(quarter, (1.0, 0.0, 0.0)) == pytest.approx((0.0, 1.0, 0.0))
    assert roll_pitch_yaw(quarter) == pytest.approx((0.0, 0.0, pi / 2))
    tilted = integrate(LEVEL, (0.3, 0.0, 0.0), 1.0)
    assert up_in_body(tilted) == pytest.approx(rotate(tuple(-c for c in tilted[:3]) + tilted[3:], (0.0, 0.0, 1.0)))


def test_leg_points_agree_with_mujoco():
    robot, rng = Quadruped(), np.random.default_rng(7)
    robot.joint_positions[:] = np.array(STAND_RAD) + rng.uniform(-0.3, 0.3, kinematics.JOINTS)
    mujoco.mj_kinematics(robot.model, robot.data)
    for leg in range(kinematics.LEGS):
        _, _, foot = kinematics.leg_points(leg, *robot.joint_positions[2 * leg : 2 * leg + 2])
        assert robot.data.site(f"foot_{leg + 1}").xpos - robot.base_position == pytest.approx(foot)


def test_point_velocity_is_the_derivative_of_the_foot_position():
    for leg in range(kinematics.LEGS):
        hip, ankle, hip_rate, ankle_rate, dt = 0.2, STAND_RAD[2 * leg + 1], 0.7, -0.4, 1e-6
        points = kinematics.leg_points(leg, hip, ankle)
        later = kinematics.leg_points(leg, hip + hip_rate * dt, ankle + ankle_rate * dt)
        expected = [(b - a) / dt for a, b in zip(points[2], later[2])]
        velocity = kinematics.point_velocity(leg, hip, hip_rate, ankle_rate, points[0], points[1], points[2])
        assert velocity == pytest.approx(expected, abs=1e-5)


# --- physics ------------------------------------------------------------------------------------------------


def test_a_step_is_one_millisecond_and_time_does_not_drift():
    robot = Quadruped()
    for _ in range(1000):
        robot.step([0.0] * kinematics.JOINTS)
    assert robot.time_ns == 1_000_000_000
    assert robot.data.time == pytest.approx(1.0)


def test_the_standing_robot_reads_gravity_and_its_weight():
    robot = Simulation().run(2.0).robot
    assert robot.imu.acceleration == pytest.approx([0.0, 0.0, 9.81], abs=0.2)
    assert robot.imu.angular_velocity == pytest.approx([0.0, 0.0, 0.0], abs=0.02)
    assert float(robot.model.body_subtreemass[1]) * 9.81 == pytest.approx(BODY_WEIGHT_N, rel=0.01)
    assert float(np.sum(robot.contact_forces)) == pytest.approx(BODY_WEIGHT_N, rel=0.05)
    assert robot.base_position[2] == pytest.approx(STAND_HEIGHT_M, abs=0.02)


def test_each_torque_reaches_its_own_joint():
    for joint in range(kinematics.JOINTS):
        robot = Quadruped()
        robot.data.qpos[2] = 3.0  # in the air
        robot.step([10.0 if j == joint else 0.0 for j in range(kinematics.JOINTS)])
        assert int(np.argmax(np.abs(robot.joint_velocities))) == joint
        assert robot.joint_velocities[joint] > 0.0


def test_simulation_survives_invalid_torques():
    robot = Quadruped()
    for _ in range(500):
        robot.step([float("nan"), float("inf"), -float("inf"), 1e30, 0.0, 0.0, 0.0, -1e30])
        assert np.all(np.abs(robot.data.actuator_force) <= TORQUE_LIMIT_NM)
    assert np.all(np.isfinite(robot.data.qpos))


def test_reset_repeats_the_same_run():
    robot = Quadruped()
    runs = []
    for _ in range(2):
        robot.reset()
        for step in range(200):
            robot.step([5.0 if step % 2 else -5.0] * kinematics.JOINTS)
        runs.append(robot.data.qpos.copy())
    assert np.array_equal(*runs)


# --- the loop: closed, held, neither ------------------------------------------------------------------------


@pytest.mark.parametrize("vx, yaw", [(0.0, 0.0), (0.15, 0.0), (-0.15, 0.0), (0.0, 0.4), (0.15, -0.3)])
def test_the_controller_closes_the_loop(vx, yaw):
    verdicts = Simulation().run(8.0, vx=vx, yaw=yaw).verdicts
    assert [v.state for v in verdicts] == [State.LOOP_CLOSED] * 8


def test_robot_follows_operator_commands():
    ahead = Simulation().run(10.0, vx=0.15).robot
    assert ahead.base_position[0] > 0.8
    back = Simulation().run(10.0, vx=-0.15).robot
    assert back.base_position[0] < -0.8
    left = Simulation().run(5.0, yaw=0.3).robot
    assert roll_pitch_yaw(left.imu.orientation.tolist())[2] > 0.8
    still = Simulation().run(5.0).robot
    assert still.base_position[0:2] == pytest.approx([0.0, 0.0], abs=0.01)


def test_loop_tolerates_torques_every_10_ms_that_are_10_ms_old():
    verdicts = Simulation(control_every=10).run(6.0, vx=0.15).verdicts
    assert {v.state for v in verdicts[1:]} == {State.LOOP_CLOSED}


def test_monitor_detects_late_loop():
    verdicts = Simulation(control_every=15).run(4.0, vx=0.15).verdicts
    assert {v.state for v in verdicts[1:]} == {State.LOOP_LATE}


# Moments within the gait's period of 1.2 s, so that each leg is in the air in one of them.
@pytest.mark.parametrize("dies_at", [3.0, 3.2, 3.4, 3.6, 3.8, 4.0])
def test_when_the_controller_dies_the_robot_is_held(dies_at):
    simulation = Simulation().run(dies_at, vx=0.15, yaw=0.1)
    simulation.run(6.0, controller=False)
    assert simulation.hold.active and simulation.hold.trips == 1
    assert State.FALLEN not in {v.state for v in simulation.verdicts}
    assert [v.state for v in simulation.verdicts[-3:]] == [State.HELD_SAFE] * 3
    assert min(simulation.robot.contact_forces) > 5.0  # on four feet, not on two


def test_a_controller_that_comes_back_takes_over_from_the_hold():
    simulation = Simulation().run(3.3, vx=0.15).run(3.0, controller=False)
    assert simulation.hold.active
    simulation.controller = Controller()
    simulation.run(4.7, vx=0.15)
    assert not simulation.hold.active
    assert [v.state for v in simulation.verdicts[-3:]] == [State.LOOP_CLOSED] * 3


@pytest.mark.parametrize("dies_at", [3.0, 3.3])
def test_without_the_hold_the_limp_robot_falls(dies_at):
    simulation = Simulation(safe_hold=False).run(dies_at, vx=0.15).run(4.0, controller=False)
    assert simulation.verdicts[-1].state == State.FALLEN
    assert simulation.robot.base_position[2] < 0.3


def test_constant_torque_is_never_held_safe():
    simulation = Simulation(safe_hold=False).run(3.3, vx=0.15).run(4.0, controller=False, unheld="last")
    assert {v.state for v in simulation.verdicts[-3:]} <= {State.ABANDONED, State.FALLEN}


def test_uncommanded_robot_is_held_from_first_step():
    simulation = Simulation().run(3.0, controller=False)
    assert [v.state for v in simulation.verdicts] == [State.HELD_SAFE] * 3


def test_the_hold_waits_for_its_timeout_and_ends_with_the_next_command():
    hold, torques = SafeHold(), [1.0] * kinematics.JOINTS
    state = (list(STAND_RAD), [0.0] * kinematics.JOINTS, [50.0] * kinematics.LEGS, LEVEL)
    hold.command(0, torques)
    assert hold.torques(TIMEOUT_NS, *state) == torques and not hold.active
    assert hold.torques(TIMEOUT_NS + 1, *state) != torques and hold.active
    hold.command(TIMEOUT_NS + 2, torques)
    assert hold.torques(TIMEOUT_NS + 2, *state) == torques and not hold.active


def test_hold_keeps_only_upright_poses_on_four_feet():
    hold = SafeHold()
    hold.command(0, [0.0] * kinematics.JOINTS)
    pose, still = [0.1] * kinematics.JOINTS, [0.0] * kinematics.JOINTS
    firm = [50.0] * kinematics.LEGS
    hold.torques(0, pose, still, [50.0, 50.0, 50.0, 0.5 * MIN_FOOT_FORCE_N], LEVEL)
    assert hold.safe_pose == list(STAND_RAD)
    hold.torques(0, pose, still, firm, integrate(LEVEL, (0.5, 0.0, 0.0), 1.0))
    assert hold.safe_pose == list(STAND_RAD)
    hold.torques(0, pose, still, firm, LEVEL)
    assert hold.safe_pose == pose


def test_a_controller_starts_without_a_jump():
    controller, pose = Controller(), [a + 0.3 for a in STAND_RAD]
    controller.update(0, pose, [0.0] * kinematics.JOINTS, 0.15, 0.0)
    assert controller.targets == pytest.approx(pose)
    for step in range(1, round(START_S * 1000) + 1):
        controller.update(step * STEP_NS, pose, [0.0] * kinematics.JOINTS)
    assert controller.targets == pytest.approx(STAND_RAD, abs=0.05)


def test_the_monitor_sees_a_tilted_robot_as_fallen():
    monitor, tilted = Monitor(window_ns=STEP_NS), integrate(LEVEL, (1.1 * MAX_TILT_RAD, 0.0, 0.0), 1.0)
    verdict = monitor.observe(STEP_NS, STAND_HEIGHT_M, tilted, [0.0] * kinematics.JOINTS, held=True)
    assert verdict.state == State.FALLEN and isnan(verdict.tracking_error_rad)


# --- estimator ----------------------------------------------------------------------------------------------


def test_the_estimate_follows_the_walking_robot_in_spite_of_gyro_bias_and_noise():
    simulation, rng = Simulation(), np.random.default_rng(3)
    simulation.estimator = Estimator()
    simulation.estimator_input = lambda gyro, acceleration: (
        gyro + 0.01 + 0.02 * rng.standard_normal(3),
        acceleration + 0.2 * rng.standard_normal(3),
    )
    simulation.run(10.0, vx=0.15)
    for _ in range(20):
        simulation.run(0.25, vx=0.15)
        robot, estimator = simulation.robot, simulation.estimator
        true, estimated = (roll_pitch_yaw(q) for q in (robot.imu.orientation.tolist(), estimator.orientation))
        assert estimated[0:2] == pytest.approx(true[0:2], abs=0.05)
        assert estimator.position[2] == pytest.approx(robot.base_position[2], abs=0.05)
        assert np.linalg.norm(estimator.velocity - robot.data.qvel[0:3]) < 0.5
    assert estimator.gyro_bias[0:2] == pytest.approx([0.01, 0.01], abs=0.005)
    # Odometry: feet slip in this gait, so the distance is only approximate.
    assert estimator.position[0] == pytest.approx(robot.base_position[0], rel=0.3)


def test_a_wrong_attitude_is_corrected():
    estimator = Estimator()
    estimator.orientation = integrate(LEVEL, (0.2, -0.1, 0.0), 1.0)
    for step in range(20_000):
        estimator.update(step * STEP_NS, (0.0,) * 3, (0.0, 0.0, 9.81), STAND_RAD, (0.0,) * 8, (50.0,) * kinematics.LEGS)
    assert roll_pitch_yaw(estimator.orientation)[0:2] == pytest.approx((0.0, 0.0), abs=0.01)
    assert estimator.position[2] == pytest.approx(STAND_HEIGHT_M, abs=0.001)
    assert estimator.velocity == pytest.approx([0.0, 0.0, 0.0], abs=0.01)


def test_estimate_continues_without_ground_contact():
    estimator = Estimator()
    for step in range(10):
        estimator.update(step * STEP_NS, (0.0,) * 3, (0.0,) * 3, STAND_RAD, (0.0,) * 8, (0.0,) * kinematics.LEGS)
    assert estimator.feet_loaded == 0 and estimator.position == [0.0, 0.0, STAND_HEIGHT_M]


# --- camera -------------------------------------------------------------------------------------------------


@pytest.fixture(params=["synthetic", "mujoco"])
def camera(request):
    try:
        camera = Camera(request.param)
    except RuntimeError as error:
        pytest.skip(str(error))
    yield camera
    camera.close()


def picture(camera, x=0.0):
    frame = np.zeros(FRAME_SHAPE, np.uint8)
    camera.render(frame, (x, 0.0, STAND_HEIGHT_M), LEVEL, STAND_RAD)
    return frame


def test_the_picture_shows_the_robot_where_the_projection_puts_it(camera):
    frame = picture(camera)
    points = [(0.0, 0.0, 0.0)] + [
        kinematics.leg_points(leg, *STAND_RAD[2 * leg : 2 * leg + 2])[1] for leg in (0, 1, 2, 3)
    ]
    for x, y, z in points:
        column, row, _ = view.project((x, y, z + STAND_HEIGHT_M))
        red, _, blue = (int(c) for c in frame[round(row), round(column)])
        assert red > blue + 20  # the robot has a warm colour in both pictures; floor and sky do not
    corners = frame[[0, 0, -1, -1], [0, -1, 0, -1]].astype(int)
    assert np.all(corners[:, 0] <= corners[:, 2] + 20)


def test_the_floor_moves_when_the_robot_does(camera):
    assert np.mean(picture(camera, 0.0) != picture(camera, 0.1)) > 0.01
    assert np.array_equal(picture(camera, 0.0), picture(camera, 0.0))


def test_a_frame_far_from_the_origin_is_like_one_at_the_origin():
    drawing = Camera("synthetic")
    assert np.array_equal(picture(drawing), picture(drawing, 4096.0))


def test_a_robot_on_its_back_can_be_drawn():
    frame = np.zeros(FRAME_SHAPE, np.uint8)
    Camera("synthetic").render(frame, (1e6, -1e6, 0.3), (1.0, 0.0, 0.0, 0.0), STAND_RAD)
    assert frame.any()


def test_auto_finds_source_and_wrong_buffer_is_rejected():
    camera = Camera()
    assert camera.source in ("mujoco-egl", "mujoco-osmesa", "synthetic")
    with pytest.raises(ValueError, match="expected uint8"):
        camera.render(np.zeros((640, 480, 3), np.uint8), (0.0, 0.0, 0.5), LEVEL, STAND_RAD)
    with pytest.raises(ValueError, match="source"):
        Camera("webcam")
    camera.close()


# --- battery ------------------------------------------------------------------------------------------------


def test_work_and_holding_cost_power_and_braking_recovers_none():
    assert motor_power([10.0], [2.0]) == pytest.approx(20.0 + 3.0)
    assert motor_power([10.0], [-2.0]) == pytest.approx(3.0)
    assert motor_power([0.0], [5.0]) == 0.0


def test_the_battery_runs_down_and_stays_empty():
    battery = Battery(charge=0.001)
    full = Battery().voltage
    battery.update(1.0, [20.0] * 8, [1.0] * 8)
    assert 0.0 < battery.voltage < full and battery.current > 0.0
    power = battery.voltage * battery.current
    assert power == pytest.approx(25.0 + motor_power([20.0] * 8, [1.0] * 8))
    for _ in range(100):
        battery.update(1.0, [20.0] * 8, [1.0] * 8)
    assert battery.charge == 0.0


def test_a_load_beyond_the_pack_gives_finite_numbers():
    battery = Battery()
    battery.update(0.001, [1e6] * 8, [0.0] * 8)
    assert 0.0 < battery.voltage < 29.4 and np.isfinite(battery.current)
