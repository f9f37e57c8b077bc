"""Runs a page of the documentation: every command runs and prints the output shown on the page.

A block ```` ```console ```` has commands after ``$``, each with its output. With a name, ```` ```console old ````, it is a
terminal: its command keeps running, blocks of the same name show its later output, and ``^C`` ends it. A line of only
``…`` matches lines omitted on the page, ``…`` within a line matches text that differs between runs.

A block ```` ```python arm.py ```` is that file: a command of the page runs it. C, C++, CMake and XML are the same;
``test_cpp.py`` compiles those without a name. Python without a name runs here: a block that begins with an import is a
separate program, another block continues the previous one. ``examples/given/PAGE/`` has the preconditions of a page:
files, and in ``names.py`` names; ``Done`` ends an endless block. A block ```` ```text ```` after Python is its output.
```` ```pycon ```` is a session (doctest).
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import doctest
import io
import itertools
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rnet

ROOT = Path(__file__).parent.parent
RNET = ROOT / "target" / "debug" / "rnet"
GIVEN = ROOT / "examples" / "given"
#: Where ``make build-c`` installs the C library.
C_PREFIX = ROOT / "target" / "c" / "prefix"
#: Far longer than any test takes: a hang fails instead of blocking the tests.
LIMIT_S = 60

BLOCK = re.compile(r"^```(\w+)[ ,]?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

PROGRAM = re.compile(r"^```python\n(.*?)^```\n(?:\n*```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def blocks(page: Path, *languages: str) -> list[tuple[str, str, list[str]]]:
    """The code blocks of the page in these languages, or all: language, the text after it, and the lines."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [
        (language, name, text.splitlines())
        for language, name, text in found
        if not languages or language in languages
    ]


def agrees(shown: list[str], said: list[str]) -> bool:
    """Whether a block of the page matches the output, except for omitted parts."""

    def pattern(line: str) -> str:
        return r"(.*\n)*" if line.strip() == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\s*\n"

    return re.fullmatch("".join(map(pattern, shown)), "".join(f"{line}\n" for line in said)) is not None


class Terminal:
    """A program that runs in the background, and its output lines."""

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
        """Waits for the next line; None after the program has exited."""
        return self._lines.get(timeout=LIMIT_S)

    def end(self) -> list[str]:
        """Sends Ctrl-C; returns the unread output, and the exit status if it is not 0."""
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
        """Runs a block; returns its lines with the actual output."""
        return self._in_terminal(name, lines) if name else self._commands(lines)

    def _commands(self, lines: list[str]) -> list[str]:
        said: list[str] = []
        status = 0
        commands = [line for line in lines if line.startswith("$ ")]
        assert commands and lines[0] == commands[0], f"a block without a command: {lines}"
        for command in commands:
            # `$?` is the status of the previous command.
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
                # `end` has returned all of this output.
                continue
            else:
                try:
                    said.append(str(self.terminals[name].next_line()))
                except queue.Empty:
                    raise TimeoutError(f"nothing came for {line!r}, after {said}") from None
        return said


@contextmanager
def play_in(where: Path | None = None) -> Iterator[Play]:
    """A player in a copy of this folder or an empty one, and in its own domain; it ends programs that still run."""
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
    environment["CMAKE_PREFIX_PATH"] = str(C_PREFIX)
    environment["PKG_CONFIG_PATH"] = str(C_PREFIX / "lib" / "pkgconfig")
    environment["XDG_CONFIG_HOME"] = str(base / "config")
    for name in ("RNET_GROUP", "RNET_KEYS"):
        environment.pop(name, None)
    play = Play(folder, environment)
    try:
        yield play
    finally:
        with contextlib.ExitStack() as ends:
            ends.callback(shutil.rmtree, base)
            for terminal in play.terminals.values():
                ends.callback(terminal.end)


def play_commands(page: Path, play: Play) -> None:
    """Writes the files of the page and runs its commands, in the order of the page."""
    for language, name, lines in blocks(page, "console", "proto", "python", "c", "cpp", "cmake", "xml"):
        if language == "console":
            try:
                said = play.block(name, lines)
            except TimeoutError as late:
                raise AssertionError(f"{page.name}: ```console {name}: {late}") from late
            assert agrees(lines, said), f"{page.name}: ```console {name}\n" + "\n".join(said)
            publishes = re.match(r"\$ rnet topic pub (\S+)", lines[0])
            if name and publishes:
                # An observer prints a notice if the topic has no publisher yet.
                play.block("", [f"$ rnet topic echo {publishes[1]} --once"])
        elif name and (play.where / name).exists():
            assert "\n".join(lines) in (play.where / name).read_text(), f"{page.name}: {name} differs from the file"
        elif name:
            (play.where / name).parent.mkdir(parents=True, exist_ok=True)
            (play.where / name).write_text("\n".join([*lines, ""]))


class Done(Exception):  # noqa: N818
    """Ends an endless loop of a page."""


def until(count: int, function: Callable[..., Any] = lambda *_: None) -> Callable[..., Any]:
    """The function, whose ``count``-th call ends the block."""
    calls = itertools.count(1)

    def counted(*given: Any) -> Any:
        if next(calls) == count:
            function(*given)
            raise Done
        return function(*given)

    return counted


class Session:
    """The Python blocks of a page without a file name, run one after the other in this process."""

    def __init__(self, page: Path) -> None:
        self.page = page
        self.names: dict[str, Any] = {}
        self._printed = io.StringIO()

    def block(self, lines: list[str], output: list[str] | None) -> None:
        if lines[0].startswith(("import ", "from ")) and "import rnet" in lines or not self.names:
            self._begin()
        before = len(self._printed.getvalue())
        with contextlib.redirect_stdout(self._printed):
            code = compile("\n".join(lines), str(self.page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            with contextlib.suppress(Done):
                running = eval(code, self.names)  # noqa: S307
                if running is not None:
                    asyncio.run(running)
            # Callbacks print later.
            end = time.monotonic() + LIMIT_S
            while output is not None and not agrees(output, said := self._printed.getvalue()[before:].splitlines()):
                assert time.monotonic() < end, f"{self.page.name}: {said} instead of {output}"
                time.sleep(0.01)  # sleep: waits for printed output

    def _begin(self) -> None:
        self.close()
        given = GIVEN / self.page.stem / "names.py"
        self.names = {"__name__": "__main__", "Done": Done, "until": until}
        if given.exists():
            exec(compile(given.read_text(), str(given), "exec"), self.names)  # noqa: S102

    def close(self) -> None:
        for node in self.names.values():
            if isinstance(node, rnet.Node):
                node.close()
        # Functions keep references to nodes that have no name here.
        self.names.clear()


def run_python(page: Path, left_out: Callable[[list[str]], bool]) -> None:
    session = Session(page)
    try:
        for code, output in PROGRAM.findall(page.read_text(encoding="utf-8")):
            if not left_out(code.splitlines()):
                session.block(code.splitlines(), output.splitlines() if output else None)
    finally:
        session.close()


def run_session(page: Path) -> None:
    """Runs the ```pycon blocks of a page as one session."""
    text = "".join("\n".join([*lines, ""]) for _, _, lines in blocks(page, "pycon"))
    session = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    try:
        failed, _ = runner.run(session, out=said.append, clear_globs=False)
    finally:
        if "node" in session.globs:
            session.globs["node"].close()
    assert failed == 0, "".join(said)
