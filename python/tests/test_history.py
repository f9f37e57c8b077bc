"""The unread messages that a subscriber keeps, in every form of receiving."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest
import rnet
from conftest import LIMIT_S

UNREAD = 100
KEPT = 10


def first_bytes(subscriber: rnet.Subscriber, count: int) -> list[int]:
    return [subscriber.recv(timeout=LIMIT_S)[0] for _ in range(count)]


def by_async_for(subscriber: rnet.Subscriber, count: int) -> list[int]:
    async def read() -> list[int]:
        got = []
        async for message in subscriber:
            got.append(message[0])
            if len(got) == count:
                break
        return got

    return asyncio.run(asyncio.wait_for(read(), LIMIT_S))


def by_awaiting(subscriber: rnet.Subscriber, count: int) -> list[int]:
    async def read() -> list[int]:
        return [(await subscriber.recv_async())[0] for _ in range(count)]

    return asyncio.run(asyncio.wait_for(read(), LIMIT_S))


def by_callback(subscriber: rnet.Subscriber, count: int) -> list[int]:
    told: queue.Queue[bytes] = queue.Queue()
    subscriber.on(told.put)
    return [told.get(timeout=LIMIT_S)[0] for _ in range(count)]


FORMS: dict[str, Callable[[rnet.Subscriber, int], list[int]]] = {
    "recv": first_bytes,
    "try_recv": lambda sub, count: [sub.try_recv()[0] for _ in range(count)],
    "for": lambda sub, count: [message[0] for message in islice(sub, count)],
    "samples": lambda sub, count: [bytes(s)[0] for s in islice(sub.samples(), count)],
    "recv_many": lambda sub, count: sub.recv_many(2 * count, timeout=LIMIT_S, dtype="u1").tolist(),
    "merge": lambda sub, count: [m[0] for _, m in islice(rnet.Merge(sub), count)],
    "async for": by_async_for,
    "await": by_awaiting,
    "callback": by_callback,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("options", "kept"),
    [({}, KEPT), ({"keep_last": 3}, 3), ({"keep_all": True}, UNREAD), ({"reliable": True}, UNREAD)],
    ids=lambda value: str(value),
)
def test_every_form_keeps_the_same_messages(pair, form, options, kept):
    publisher, subscriber = pair(type=bytes, pub={"reliable": True}, sub=options)
    for n in range(UNREAD):
        publisher.send(bytes([n]))
    assert subscriber.behind.messages == UNREAD and subscriber.behind.age_s > 0
    assert FORMS[form](subscriber, kept) == list(range(UNREAD - kept, UNREAD))
    (stats,) = subscriber.stats()
    assert (stats.received, stats.skipped, sum(stats.lost.values())) == (kept, UNREAD - kept, 0)
    assert subscriber.behind == stats.behind == rnet.events.Backlog(0, 0.0)


def test_latest_skips_the_messages_of_other_publishers(node):
    receiver = node("receiver")
    publishers = [node(f"sender{n}").publisher("/t") for n in range(3)]
    subscriber = receiver.subscriber("/t")
    subscriber.wait_for_publishers(3, timeout=LIMIT_S)
    for publisher in publishers:
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        publisher.send(b"older")
        publisher.send(publisher.topic.encode() + bytes([publishers.index(publisher)]))
    assert bytes(subscriber.latest(timeout=LIMIT_S)) == b"/t\x02"
    assert subscriber.try_recv() is None
    stats = {stats.node: (stats.received, stats.skipped) for stats in subscriber.stats()}
    assert stats == {"/sender0": (0, 2), "/sender1": (0, 2), "/sender2": (1, 1)}
    assert sum(subscriber.lost.values()) == 0


def test_rows_of_a_batch_are_the_last_ones(pair):
    publisher, subscriber = pair(type="u4")
    publisher.send_many(np.arange(1000, dtype="u4"))
    assert subscriber.recv_many(timeout=LIMIT_S).tolist() == list(range(1000 - KEPT, 1000))
