"""Exceptions of callbacks, timers and handlers are counted for their node, and reported on `/log`."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import pytest
import rnet
from rnet.msgs import Log

from conftest import LIMIT_S

Make = Callable[..., rnet.Node]


def wait_until(done: Callable[[], bool]) -> None:
    """Waits for a condition; the limit of the test ends it."""
    while not done():
        threading.Event().wait(0.001)  # sleep: between two checks of a condition


@pytest.fixture
def lines(node: Make) -> rnet.Subscriber[Log]:
    """The lines that nodes log from now on."""
    return node("reader").subscriber("/log", Log, transient_local=True, keep_all=True)


def test_each_kind_is_counted_and_reported(
    node: Make, lines: rnet.Subscriber[Log], unraisable: queue.Queue
) -> None:
    broken, other = node("broken"), node("other")
    assert broken.callback_errors == 0

    def message(_: object) -> None:
        raise ValueError("of a message")

    def tick(_: rnet.events.Tick) -> None:
        raise ValueError("of a timer")

    def change(_: object) -> None:
        raise ValueError("of a parameter")

    def handler(_: bytes) -> bytes:
        raise ValueError("of a handler")

    def apply(_: bytes) -> None:
        raise ValueError("of a command")

    def reported(count: int, text: str, function: Callable[..., object]) -> None:
        wait_until(lambda: broken.callback_errors >= count)
        line = lines.recv(timeout=LIMIT_S)
        assert line.name == "/broken" and line.level == Log.ERROR
        first, *trace = line.message.splitlines()
        assert first == f"{function.__qualname__} failed: ValueError: {text}"
        assert trace[0].startswith("Traceback") and f"in {function.__name__}" in line.message
        assert line.file.endswith("test_callback_errors.py") and line.line > 0

    broken.subscriber("/t", on=message)
    out = other.publisher("/t")
    out.wait_for_subscribers(timeout=LIMIT_S)
    out.send(b"x")
    reported(1, "of a message", message)
    broken.timer(0.001, tick, once=True)
    reported(2, "of a timer", tick)
    broken.param("/gain", default=1.0, on_change=change).set(2.0)
    reported(3, "of a parameter", change)
    service = broken.service("/serve", None, None, handler)
    with pytest.raises(rnet.CallFailedError):
        other.call("/serve", b"x", timeout=LIMIT_S)
    reported(4, "of a handler", handler)
    command = broken.command("/cmd", None, apply, fallback="hold", deadline=60)
    with other.drive("/cmd", None) as driver:
        driver.send(b"x")
        reported(5, "of a command", apply)
    assert other.callback_errors == 0
    assert unraisable.qsize() == 4, "the caller has the exception of the handler"
    service.close()
    command.close()


def test_exceptions_of_handlers_are_printed_once_a_second(
    node: Make, capfd: pytest.CaptureFixture[str]
) -> None:
    broken, other = node("broken"), node("other")

    def handler(_: bytes) -> bytes:
        raise ValueError("of a handler")

    with broken.service("/serve", None, None, handler):
        for _ in range(20):
            with pytest.raises(rnet.CallFailedError, match="see rnet log --node /broken"):
                other.call("/serve", b"x", timeout=LIMIT_S)
    printed = capfd.readouterr().err
    assert "[/broken]: " in printed and "handler failed: ValueError: of a handler" in printed
    assert "Traceback" in printed and 'raise ValueError("of a handler")' in printed
    assert printed.count("ValueError: of a handler") < 20


def test_one_that_fails_always_is_counted_and_reported_once_a_second(
    node: Make, lines: rnet.Subscriber[Log], unraisable: queue.Queue
) -> None:
    broken = node("broken")

    def tick(_: rnet.events.Tick) -> None:
        raise ValueError("again")

    with broken.timer(0.001, tick):
        first = lines.recv(timeout=LIMIT_S)
        second = lines.recv(timeout=LIMIT_S)
    assert " more since the last report)" not in first.message
    assert " more since the last report)" in second.message
    assert broken.callback_errors >= 2 and unraisable.qsize() >= 2
