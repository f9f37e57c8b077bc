"""The robot of the demo, without any messaging: physics, control, safe hold, estimation, camera, battery.

Every vector of eight runs leg by leg, hip then ankle (`kinematics.JOINT_NAMES`); every vector of four runs
`kinematics.LEG_NAMES`. SI units, x forward, y left, z up (REP-103), quaternions x y z w, times in int64 ns.

    model.py       the simulated quadruped                control.py    joint torques that follow the gait
    kinematics.py  where hip, ankle and foot are          gait.py       where the joints should be
    posture.py     the standing pose                      safe_hold.py  what the actuators do without commands
    quaternion.py  rotations in plain floats              verdict.py    loop closed? held safe? fallen?
    estimator.py   body state from IMU and joints         camera.py     a picture, by opengl.py or by drawing.py
    battery.py     volts, amperes, charge                 view.py       where the camera stands

Nothing is imported here: a node that only needs the battery need not load MuJoCo.
"""
