"""Plays a page of the documentation: every command in it is run, and prints what the page says.

A block ```` ```console ```` holds commands behind ``$``, each with what it prints. With a name behind it,
```` ```console old ````, it is a terminal: its command goes on running, blocks of the same name show what it prints
later, and ``^C`` ends it. A line of only ``…`` stands for lines that the page leaves out.
"""

from __future__ import annotations

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
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
RNET = ROOT / "target" / "release" / "rnet"
#: Far longer than anything here takes: a hang is to fail, not to hang the tests.
LIMIT_S = 60

BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, *languages: str) -> list[tuple[str, list[str]]]:
    """Of the code blocks of the page that are in these languages, what stands behind the language, and the lines."""
    found = BLOCK.findall(page.read_text())
    return [(name, text.splitlines()) for language, name, text in found if language in languages]


def agrees(shown: list[str], said: list[str]) -> bool:
    """Whether a block of the page shows what was said, but for what it leaves out."""
    lines = (r"(.*\n)*" if line.strip() == "…" else re.escape(line) + r"\n" for line in shown)
    return re.fullmatch("".join(lines), "".join(f"{line}\n" for line in said)) is not None


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
            elif "^C" in said and name not in self.terminals:
                # Of what is said at the end, which is all there already.
                continue
            else:
                said.append(str(self.terminals[name].next_line()))
        return said


@contextmanager
def play_in(where: Path | None = None) -> Iterator[Play]:
    """A player in a copy of this folder, or in an empty one, and in a domain of its own; programs that the page leaves running are ended."""
    assert RNET.exists(), f"{RNET} is missing: cargo build --release --package rnet-cli"
    base = Path(tempfile.mkdtemp(prefix="rnet-examples-", dir="/dev/shm"))
    folder = base / "folder"
    if where is None:
        folder.mkdir()
    else:
        shutil.copytree(where, folder, ignore=shutil.ignore_patterns("__pycache__"))
    path = f"{RNET.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = dict(
        os.environ, PATH=path, PYTHONUNBUFFERED="1", RNET_DIR=str(base), RNET_DOMAIN="page"
    )
    environment["RNET_STATE_DIR"] = str(base / "durable")
    environment.pop("RNET_GROUP", None)
    play = Play(folder, environment)
    try:
        yield play
    finally:
        for terminal in play.terminals.values():
            terminal.end()
        shutil.rmtree(base)
