"""The Python API of deadline, lifespan and liveliness; their semantics are tested in Rust."""

import queue
import time
from collections.abc import Callable

import pytest
import rnet

PERIOD_S = 0.04
LONG_S = 30


Nodes = Callable[..., rnet.Node]


def test_a_missed_deadline_is_counted_and_told(node: Nodes) -> None:
    a, b = node("a"), node("b")
    publisher = a.publisher("/t", deadline=PERIOD_S)
    subscriber = b.subscriber("/t", deadline=PERIOD_S)
    publisher.wait_for_subscribers(1, timeout=LONG_S)
    told: queue.Queue[rnet.events.DeadlineMissed] = queue.Queue()
    offered: queue.Queue[rnet.events.DeadlineMissed] = queue.Queue()
    subscriber.on_deadline(told.put)
    publisher.on_deadline(offered.put)
    publisher.send(b"one")
    for events in (told, offered):
        event = events.get(timeout=LONG_S)
        assert (event.node, event.total) == ("/a", event.missed)
        assert event.missed >= 1
    assert publisher.deadline_missed >= 1
    assert subscriber.stats()[0].deadline_missed >= 1


def test_old_messages_expire(node: Nodes) -> None:
    a, b = node("a"), node("b")
    publisher = a.publisher("/t", lifespan=PERIOD_S)
    subscriber = b.subscriber("/t")
    publisher.wait_for_subscribers(1, timeout=LONG_S)
    publisher.send(b"old")
    time.sleep(2 * PERIOD_S)  # sleep: the message becomes old
    assert subscriber.try_recv() is None
    stats = subscriber.stats()[0]
    assert (stats.expired, stats.skipped, sum(stats.lost.values())) == (1, 0, 0)


def test_a_publisher_that_asserts_nothing_is_not_alive(node: Nodes) -> None:
    a, b = node("a"), node("b")
    publisher = a.publisher("/t", liveliness_lease=PERIOD_S)
    changes: queue.Queue[rnet.events.LivelinessChange] = queue.Queue()
    subscriber = b.subscriber("/t", on=lambda _: None)
    subscriber.on_liveliness(changes.put)
    publisher.wait_for_subscribers(1, timeout=LONG_S)

    def until(alive: bool) -> rnet.events.LivelinessChange:
        while (change := changes.get(timeout=LONG_S)).alive != alive:
            pass
        return change

    lapsed = until(False)
    assert (lapsed.node, lapsed.counts) == ("/a", (0, 1))
    assert subscriber.liveliness == rnet.events.Liveliness(alive=0, not_alive=1)
    publisher.assert_alive()
    assert until(True).counts == (1, 0)


def test_what_does_not_fit_says_so(node: Nodes) -> None:
    publisher = node("a").publisher("/t", deadline=1.0)
    subscriber = node("b").subscriber("/t", deadline=0.5)
    for wait in (publisher.wait_for_subscribers, subscriber.wait_for_publishers):
        with pytest.raises(rnet.IncompatibleQosError, match="a deadline of 500ms"):
            wait(1, timeout=LONG_S)
    with pytest.raises(rnet.errors.BadQosError, match="deadline is 0ns"):
        node("c").publisher("/t", deadline=0)
