"""What ends a loop over messages, and what does not: publishers whose types do not fit."""

from __future__ import annotations

import asyncio
import contextlib
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


LOOPS = pytest.mark.parametrize("loop", [plain, merged, awaited])


@LOOPS
def test_a_wrong_publisher_does_not_end_the_loop_over_another(loop: Loop, pair, node):
    publisher, subscriber = pair("/imu", Imu)
    messages = loop(subscriber)
    publisher.send(Imu(frame_id="one"))
    assert next(messages).frame_id == "one"
    wrong = node("wrong").publisher("/imu", Pose)
    with pytest.raises(rnet.IncompatibleType):
        wrong.wait_for_subscribers(1, LIMIT_S)
    publisher.send(Imu(frame_id="two"))
    assert next(messages).frame_id == "two"


@LOOPS
def test_a_loop_over_nothing_but_a_wrong_publisher_says_so(loop: Loop, node):
    wrong = node("wrong").publisher("/imu", Pose)
    subscriber = node("receiver").subscribe("/imu", Imu)
    with pytest.raises(rnet.IncompatibleType) as told:
        next(loop(subscriber))
    assert (told.value.topic, told.value.publisher_node) == ("/imu", "/wrong")
    assert (told.value.publisher, told.value.subscriber) != ("", "")
    with pytest.raises(rnet.IncompatibleType):
        wrong.wait_for_subscribers(1, LIMIT_S)


def test_each_topic_of_a_merge_stands_for_itself(pair, node):
    _, served = pair("/imu", Imu)
    wrong = node("wrong").publisher("/pose", Imu)
    listener = node("listener")
    alone = listener.subscribe("/pose", Pose)
    beside = listener.subscribe("/imu", Imu)
    beside.wait_for_publishers(1, LIMIT_S)
    with pytest.raises(rnet.IncompatibleType) as told:
        next(iter(rnet.Merge(beside, alone)))
    assert told.value.topic == "/pose" and served.publisher_count == 1
    assert wrong.subscriber_count == 0
