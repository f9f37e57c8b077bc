"""Rerun of a Python node with its calls: services and actions that it serves or calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import rnet
from conftest import LIMIT_S

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "debug"
MESSAGES = 20

WORKER = """
import sys
import rnet

def half(x):
    if x < 0:
        raise ValueError(f"{x} is negative")
    return x / DIVISOR

def move(goal, context):
    for step in goal:
        context.feedback(b"step %d" % step)
    return b"there"

node = rnet.Node("worker")
served = node.service("/half", "f8", "f8", half), node.action("/move", None, None, None, move)
scale, reach = node.client("/scale", "f8", "f8"), node.action_client("/reach")
said = node.publisher("/said", reliable=True)
for message in node.subscriber("/number", reliable=True, keep_all=True):
    number = bytes(message)[0]
    text = b"%d" % number
    if number % 4 == 1:
        text += b" scaled %f" % scale.call(float(number), timeout=60)
    if number % 4 == 2:
        goal = reach.send(bytes([number]))
        text += b" ".join([*map(bytes, goal), bytes(goal.result())])
    said.send(text)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{BUILD}:{os.environ['PATH']}")
    for name, value in {"RNET_DIR": str(tmp_path), "RNET_DOMAIN": "calls", "RNET_NETWORK": "off"}.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def worker(place, divisor=2) -> list[str]:
    program = place / f"worker_{divisor}.py"
    program.write_text(WORKER.replace("DIVISOR", str(divisor)))
    return [sys.executable, str(program)]


def record(place) -> Path:
    """The worker makes and serves all kinds of calls."""
    file = place / "run.mcap"
    scaled = []

    def scale(x):
        scaled.append(x)
        return 10 * x + len(scaled)  # a different answer each time

    def reach(goal, context):
        context.feedback(b"on the way to %d" % goal[0])
        return b"at %d" % len(scaled)

    with rnet.Node("body") as node, rnet.record(file) as recording:
        servers = node.service("/scale", "f8", "f8", scale), node.action("/reach", None, None, None, reach)
        numbers = node.publisher("/number", reliable=True)
        said = node.subscriber("/said", reliable=True, keep_all=True)
        half, move = node.client("/half", "f8", "f8"), node.action_client("/move")
        process = subprocess.Popen(worker(place), stdin=subprocess.DEVNULL)
        try:
            numbers.wait_for_subscribers(1, timeout=LIMIT_S)
            said.wait_for_publishers(1, timeout=LIMIT_S)
            for number in range(MESSAGES):
                numbers.send(bytes([number]))
                assert bytes(said.recv(timeout=LIMIT_S)).startswith(b"%d" % number)
                if number % 5 == 3:
                    assert half.call(float(number), timeout=LIMIT_S) == number / 2
            with pytest.raises(rnet.CallFailedError):
                half.call(-1.0, timeout=LIMIT_S)
            goal = move.send(bytes([1, 2]))
            assert [bytes(step) for step in goal] == [b"step 1", b"step 2"] and bytes(goal.result()) == b"there"
            recording.stop()
        finally:
            process.kill()
            process.wait()
        del servers
    assert recording.report.missing == 0
    return file


def rerun(place, file, node):
    command = ["rnet", "rerun", file, "--timeout", str(LIMIT_S), "--json", "--node", *node]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=4 * LIMIT_S)
    assert done.stdout, done.stderr
    said = json.loads(done.stdout)
    outputs = {of["topic"]: of for of in said["outputs"]}
    return done.returncode, said, outputs


def test_services_and_actions_are_called_and_answered_again(place):
    file = record(place)
    code, said, outputs = rerun(place, file, worker(place))
    assert (code, said["same"]) == (0, True), json.dumps(said["outputs"])
    asked = len(range(1, MESSAGES, 4))
    compared = {topic: of["compared"] for topic, of in outputs.items()}
    assert compared["/said"] == MESSAGES
    assert (compared["/scale request"], compared["/reach request"]) == (asked, asked)
    assert (compared["/half reply"], compared["/half status"]) == (4, 1)
    assert (compared["/move feedback"], compared["/move reply"]) == (2, 1)
    assert said["inputs"]["/reach feedback"] == asked and said["inputs"]["/half request"] == 5

    code, said, outputs = rerun(place, file, worker(place, divisor=3))
    assert (code, said["same"], outputs["/half reply"]["differing"]) == (1, False, 4), said
    # The traceback in the log names the file of the program, which is a different one.
    assert all(of["same"] for topic, of in outputs.items() if topic not in ("/half reply", "/log")), said
