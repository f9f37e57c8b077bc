"""The robot of the demo, without messaging: physics, control, safe hold, estimation, camera, battery.

Every vector of eight is ordered by leg, hip then ankle (`kinematics.JOINT_NAMES`); every vector of four is
ordered like `kinematics.LEG_NAMES`. SI units, x forward, y left, z up (REP-103), quaternions x y z w, times
in int64 ns.

    model.py       the simulated quadruped                control.py    joint torques that follow the gait
    kinematics.py  positions of hip, ankle and foot       gait.py       joint targets
    posture.py     the standing pose                      safe_hold.py  the actuators' behaviour without commands
    quaternion.py  rotations in plain floats              verdict.py    loop closed? held safe? fallen?
    estimator.py   body state from IMU and joints         camera.py     a picture, by opengl.py or drawing.py
    battery.py     volts, amperes, charge                 view.py       the camera's pose

Nothing is imported here: a node that only needs the battery need not load MuJoCo.
"""
