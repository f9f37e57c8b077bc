"""Plays docs/guide/change-a-message.md: every command in it is run, and prints what the page says.

A block ```` ```console ```` holds commands behind ``$``, each with what it prints. With a name behind it,
```` ```console old ````, it is a terminal: its command goes on running, blocks of the same name show what it prints
later, and ``^C`` ends it. A block of code with a file's name behind it is a part of that file.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import rnet

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "guide" / "change-a-message.md"
HERE = ROOT / "examples" / "python" / "change_a_message"
RNET = ROOT / "target" / "release" / "rnet"
#: Far longer than anything here takes: a hang is to fail, not to hang the tests.
LIMIT_S = 60

BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(*languages: str) -> list[tuple[str, list[str]]]:
    """Of the code blocks of the page that are in these languages, what stands behind the language, and the lines."""
    found = BLOCK.findall(PAGE.read_text())
    return [(name, text.splitlines()) for language, name, text in found if language in languages]


class Terminal:
    """A program that runs on while others are started, and the lines that it prints."""

    def __init__(self, command: str, where: Path, environment: dict[str, str]) -> None:
        self.command = command
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=where,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def next_line(self) -> str | None:
        """Waits for it; None when the program has ended."""
        return self._lines.get(timeout=LIMIT_S)

    def end(self) -> list[str]:
        """Ctrl-C; what was printed that nobody has looked at, and the exit status if it is not 0."""
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(LIMIT_S)
        finally:
            self._process.kill()
            self._reader.join(LIMIT_S)
        rest = [line for line in self._lines.queue if line is not None]
        status = self._process.returncode
        return [*rest, f"exit status {status}"] if status else rest


class Play:
    """The page, block by block."""

    def __init__(self, where: Path, environment: dict[str, str]) -> None:
        self.where = where
        self.environment = environment
        self.terminals: dict[str, Terminal] = {}

    def block(self, name: str, lines: list[str]) -> list[str]:
        """Runs a block; gives it as it is when it says what was printed."""
        return self._in_terminal(name, lines) if name else self._commands(lines)

    def _commands(self, lines: list[str]) -> list[str]:
        said: list[str] = []
        status = 0
        commands = [line for line in lines if line.startswith("$ ")]
        assert commands and lines[0] == commands[0], f"a block without a command: {lines}"
        for command in commands:
            # `$?` is that of the command before.
            done = subprocess.run(
                ["bash", "-c", f"(exit {status}); {command[2:]}"],
                cwd=self.where,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=LIMIT_S,
            )
            status = done.returncode
            said += [command, *done.stdout.splitlines()]
        return [*said, f"exit status {status}"] if status else said

    def _in_terminal(self, name: str, lines: list[str]) -> list[str]:
        said: list[str] = []
        for line in lines:
            if line.startswith("$ "):
                assert name not in self.terminals, f"{name} is busy with another program"
                self.terminals[name] = Terminal(line[2:], self.where, self.environment)
                said.append(line)
            elif line == "^C":
                said += [line, *self.terminals.pop(name).end()]
            else:
                said.append(str(self.terminals[name].next_line()))
        return said


@pytest.fixture(scope="module")
def play() -> Iterator[Play]:
    assert RNET.exists(), f"{RNET} is missing: cargo build --release --package rnet-cli"
    base = Path(tempfile.mkdtemp(prefix="rnet-examples-", dir="/dev/shm"))
    where = base / "change_a_message"
    shutil.copytree(HERE, where, ignore=shutil.ignore_patterns("__pycache__"))
    path = f"{RNET.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = dict(
        os.environ, PATH=path, PYTHONUNBUFFERED="1", RNET_DIR=str(base), RNET_DOMAIN="page"
    )
    environment.pop("RNET_GROUP", None)
    play = Play(where, environment)
    yield play
    for terminal in play.terminals.values():
        terminal.end()
    shutil.rmtree(base)


@pytest.fixture(scope="module")
def played(play: Play) -> Play:
    """After the page, which is true."""
    shown = blocks("console")
    assert len(shown) >= 20
    for name, lines in shown:
        assert play.block(name, lines) == lines, f"```console {name}"
    return play


def test_the_page_is_true(played: Play) -> None:
    assert not played.terminals, "the page leaves programs running"


def test_code_on_the_page_is_that_of_the_files() -> None:
    shown = blocks("proto", "python")
    assert len(shown) == 3
    for name, lines in shown:
        assert "\n".join(lines) in (HERE / name).read_text(), name


def test_every_rule_of_the_page_is_one() -> None:
    """With the verdict of the page on it."""
    verdicts = {"yes": "compatible", "no": "incompatible"}
    rows = re.findall(r"^\| [^|]+ \| (yes|no) \| `([a-z_.]+)` \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == 10
    rules = (ROOT / "docs" / "design" / "types.md").read_text()
    for word, rule in rows:
        assert f"| `{rule}` | {verdicts[word]} |" in rules, rule


def test_old_and_new_go_on_beside_a_wrong_one(play: Play) -> None:
    """Publishers of all three versions, readers of two; each side is told, by name, of what does not fit."""
    versions = {v: rnet.load(HERE / "proto" / v / "robot.proto").Gripper for v in ("v1", "v2", "v3")}
    with contextlib.ExitStack() as stack:

        def node(name: str) -> rnet.Node:
            made = rnet.Node(name, dir=play.environment["RNET_DIR"], domain="versions")
            return stack.enter_context(made)

        readers = {v: node(f"reads_{v}").subscribe("/gripper", versions[v]) for v in ("v1", "v2")}
        writers = {v: node(f"says_{v}").publisher("/gripper", kind) for v, kind in versions.items()}
        for v in ("v1", "v2"):
            writers[v].wait_for_subscribers(2, LIMIT_S)
        refused: dict[str, rnet.IncompatibleType] = {}
        while len(refused) < 2:
            with pytest.raises(rnet.IncompatibleType) as raised:
                writers["v3"].wait_for_subscribers(1, LIMIT_S)
            refused[raised.value.subscriber_node] = raised.value
        for v, kind in versions.items():
            writers[v].send(kind(name=v, mode=1, force=2.5))
        for v, reader in readers.items():
            heard: set[str] = set()
            errors: list[rnet.IncompatibleType] = []
            while len(heard) < 2 or not errors:
                try:
                    gripper = reader.recv(LIMIT_S)
                except rnet.IncompatibleType as error:
                    errors.append(error)
                else:
                    heard.add(gripper.name)
                    assert (gripper.mode, gripper.force) == (1, 2.5)
            assert heard == {"v1", "v2"}
            for told in (*errors, refused[f"/reads_{v}"]):
                assert (told.topic, told.publisher_node) == ("/gripper", "/says_v3")
                assert told.subscriber_node == f"/reads_{v}"
                assert (told.field_path, told.publisher) == ("force", "float force = 4")
                assert told.subscriber == "double force = 4"
            assert len(errors) == 1
            received = {one.node: (one.received, one.malformed) for one in reader.stats()}
            assert received == {"/says_v1": (1, 0), "/says_v2": (1, 0)}


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_broken_message_ends_no_reader(play: Play, version: str) -> None:
    kind = rnet.load(HERE / "proto" / version / "robot.proto").Gripper
    environment = dict(play.environment, RNET_DOMAIN=f"broken_{version}")
    reader = Terminal(f"python reader_{version}.py", play.where, environment)
    try:
        domain = environment["RNET_DOMAIN"]
        with rnet.Node("says", dir=environment["RNET_DIR"], domain=domain) as node:
            publisher = node.publisher("/gripper", kind)
            publisher.wait_for_subscribers(1, LIMIT_S)
            with publisher.loan(1) as memory:
                memory[:] = b"\x0a"
            publisher.send(kind(name="left"))
            assert "/gripper from /says" in str(reader.next_line())
            assert str(reader.next_line()).startswith("left: ")
    finally:
        assert reader.end() == []


def test_other_tools_read_the_recording(played: Play) -> None:
    from mcap.reader import make_reader
    from mcap_protobuf.decoder import DecoderFactory

    with open(played.where / "old.mcap", "rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        found = list(reader.iter_decoded_messages())
    assert len(found) == 20
    for schema, channel, message, gripper in found:
        assert schema is not None
        assert (schema.name, schema.encoding) == ("robot.Gripper", "protobuf")
        assert (channel.topic, channel.message_encoding) == ("/gripper", "protobuf")
        # A time of day, of this run.
        assert message.log_time == message.publish_time > 1_700_000_000 * 10**9
        fields = (gripper.name, gripper.mode, gripper.width, gripper.force, gripper.vendor_code)
        assert fields == ("left", 1, 0.08, 0.5, 17)
    # The comments came along, too.
    recorded = found[0][0]
    assert recorded is not None
    files = rnet.load_set(recorded.data)
    assert "Between the fingers. Unit: m" in str(files["robot.Gripper"].__doc__)
    sequences = [message.sequence for _, _, message, _ in found]
    assert sequences == list(range(sequences[0], sequences[0] + 20))
