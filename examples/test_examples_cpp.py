"""Builds the examples in C and C++, runs them as a user would, and checks their output.

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
#: What an example needs besides rnet.
LIBRARIES = {
    "eigen": ["-isystem", "/usr/include/eigen3"],
    "opencv": ["-isystem", "/usr/include/opencv4", "-lopencv_core"],
}
#: C has no classes for messages: its listener prints the scan in protobuf's JSON, with its names.
JSON = '{"frameId":"laser","ranges":[1.5,1.25,2.0]}\n'
BOTH = pytest.mark.parametrize("language", ["c", "cpp"])


def main_of(example: str, language: str) -> str:
    return f"{language}/{example}/main.{language}"


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
        library += LIBRARIES.get(source.parent.name, [])
        command = [*COMPILERS[source.suffix], *WARNINGS, f"-I{PREFIX}/include", source, *library, "-o", binary]
        subprocess.run(command, check=True)
    return subprocess.Popen(
        [str(binary)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
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


@pytest.mark.parametrize("talker", ["c/typed/talker.c", "cpp/typed/talker.cpp", "typed/talker.py"])
@pytest.mark.parametrize("listener", ["c/typed/listener.c", "cpp/typed/listener.cpp", "typed/listener.py"])
def test_typed_between_languages(domain: dict[str, str], folder: Path, talker: str, listener: str) -> None:  # noqa: F811
    processes = [begin(program, folder, domain) for program in (listener, talker)]
    scan = JSON if listener.startswith("c/") else "laser [1.5, 1.25, 2.0]\n"
    try:
        assert finish(processes[1]) == ""
        assert first_line(processes[0]) == scan
    finally:
        for process in processes:
            process.kill()
            process.wait(LIMIT_S)


@BOTH
def test_many_topics(domain: dict[str, str], folder: Path, language: str) -> None:  # noqa: F811
    expected = "".join(f"/sensor_{n}: 100 readings, mean {10 * n + 0.5}\n" for n in range(8))
    assert run(main_of("many_topics", language), folder, domain) == expected


@BOTH
def test_parameters(domain: dict[str, str], folder: Path, language: str) -> None:  # noqa: F811
    refused = "refused: bad value for parameter /gain of /arm: 11.0 is above its maximum 10.0 1/s"
    expected = f"gain is 1.0\n{refused}\ngain is 2.5 now\n"
    assert run(main_of("parameters", language), folder, domain) == expected


@BOTH
def test_state(domain: dict[str, str], folder: Path, language: str) -> None:  # noqa: F811
    text = run(main_of("state", language), folder, domain)
    # The library keeps the text of JSON, of which readers may not expect the order and the spaces.
    arm = 'the arm is idle, gains are {"kp": 12.5, "kd": 0.5}\n'
    assert text == arm + "job 3: moving to [0.5, -0.25]\nalive: true\nalive: false\n"


@BOTH
def test_zero_copy_image(domain: dict[str, str], folder: Path, language: str) -> None:  # noqa: F811
    frames = [f"frame {n}: 921600 bytes, from [255, 0, 0] to [{n}, {n}, {n}]\n" for n in range(30)]
    assert run(main_of("zero_copy_image", language), folder, domain) == "".join(frames) + "lost: 0\n"


@BOTH
def test_urgent_stop(domain: dict[str, str], folder: Path, language: str) -> None:  # noqa: F811
    text = run(main_of("urgent_stop", language), folder, domain)
    said = re.fullmatch(r"stop \(obstacle\) after \d+ us, (\d+) of 1000 loads handled\n", text)
    assert said, text
    # All loads would take 20 s of callbacks: the stop was handled before most of them.
    assert int(said[1]) < 1000


@BOTH
def test_late_joiner(domain: dict[str, str], folder: Path, language: str) -> None:  # noqa: F811
    assert run(main_of("late_joiner", language), folder, domain) == "map revision 3: 192 free cells of 0.05 m\n"


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        ("opencv", "640 x 480 bgr8, from [255, 0, 0] to [0, 128, 255]\nis a view: true\n"),
        ("eigen", "power: 30\n64 x 64, trace 192\n"),
        ("point_cloud", "1000 points of lidar, the farthest at 499.5 m, 63 in ring 3\n"),
    ],
)
def test_other_libraries(domain: dict[str, str], folder: Path, example: str, expected: str) -> None:  # noqa: F811
    assert run(main_of(example, "cpp"), folder, domain) == expected


def test_asio(domain: dict[str, str], folder: Path) -> None:  # noqa: F811
    # A loaded machine receives more than one message at a time.
    assert run("cpp/asio/main.cpp", folder, domain).startswith("1\n2\n3\n4\n5\n")


def test_poll(domain: dict[str, str], folder: Path) -> None:  # noqa: F811
    process = start("cpp/poll/main.cpp", folder, domain)
    try:
        assert process.stdin is not None
        process.stdin.write("hello\n")
        process.stdin.flush()
        assert first_line(process) == "received: hello\n"
        assert finish(process) == ""
    finally:
        process.kill()
        process.wait(LIMIT_S)


def test_all_languages_have_the_same_examples() -> None:
    def names(language: str, suffix: str) -> set[str]:
        return {path.parent.name for path in (HERE / language).glob(f"*/*.{suffix}")}

    # That of Python and its page show versions of a message; those of C++ alone show libraries of C++.
    shared = names("python", "py") - {"change_a_message"}
    assert names("c", "c") == shared
    only_cpp = {"asio", "eigen", "log", "opencv", "point_cloud", "poll"}
    assert names("cpp", "cpp") == shared | only_cpp


@pytest.mark.parametrize(("program", "limit"), [("talker", 8), ("listener", 6)])
def test_hello_has_at_most_the_promised_lines(program: str, limit: int) -> None:
    lines = (HERE / "cpp" / "hello" / f"{program}.cpp").read_text().splitlines()
    assert len([line for line in lines if line.strip() and not line.startswith("//")]) <= limit
