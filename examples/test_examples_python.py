"""Runs every Python example as a user would, in its own domain, and checks its output."""

from __future__ import annotations

import ast
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "python"
#: Far longer than any example takes: a hang fails instead of blocking the tests.
LIMIT_S = 120

HELLOS = "".join(f"hello, robot {n}\n" for n in range(10))


@pytest.fixture
def domain() -> Iterator[dict[str, str]]:
    """The environment of a domain for one test."""
    base = tempfile.mkdtemp(prefix="rnet-examples-", dir="/dev/shm")
    environment = dict(os.environ, RNET_DIR=base, RNET_DOMAIN="examples")
    environment["RNET_STATE_DIR"] = f"{base}/keep"
    environment.pop("RNET_GROUP", None)
    yield environment
    shutil.rmtree(base)


def start(program: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(HERE / program)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """The output of the example, which must exit with 0 and an empty stderr."""
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
        process.wait(LIMIT_S)
    assert (process.returncode, err) == (0, "")
    return out


def run(program: str, environment: dict[str, str]) -> str:
    return finish(start(program, environment))


@pytest.mark.parametrize("order", [("talker", "listener"), ("listener", "talker")])
def test_hello_in_any_order(domain: dict[str, str], order: tuple[str, str]) -> None:
    processes = {name: start(f"hello/{name}.py", domain) for name in order}
    try:
        assert finish(processes["talker"]) == ""
        assert finish(processes["listener"]) == HELLOS
    finally:
        for process in processes.values():
            process.kill()
            process.wait(LIMIT_S)


def first_line(process: subprocess.Popen[str]) -> str:
    """The first output line of an example that runs until it is stopped."""
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], LIMIT_S)[0], "it printed nothing"
    return process.stdout.readline()


@pytest.mark.parametrize("order", [("talker", "listener"), ("listener", "talker")])
def test_typed_in_any_order(domain: dict[str, str], order: tuple[str, str]) -> None:
    processes = {name: start(f"typed/{name}.py", domain) for name in order}
    try:
        assert finish(processes["talker"]) == ""
        assert first_line(processes["listener"]) == "laser [1.5, 1.25, 2.0]\n"
    finally:
        for process in processes.values():
            process.kill()
            process.wait(LIMIT_S)


def test_many_topics(domain: dict[str, str]) -> None:
    expected = "".join(f"/sensor_{n}: 100 readings, mean {10 * n + 0.5}\n" for n in range(8))
    assert run("many_topics/main.py", domain) == expected


def test_parameters(domain: dict[str, str]) -> None:
    refused = "refused: bad value for parameter /gain of /arm: 11.0 is above its maximum 10.0 1/s"
    assert run("parameters/main.py", domain) == f"gain is 1.0\n{refused}\ngain is 2.5 now\n"


def test_zero_copy_image(domain: dict[str, str]) -> None:
    expected = "".join(
        f"frame {n}: 921600 bytes, from [255, 0, 0] to [{n}, {n}, {n}]\n" for n in range(30)
    )
    # The camera and the viewer print from two threads; the camera prints last.
    assert run("zero_copy_image/main.py", domain) == expected + "lost: 0\ncopied: 0\n"


def test_urgent_stop(domain: dict[str, str]) -> None:
    text = run("urgent_stop/main.py", domain)
    said = re.fullmatch(r"stop \(obstacle\) after \d+ us, (\d+) of 1000 loads handled\n", text)
    assert said, text
    # All loads would take 20 s of callbacks: the stop was handled before most of them.
    assert int(said[1]) < 1000


def test_late_joiner(domain: dict[str, str]) -> None:
    assert run("late_joiner/main.py", domain) == "map revision 3: 192 free cells of 0.05 m\n"


def test_state(domain: dict[str, str]) -> None:
    assert run("state/main.py", domain) == (
        "the arm is idle, kp is 12.5\njob 3: moving to [0.5, -0.25]\nalive: True\nalive: False\n"
    )


@pytest.mark.parametrize("example", ["hello", "typed"])
@pytest.mark.parametrize(("program", "limit"), [("talker", 5), ("listener", 4)])
def test_programs_have_at_most_the_promised_lines(example: str, program: str, limit: int) -> None:
    source = (HERE / example / f"{program}.py").read_text()
    tree = ast.parse(source)
    doc = tree.body[0]
    code = source.splitlines()[doc.end_lineno :]
    assert len([line for line in code if line.strip()]) <= limit


def test_examples_have_the_names_of_the_rust_ones() -> None:
    def names(language: str) -> set[str]:
        folder = HERE.parent / language
        suffix = {"python": "py", "rust": "rs"}[language]
        return {path.parent.name for path in folder.glob(f"*/*.{suffix}")}

    # Two belong to pages of the guide, which test_pages.py runs; bridges are programs in Rust.
    only_rust = {"tests", "from_redis", "bridge"}
    assert names("python") - {"change_a_message"} == names("rust") - only_rust
