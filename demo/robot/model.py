"""The simulated quadruped: MuJoCo physics of gymnasium's ant.xml, one call of `step` per millisecond.

The ant is read from the installed gymnasium wheel, so no model file is copied here. As published it is
unrealistic (0.9 kg, rotors of 1 kg m^2, 150 N m motors, friction so high that its legs form a stable arch
with the motors off): a missing controller would not be visible. `load_model` therefore makes it a plausible
18 kg robot, by the constants below; the geometry, the names and the joint order are those of ant.xml.

The step is 1 ms with the `implicitfast` integrator. ant.xml uses RK4, which solves the contacts four times
and takes about three times as long, without a visible gain at a step this short.
"""

import importlib.util
import pathlib
from typing import NamedTuple

import mujoco
import numpy as np

from .kinematics import ANKLE_SIGN, FOOT_RADIUS_M, JOINT_NAMES, JOINTS, LEGS
from .posture import STAND_HEIGHT_M, STAND_RAD, TORQUE_LIMIT_NM

STEP_NS = 1_000_000

# Physics of a realistic robot. Density turns 0.9 kg into 18 kg; armature is the reflected inertia of a small
# motor with a gear; the friction is that of rubber on a floor, and below 1 so that a limp robot's legs slide
# apart.
DENSITY_KG_M3 = 100.0
ARMATURE_KG_M2 = 0.1
JOINT_DAMPING_NM_S = 0.5
FRICTION = 0.7
ANKLE_RANGE_DEG = (5.0, 80.0)  # ant.xml stops at 30 degrees, which would keep a limp robot's belly off the floor


class Imu(NamedTuple):
    """Values of an inertial unit at the torso's centre. The arrays are live: copy values that must outlive a
    step.
    """

    orientation: np.ndarray  # [4] x y z w, body to world
    angular_velocity: np.ndarray  # [3] rad/s, body frame
    acceleration: np.ndarray  # [3] m/s^2, body frame, specific force: (0, 0, +9.81) when standing still


def ant_xml_path() -> pathlib.Path:
    """Path of ant.xml inside the installed gymnasium wheel (found without importing gymnasium, which is slow)."""
    spec = importlib.util.find_spec("gymnasium")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("the demo's robot needs ant.xml of the gymnasium wheel: pip install gymnasium")
    return pathlib.Path(spec.submodule_search_locations[0], "envs", "mujoco", "assets", "ant.xml")


def load_model() -> mujoco.MjModel:
    """ant.xml with the physics of this demo, an IMU at the torso and a touch sensor under each foot."""
    spec = mujoco.MjSpec.from_file(str(ant_xml_path()))
    spec.option.timestep = STEP_NS * 1e-9
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for geom in spec.geoms:
        geom.density = DENSITY_KG_M3
        geom.friction[0] = FRICTION
        geom.margin = 0.0  # ant.xml's 1 cm would let the robot hover
    for leg in range(LEGS):
        hip, ankle = spec.joint(JOINT_NAMES[2 * leg]), spec.joint(JOINT_NAMES[2 * leg + 1])
        for joint in (hip, ankle):
            joint.armature = ARMATURE_KG_M2
            joint.damping[0] = JOINT_DAMPING_NM_S
        ankle.range = sorted(ANKLE_SIGN[leg] * angle for angle in ANKLE_RANGE_DEG)
        # The touch sensor adds up the normal forces of the contacts inside its site: a ball slightly larger
        # than the round end of the shin. The shin's direction comes from its capsule (fromto = ankle ...
        # foot).
        shin = ankle.parent
        foot = [float(c) for c in shin.geoms[0].fromto[3:6]]
        shin.add_site(name=f"foot_{leg + 1}", pos=foot, size=[1.25 * FOOT_RADIUS_M] * 3)
    for actuator in spec.actuators:
        # Gear 1: the control signal is the torque itself, in N m.
        actuator.gear[0] = 1.0
        actuator.ctrlrange = [-TORQUE_LIMIT_NM, TORQUE_LIMIT_NM]
    spec.body("torso").add_site(name="imu")
    sensor, site = mujoco.mjtSensor, mujoco.mjtObj.mjOBJ_SITE
    spec.add_sensor(name="gyro", type=sensor.mjSENS_GYRO, objtype=site, objname="imu")
    spec.add_sensor(name="acceleration", type=sensor.mjSENS_ACCELEROMETER, objtype=site, objname="imu")
    for leg in range(LEGS):
        name = f"foot_{leg + 1}"
        spec.add_sensor(name=name, type=sensor.mjSENS_TOUCH, objtype=site, objname=name)
    return spec.compile()


class Quadruped:
    """The robot and its world.

    The arrays that the properties return are views of the simulator's own memory: reading one is free, and
    its content changes with the next `step`. As in any MuJoCo simulation, gyro, acceleration and contact
    forces belong to the beginning of the last step: they are 1 ms old.
    """

    def __init__(self):
        self.model = load_model()
        self.data = mujoco.MjData(self.model)
        data = self.data
        self._qpos, self._ctrl = data.qpos, data.ctrl
        # The ant's motors are listed from leg 4 on; everything else counts legs from 1.
        motor_joints = [int(self.model.actuator_trnid[i, 0]) for i in range(JOINTS)]
        joint_order = [self.model.joint(name).id for name in JOINT_NAMES]
        self._motor_to_joint = [joint_order.index(joint) for joint in motor_joints]
        self._base_position = data.qpos[0:3]
        self._joint_positions, self._joint_velocities = data.qpos[7:15], data.qvel[6:14]
        self._imu = Imu(np.zeros(4), data.sensordata[0:3], data.sensordata[3:6])
        self._contact_forces = data.sensordata[6:10]
        self._steps = 0
        self.reset()

    def reset(self):
        """Resets the robot to the standing pose, at rest, at time 0."""
        mujoco.mj_resetData(self.model, self.data)
        self._steps = 0
        self._qpos[0:7] = (0.0, 0.0, STAND_HEIGHT_M, 1.0, 0.0, 0.0, 0.0)
        self._joint_positions[:] = STAND_RAD
        mujoco.mj_forward(self.model, self.data)
        self._read_orientation()

    def step(self, torques):
        """Applies `torques` (8 floats, N m, clamped to +-TORQUE_LIMIT_NM by the model) for 1 ms of simulated
        time.

        NaN counts as 0: a controller's bug must not end the simulation.
        """
        self._ctrl[:] = [t if t == t else 0.0 for t in (torques[j] for j in self._motor_to_joint)]
        mujoco.mj_step(self.model, self.data)
        self._steps += 1
        self._read_orientation()

    def _read_orientation(self):
        # MuJoCo writes quaternions w x y z.
        orientation, qpos = self._imu.orientation, self._qpos
        orientation[0:3] = qpos[4:7]
        orientation[3] = qpos[3]

    @property
    def time_ns(self) -> int:
        """Simulated time since `reset`: counted in whole steps, so it does not drift as a sum of floats would."""
        return self._steps * STEP_NS

    @property
    def joint_positions(self) -> np.ndarray:
        """[8] rad, in the order of JOINT_NAMES."""
        return self._joint_positions

    @property
    def joint_velocities(self) -> np.ndarray:
        """[8] rad/s, in the order of JOINT_NAMES."""
        return self._joint_velocities

    @property
    def imu(self) -> Imu:
        return self._imu

    @property
    def base_position(self) -> np.ndarray:
        """[3] m, the torso's centre in the world frame: the true value, which a real robot would not know."""
        return self._base_position

    @property
    def contact_forces(self) -> np.ndarray:
        """[4] N, the normal force under each foot, legs in the order of LEG_NAMES."""
        return self._contact_forces
