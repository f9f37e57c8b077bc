"""Runs the programs of docs/guide/from-ros2.md and from-zeromq.md, and compares what they print."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile

import pytest
from played_page import ROOT

GUIDE = ROOT / "docs" / "guide"
LIMIT_S = 60


def run(program: str) -> str:
    with tempfile.TemporaryDirectory(prefix="rnet-from-", dir="/dev/shm") as base:
        return run_in(base, program)


def run_in(base: str, program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": "/usr/bin:/bin", "RNET_DIR": base},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


PAIRS = re.findall(
    r"```python\n(.*?)```\n```text\n(.*?)```", (GUIDE / "from-zeromq.md").read_text(encoding="utf-8"), re.S
)


@pytest.mark.parametrize(("program", "output"), PAIRS, ids=range(len(PAIRS)))
def test_a_program_of_the_page_on_zeromq(program: str, output: str) -> None:
    assert run(program) == output


def test_all_programs_of_that_page_have_an_output() -> None:
    assert len(PAIRS) == (GUIDE / "from-zeromq.md").read_text(encoding="utf-8").count("```python") == 4


def test_the_program_of_the_page_on_ros() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (GUIDE / "from-ros2.md").read_text(encoding="utf-8"), re.S)
    also = "own = node.subscribe(\"/scan\", LaserScan)\n[own.recv(timeout=30) for _ in range(3)]\nnode.close()\n"
    printed = run(program + also).splitlines()
    assert printed and set(printed) == {"heard [1.0, 2.0]"}
