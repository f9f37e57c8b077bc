"""Builds the examples in C and C++ that exist in Python, too, runs them as a user would, and checks their output.

They use the library that ``make build-c`` has installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_examples_python import HELLOS, LIMIT_S, domain, finish, first_line  # noqa: F401
from test_examples_python import start as start_python

HERE = Path(__file__).parent
PREFIX = HERE.parent / "target" / "c" / "prefix"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
COMPILERS = {
    ".c": [os.environ.get("CC", "cc"), "-std=c11"],
    # The options of the examples are designated initialisers.
    ".cpp": [os.environ.get("CXX", "c++"), "-std=c++20"],
}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def start(program: str, folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    """Starts an example: "cpp/hello/talker.cpp"."""
    source = HERE / program
    binary = folder / program.replace("/", "-")
    if not binary.exists():
        library = [f"-L{PREFIX}/lib", f"-Wl,-rpath,{PREFIX}/lib", "-lrnet", "-lpthread", "-ldl", "-lm"]
        command = [*COMPILERS[source.suffix], *WARNINGS, f"-I{PREFIX}/include", source, *library, "-o", binary]
        subprocess.run(command, check=True)
    return subprocess.Popen(
        [str(binary)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(program: str, folder: Path, environment: dict[str, str]) -> str:
    return finish(start(program, folder, environment))


def begin(program: str, folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    """Starts an example of any language: "typed/talker.py" is in Python."""
    is_python = program.endswith(".py")
    return start_python(program, environment) if is_python else start(program, folder, environment)


@pytest.mark.parametrize("order", [("talker", "listener"), ("listener", "talker")])
@pytest.mark.parametrize("talker", ["c/hello/talker.c", "cpp/hello/talker.cpp", "hello/talker.py"])
@pytest.mark.parametrize("listener", ["c/hello/listener.c", "cpp/hello/listener.cpp", "hello/listener.py"])
def test_hello_between_languages(
    domain: dict[str, str],  # noqa: F811
    folder: Path,
    talker: str,
    listener: str,
    order: tuple[str, str],
) -> None:
    programs = {"talker": talker, "listener": listener}
    processes = {name: begin(programs[name], folder, domain) for name in order}
    try:
        assert finish(processes["talker"]) == ""
        assert finish(processes["listener"]) == HELLOS
    finally:
        for process in processes.values():
            process.kill()
            process.wait(LIMIT_S)


@pytest.mark.parametrize("talker", ["cpp/typed/talker.cpp", "typed/talker.py"])
@pytest.mark.parametrize("listener", ["cpp/typed/listener.cpp", "typed/listener.py"])
def test_typed_between_languages(domain: dict[str, str], folder: Path, talker: str, listener: str) -> None:  # noqa: F811
    processes = [begin(program, folder, domain) for program in (listener, talker)]
    try:
        assert finish(processes[1]) == ""
        assert first_line(processes[0]) == "laser [1.5, 1.25, 2.0]\n"
    finally:
        for process in processes:
            process.kill()
            process.wait(LIMIT_S)


def test_many_topics(domain: dict[str, str], folder: Path) -> None:  # noqa: F811
    expected = "".join(f"/sensor_{n}: 100 readings, mean {10 * n + 0.5}\n" for n in range(8))
    assert run("cpp/many_topics/main.cpp", folder, domain) == expected


def test_zero_copy_image(domain: dict[str, str], folder: Path) -> None:  # noqa: F811
    frames = [f"frame {n}: 921600 bytes, from [255, 0, 0] to [{n}, {n}, {n}]\n" for n in range(30)]
    assert run("cpp/zero_copy_image/main.cpp", folder, domain) == "".join(frames) + "lost: 0\n"


def test_urgent_stop(domain: dict[str, str], folder: Path) -> None:  # noqa: F811
    text = run("cpp/urgent_stop/main.cpp", folder, domain)
    said = re.fullmatch(r"stop \(obstacle\) after \d+ us, (\d+) of 1000 loads handled\n", text)
    assert said, text
    # All loads would take 20 s of callbacks: the stop was handled before most of them.
    assert int(said[1]) < 1000


def test_late_joiner(domain: dict[str, str], folder: Path) -> None:  # noqa: F811
    assert run("cpp/late_joiner/main.cpp", folder, domain) == "map revision 3: 192 free cells of 0.05 m\n"


@pytest.mark.parametrize(("program", "limit"), [("talker", 8), ("listener", 6)])
def test_hello_has_at_most_the_promised_lines(program: str, limit: int) -> None:
    lines = (HERE / "cpp" / "hello" / f"{program}.cpp").read_text().splitlines()
    assert len([line for line in lines if line.strip() and not line.startswith("//")]) <= limit
