"""Tests `rnet demo` with the model of the Python package, `rnet.demo`. For its own model, see
crates/rnet-cli/tests/it/demo.rs.

Needs the build of `make demo`.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import pytest

TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or pathlib.Path(__file__).resolve().parent.parent / "target")
LIMIT_S = 60  # a guard against hanging


@pytest.fixture
def place():
    """A private directory of domains, which must be empty at the end."""
    with tempfile.TemporaryDirectory(prefix="rnet-mujoco-", dir="/dev/shm") as place:
        yield place
        until(lambda: not processes_of(place))
        assert os.listdir(place) == []


def start(place, *options):
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    command = [TARGET / "debug" / "rnet", "--json", "demo", "--model", "mujoco", *options]
    environment = {**os.environ, "PATH": path, "RNET_DIR": place}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def processes_of(place):
    """The command lines of processes whose environment contains the directory."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"RNET_DIR={place}\0".encode() in (process / "environ").read_bytes() + b"\0":
                found.append((process / "cmdline").read_text())
        except OSError:
            pass  # it has exited, or belongs to another user
    return found


def until(so):
    end = time.monotonic() + LIMIT_S
    while not so():
        assert time.monotonic() < end, "never"
        time.sleep(0.02)  # sleep: between two reads of /proc


def test_the_arm_in_mujoco_is_driven_held_and_driven_again(place):
    run = start(place, "--seconds", "8")
    out, err = run.communicate(timeout=10 * LIMIT_S)
    assert run.returncode == 0, out + err
    document = json.loads(out)
    assert document["demo"]["model"] == "MuJoCo"
    topics = {topic["topic"]: topic for topic in document["result"]["topics"]}
    assert all(topic["unseen"] == topic["out_of_order"] == 0 for topic in topics.values()), topics
    assert all(topics[name]["received"] > 0 for name in ("/robot/state", "/robot/torque", "/camera/shutter"))
    assert document["result"]["held_after_ms"] is not None
    assert document["result"]["closed_after_ms"] > 0
    assert document["result"]["round_trip"]["count"] > 0


def test_exits_when_its_command_is_killed(place):
    run = start(place, "--seconds", "3600")
    until(lambda: any("rnet.demo" in line for line in processes_of(place)) and len(processes_of(place)) == 11)
    run.kill()
    run.communicate(timeout=LIMIT_S)
