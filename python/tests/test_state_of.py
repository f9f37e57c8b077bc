"""The state of another host. `make test-net` builds the link and runs the tests that need it."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import rnet

LIMIT_S = 30.0


def link_program() -> pathlib.Path | None:
    named = os.environ.get("RNET_LINK")
    root = pathlib.Path(__file__).parents[2]
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    places = [pathlib.Path(named)] if named else [target / mode / "rnet-link" for mode in ("debug", "release")]
    return next((place for place in places if place.is_file()), None)


def eventually(what: str, done: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT_S
    while not done():
        assert time.monotonic() < until, what
        time.sleep(0.01)  # sleep: between two checks of a condition


@contextlib.contextmanager
def hosts(base: pathlib.Path) -> Iterator[tuple[rnet.Node, rnet.Node, list[subprocess.Popen[bytes]]]]:
    """Two hosts on this one, called robot and desk: a node on each, and the processes of their links."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        # The port above is for the other lane.
        port = probe.getsockname()[1]
    program, links = link_program(), []
    assert program is not None
    with contextlib.ExitStack() as stack:
        nodes = []
        for host, flag in (("robot", "--listen"), ("desk", "--connect")):
            place = base / host
            place.mkdir()
            endpoint = f"tcp/127.0.0.1:{port}"
            words = [program, "run", "--domain", "t", "--dir", place, "--host", host, flag, endpoint]
            link = subprocess.Popen(words, env=os.environ | {"RNET_STATE_DIR": str(place)})
            links.append(link)
            stack.callback(link.wait)
            stack.callback(link.kill)
            node = rnet.Node("arm" if host == "robot" else "desk", domain="t", dir=place, state_dir=place)
            nodes.append(stack.enter_context(node))
        yield nodes[0], nodes[1], links


def test_keys_are_read_written_and_followed_at_their_home(tmp_path: pathlib.Path) -> None:
    with hosts(tmp_path) as (arm, desk, links):
        arm.state["/arm/mode"] = "idle"
        robot = desk.state_of("robot", timeout=LIMIT_S)

        def is_there() -> bool:
            with contextlib.suppress(rnet.errors.HomeAwayError):
                return bool(robot.get("/arm/mode") == "idle")
            return False

        eventually("the home answers", is_there)
        assert (robot.host, robot["/arm/mode"], "/arm/none" in robot) == ("robot", "idle", False)
        with pytest.raises(KeyError):
            robot["/arm/none"]
        robot["/arm/gains"] = {"kp": 12.5}
        assert arm.state["/arm/gains"] == {"kp": 12.5}
        with pytest.raises(rnet.errors.StateTypeError):
            robot["/arm/mode"] = 3
        entry = robot.entry("/arm/mode")
        assert entry is not None
        robot.compare_and_set("/arm/mode", entry.revision, "moving")
        with pytest.raises(rnet.errors.ConflictError):
            robot.compare_and_set("/arm/mode", entry.revision, "late")
        assert [one.key for one in robot.list("/arm")] == ["/arm/gains", "/arm/mode"]
        assert robot.delete("/arm/gains") and "/arm/gains" not in arm.state
        read = robot.get_with_age("/arm/mode")
        assert (read.value, read.is_stale) == ("moving", False) and read.age < LIMIT_S

        with robot.mirror("/arm") as replica:
            first = replica.recv(timeout=LIMIT_S)
            assert (first.key, first.value, first.initial) == ("/arm/mode", "moving", True)
            arm.state["/arm/mode"] = "done"
            assert replica.recv(timeout=LIMIT_S).value == "done"
            assert (replica["/arm/mode"], replica.get("/arm/none", 7)) == ("done", 7)
            assert replica.try_recv() is None and not replica.is_stale
            with pytest.raises(rnet.WaitTimeoutError):
                replica.recv(timeout=0.01)

            links[0].kill()
            eventually("the replica knows that its home is away", lambda: replica.is_stale)
            assert replica["/arm/mode"] == "done" and replica.get_with_age("/arm/mode").is_stale
        assert replica.closed and list(replica) == []
        # The last value that was read is returned, and nothing is written.
        read = robot.get_with_age("/arm/mode")
        assert (read.value, read.is_stale) == ("moving", True)
        with pytest.raises(rnet.errors.HomeAwayError, match="robot") as raised:
            robot["/arm/mode"] = "lost"
        assert raised.value.host == "robot" and arm.state["/arm/mode"] == "done"


def test_a_host_that_is_not_there_is_named(node: Callable[..., rnet.Node]) -> None:
    desk = node("desk")
    nobody = desk.state_of("nobody")
    with pytest.raises(rnet.errors.HomeAwayError, match="nobody") as raised:
        nobody["/a"] = 1
    assert (raised.value.key, raised.value.may_hold) == ("/a", False)
    with pytest.raises(rnet.errors.HomeAwayError):
        nobody.get("/a")
    for name in ("", "a/b"):
        with pytest.raises(rnet.errors.BadNameError):
            desk.state_of(name)
    with pytest.raises(rnet.errors.BadValueError):
        desk.state_of("nobody", timeout=-1)


def test_a_signal_handler_may_read_keys_while_they_are_mirrored(node: Callable[..., rnet.Node]) -> None:
    nobody = node("desk").state_of("nobody", timeout=0.8)
    read = []

    def handler(*_: object) -> None:
        with pytest.raises((rnet.errors.HomeAwayError, rnet.WaitTimeoutError)) as raised:
            nobody.get("/a")
        read.append(raised.value)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises((rnet.errors.HomeAwayError, rnet.WaitTimeoutError)):
            nobody.mirror("/a")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(read) == 1


def test_it_is_closed_with_its_node_while_others_ask(node: Callable[..., rnet.Node]) -> None:
    desk = node("desk")
    nobody = desk.state_of("nobody")
    ended = []

    def ask() -> None:
        try:
            nobody.get("/a")
        except rnet.RnetError as error:
            ended.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    desk.close()
    thread.join(LIMIT_S)
    assert len(ended) == 1
    with pytest.raises(rnet.ClosedError):
        nobody.get("/a")
    with pytest.raises(rnet.ClosedError):
        desk.state_of("nobody")


if link_program() is None:
    # `make test-net` builds it, and runs this file.
    del test_keys_are_read_written_and_followed_at_their_home
