"""A domain for each test, which is removed afterwards, and nodes in it."""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

import pytest
import rnet

#: Far longer than any operation here takes: a hanging test fails instead of blocking the run.
LIMIT_S = 100.0

_numbers = itertools.count()


def stable_repr(value: object) -> str:
    """Names a parameter the same in each process of a test run: without addresses, and with sets in order."""
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__}{sorted(map(repr, value))}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    """Ends a test that hangs: a loop over messages does not have its own time limit."""

    def end(*_: object) -> None:
        raise TimeoutError(f"the test took more than {3 * LIMIT_S:.0f} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, 3 * LIMIT_S)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def domain(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The directory of the test's domain, which new nodes and processes join by default."""
    base = tempfile.mkdtemp(prefix="rnet-pytest-", dir="/dev/shm")
    name = f"t{next(_numbers)}"
    monkeypatch.setenv("RNET_DIR", base)
    monkeypatch.setenv("RNET_DOMAIN", name)
    monkeypatch.setenv("RNET_STATE_DIR", f"{base}/keep")
    monkeypatch.delenv("RNET_GROUP", raising=False)
    yield f"{base}/rnet-{os.getuid()}-{name}"
    shutil.rmtree(base)


@pytest.fixture
def node(domain: str) -> Iterator[Callable[..., rnet.Node]]:
    """Makes nodes, which are closed at the end."""
    made: list[rnet.Node] = []

    def make(name: str = "node", **settings: str) -> rnet.Node:
        made.append(rnet.Node(name, **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> queue.Queue:
    """The arguments of sys.unraisablehook."""
    told: queue.Queue = queue.Queue()
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.put(args.exc_value))
    return told


Pair = tuple[rnet.Publisher, rnet.Subscriber]


@pytest.fixture
def pair(node: Callable[..., rnet.Node]) -> Callable[..., Pair]:
    """Makes a publisher and a subscriber that are connected."""

    def make(topic: str = "/t", type: object = None, *, pub: dict = {}, sub: dict = {}) -> Pair:
        publisher = node("sender").publisher(topic, type, **pub)
        subscriber = node("receiver").subscriber(topic, type, **sub)
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        if "on" not in sub:
            subscriber.wait_for_publishers(1, timeout=LIMIT_S)
        return publisher, subscriber

    return make


@pytest.fixture
def program() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts Python programs, given as text and arguments; they are killed at the end if they still run."""
    started: list[subprocess.Popen[str]] = []

    def start(text: str, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", text, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        # A grandchild may hold the pipes: do not wait for it.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=LIMIT_S)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit code, output and errors of a process that exits by itself."""
    out, err = process.communicate(timeout=LIMIT_S)
    return process.returncode, out, err


def settle(process: subprocess.Popen[str], waits: str = "S") -> None:
    """Returns when many checks in a row have found the main thread waiting: asleep, or spinning."""
    looks = 0
    while looks < 100:
        with open(f"/proc/{process.pid}/task/{process.pid}/stat") as stat:
            state = stat.read().rsplit(")", 1)[1].split()[0]
        looks = looks + 1 if state == waits else 0
