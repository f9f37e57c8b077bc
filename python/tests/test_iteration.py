"""Incompatible publishers do not end a loop over messages; a loop without compatible ones warns."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import rnet
from conftest import LIMIT_S
from rnet.msgs import Imu, Pose

Loop = Callable[[Any], Iterator[Any]]


def plain(subscriber: Any) -> Iterator[Any]:
    return iter(subscriber)


def merged(subscriber: Any) -> Iterator[Any]:
    return (message for _, message in rnet.Merge(subscriber))


def awaited(subscriber: Any) -> Iterator[Any]:
    async def one() -> Any:
        return await asyncio.wait_for(anext(subscriber), LIMIT_S)

    with contextlib.closing(asyncio.new_event_loop()) as runner:
        while True:
            yield runner.run_until_complete(one())


@contextlib.contextmanager
def warned() -> Iterator[queue.Queue[warnings.WarningMessage]]:
    """The warnings of all threads."""
    told: queue.Queue[warnings.WarningMessage] = queue.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda *parts: told.put(warnings.WarningMessage(*parts))
        yield told


LOOPS = pytest.mark.parametrize("loop", [plain, merged, awaited])


@LOOPS
def test_a_wrong_publisher_does_not_end_the_loop_over_another(loop: Loop, pair, node):
    publisher, subscriber = pair("/imu", Imu)
    messages = loop(subscriber)
    publisher.send(Imu(frame_id="one"))
    assert next(messages).frame_id == "one"
    wrong = node("wrong").publisher("/imu", Pose)
    with pytest.raises(rnet.IncompatibleTypeError):
        wrong.wait_for_subscribers(1, timeout=LIMIT_S)
    publisher.send(Imu(frame_id="two"))
    with warned() as told:
        assert next(messages).frame_id == "two"
    assert told.empty()


@LOOPS
def test_a_loop_over_nothing_but_a_wrong_publisher_warns_and_waits(loop: Loop, node):
    wrong = node("wrong").publisher("/imu", Pose)
    subscriber = node("receiver").subscriber("/imu", Imu)
    right = node("right")
    got: queue.Queue[str] = queue.Queue()

    def listen() -> None:
        got.put(next(loop(subscriber)).frame_id)

    with warned() as told:
        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        warning = told.get(timeout=LIMIT_S)
        assert warning.category is rnet.errors.IncompatiblePublishersWarning and issubclass(rnet.errors.IncompatiblePublishersWarning, UserWarning)
        assert "/imu" in str(warning.message) and "/wrong" in str(warning.message)
        with pytest.raises(rnet.IncompatibleTypeError):
            wrong.wait_for_subscribers(1, timeout=LIMIT_S)
        publisher = right.publisher("/imu", Imu)
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        publisher.send(Imu(frame_id="right"))
        assert got.get(timeout=LIMIT_S) == "right"
        thread.join(LIMIT_S)
    assert told.empty()


@LOOPS
def test_whoever_wants_the_warning_as_an_error_gets_it(loop: Loop, node):
    wrong = node("wrong").publisher("/imu", Pose)
    subscriber = node("receiver").subscriber("/imu", Imu)
    with warnings.catch_warnings():
        warnings.simplefilter("error", rnet.errors.IncompatiblePublishersWarning)
        with pytest.raises(rnet.errors.IncompatiblePublishersWarning, match="incompatible types on /imu"):
            next(loop(subscriber))
    assert wrong.subscriber_count == 0


def test_whoever_asks_for_a_single_message_is_told(node):
    wrong = node("wrong").publisher("/imu", Pose)
    subscriber = node("receiver").subscriber("/imu", Imu)
    with pytest.raises(rnet.IncompatibleTypeError) as told:
        subscriber.recv(timeout=LIMIT_S)
    assert (told.value.topic, told.value.publisher_node) == ("/imu", "/wrong")
    assert wrong.subscriber_count == 0


def test_each_topic_of_a_merge_stands_for_itself(pair, node):
    publisher, served = pair("/imu", Imu)
    wrong = node("wrong").publisher("/pose", Imu)
    listener = node("listener")
    alone = listener.subscriber("/pose", Pose)
    beside = listener.subscriber("/imu", Imu)
    beside.wait_for_publishers(1, timeout=LIMIT_S)
    publisher.wait_for_subscribers(2, timeout=LIMIT_S)
    with warned() as told:
        with pytest.raises(rnet.IncompatibleTypeError):
            wrong.wait_for_subscribers(1, timeout=LIMIT_S)
        publisher.send(Imu(frame_id="one"))
        assert next(rnet.Merge(alone, beside))[1].frame_id == "one"
        assert "/pose" in str(told.get(timeout=LIMIT_S).message)
    assert told.empty() and served.publisher_count == 1
