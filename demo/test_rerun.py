"""Runs the demo's controller again on a recording of itself: it publishes the same torques, bit for bit.

The recording is made here: a committed file would depend on the messages and the floating point of its time.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest
import rnet
from nodes.messages import DriveCommand, JointTorques, RobotState
from robot.model import Quadruped

DEMO = pathlib.Path(__file__).resolve().parent
RNET = DEMO.parent / "target" / "debug" / "rnet"
CONTROLLER = [sys.executable, "-m", "nodes.controller"]
STEPS = 600
DRIVE_AT = 100  # the operator begins to drive the robot in this step
SOON_S = 60


def environment(path):
    return {
        **os.environ,
        **{"RNET_DIR": str(path), "RNET_DOMAIN": "rerun", "RNET_NETWORK": "off", "OPENBLAS_NUM_THREADS": "1"},
        "DEMO_WITHOUT_AUTHORITY": "1",
    }


def has_heard_the_operator(path):
    """The controller's callback has finished, and its thread sleeps again."""
    said = subprocess.run(
        [RNET, "topic", "info", "/operator/drive", "--json"], env=environment(path), capture_output=True, check=True
    )
    (subscription,) = json.loads(said.stdout)["subscribers"]
    (channel,) = subscription["channels"]
    return channel["received"] == 1 and channel["asleep"]


def drive(path, node, states, torques):
    """The loop of the simulation, closed: each state is sent after the answer to the previous one."""
    robot, state = Quadruped(), RobotState()
    operator = node.publisher("/operator/drive", DriveCommand, reliable=True)
    operator.wait_for_subscribers(1, timeout=SOON_S)
    for step in range(STEPS):
        if step == DRIVE_AT:
            operator.send(DriveCommand(0, 0.4, 0.1))
            while not has_heard_the_operator(path):
                pass
        state.time_ns = robot.time_ns
        state.joint_positions[:] = robot.joint_positions
        state.joint_velocities[:] = robot.joint_velocities
        states.send(state)
        state.count += 1
        robot.step(torques.recv(timeout=SOON_S).torques[:])


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("rerun")
    file = path / "run.mcap"
    with rnet.Node("simulation", domain="rerun", dir=path) as node:
        states = node.publisher("/robot/state", RobotState, reliable=True)
        torques = node.subscriber("/robot/torque", JointTorques, reliable=True, keep_all=True)
        controller = subprocess.Popen(
            CONTROLLER, cwd=DEMO, env=environment(path), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        recorder = subprocess.Popen(
            [RNET, "record", "-o", file], env=environment(path), stderr=subprocess.PIPE, text=True
        )
        try:
            controller.stdin.write(b"join\n")
            controller.stdin.flush()
            states.wait_for_subscribers(1, timeout=SOON_S)
            torques.wait_for_publishers(1, timeout=SOON_S)
            assert "recording" in recorder.stderr.readline()
            drive(path, node, states, torques)
        finally:
            controller.stdin.close()
            controller.wait(SOON_S)
            recorder.terminate()
            recorder.communicate(timeout=SOON_S)
    return file


def rerun(recording, *arguments, command=CONTROLLER, cwd=DEMO):
    """(exit code, stdout, stderr) of `rnet rerun`. The controller joins when its stdin tells it to."""
    process = subprocess.Popen(
        [RNET, "rerun", recording, *arguments, "--node", *command],
        cwd=cwd,
        env=environment(recording.parent),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        process.stdin.write("join\n")
        process.stdin.flush()
        out, err = process.stdout.read(), process.stderr.read()
        return process.wait(SOON_S), out, err
    finally:
        process.stdin.close()
        process.kill()
        process.wait()


def test_the_controller_is_deterministic(recording, tmp_path):
    junit = tmp_path / "rerun.xml"
    code, out, err = rerun(recording, "--timeout", str(SOON_S), "--junit", junit, "--json")
    assert code == 0, out + err
    result = json.loads(out)
    assert result["inputs"] == {"/robot/state": STEPS, "/operator/drive": 1}
    assert [(t["topic"], t["compared"], t["missing"]) for t in result["outputs"]] == [("/robot/torque", STEPS, 0)]
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "0", "0")


def test_detects_controller_with_another_gain(recording, tmp_path):
    plot = tmp_path / "rerun.svg"
    changed = "import robot.control as c; c.KP_NM_RAD *= 1.01; import nodes.controller as n; n.main()"
    command = [sys.executable, "-c", changed]
    code, out, err = rerun(recording, "--timeout", str(SOON_S), "--plot", plot, "--json", command=command)
    assert code == 1, out + err
    (torque,) = json.loads(out)["outputs"]
    assert torque["compared"] == STEPS and torque["differing"] > 0
    assert re.fullmatch(r"torques\[\d\]|tracking_error", torque["worst"]["field"])
    assert ElementTree.parse(plot).getroot().tag.endswith("svg")
    code, out, err = rerun(recording, "--timeout", str(SOON_S), "--tolerance", "1000", command=command)
    assert code == 0, out + err

