"""Subscribers and watches in event loops that poll descriptors."""

from __future__ import annotations

import asyncio
import multiprocessing
import select
import selectors
import threading
import time

import pytest
import rnet
from conftest import LIMIT_S


def is_readable(fileno: int) -> bool:
    poll = select.poll()
    poll.register(fileno, select.POLLIN)
    return bool(poll.poll(0))


def drain(source) -> list:
    return list(iter(source.try_recv, None))


def test_epoll_tells_of_messages_until_nothing_is_left(pair):
    publisher, subscriber = pair(type=bytes, sub={"reliable": True}, pub={"reliable": True})
    epoll = select.epoll()
    epoll.register(subscriber.fileno(), select.EPOLLIN)
    assert subscriber.fileno() == subscriber.fileno()
    for n in range(100):
        publisher.send(b"%d" % n)
        publisher.send(b"more")
        found: list = []
        while len(found) < 2:
            assert epoll.poll(LIMIT_S), "slept through"
            found += drain(subscriber)
        assert found == [b"%d" % n, b"more"]
    drain(subscriber)
    assert not is_readable(subscriber.fileno())
    # Other ways of receiving do not affect the descriptor.
    publisher.send(b"a")
    publisher.send(b"b")
    assert subscriber.recv(timeout=LIMIT_S) == b"a"
    assert epoll.poll(LIMIT_S)
    assert subscriber.recv(timeout=LIMIT_S) == b"b"
    with pytest.raises(rnet.WaitTimeoutError):
        subscriber.recv(timeout=0)
    assert not is_readable(subscriber.fileno())
    publisher.send(b"c")
    assert epoll.poll(LIMIT_S) and drain(subscriber) == [b"c"]


def test_a_sender_that_pauses_at_random_is_heard(pair):
    count = 2_000
    publisher, subscriber = pair(type=bytes, sub={"reliable": True}, pub={"reliable": True})
    fileno = subscriber.fileno()

    def send():
        for n in range(count):
            publisher.send(n.to_bytes(4, "little"))
            if n % 7 == 0:
                time.sleep(n % 5 * 1e-4)  # sleep: the test varies the pauses

    sender = threading.Thread(target=send)
    sender.start()
    poll = select.poll()
    poll.register(fileno, select.POLLIN)
    got: list = []
    while len(got) < count:
        assert poll.poll(LIMIT_S * 1000), "slept through"
        got += drain(subscriber)
    sender.join()
    assert got == [n.to_bytes(4, "little") for n in range(count)]


def test_asyncio_add_reader(pair):
    publisher, subscriber = pair(type=bytes, sub={"reliable": True}, pub={"reliable": True})
    got: list = []

    async def main():
        done = asyncio.Event()

        def on_ready():
            got.extend(drain(subscriber))
            if len(got) == 50:
                done.set()

        loop = asyncio.get_running_loop()
        loop.add_reader(subscriber, on_ready)

        async def send():
            for n in range(50):
                publisher.send(b"%d" % n)
                await asyncio.sleep(0.001)

        sending = asyncio.create_task(send())
        await asyncio.wait_for(done.wait(), LIMIT_S)
        await sending
        assert loop.remove_reader(subscriber)

    asyncio.run(main())
    assert got == [b"%d" % n for n in range(50)]


def test_messages_and_changes_of_state_in_one_selector(node):
    robot, other = node("robot"), node("other")
    subscribers = [robot.subscriber(f"/t{n}", bytes) for n in range(16)]
    watch = robot.state.watch("/arm")
    selector = selectors.DefaultSelector()
    for source in (*subscribers, watch):
        selector.register(source, selectors.EVENT_READ)
    publishers = [other.publisher(f"/t{n}", bytes) for n in range(16)]
    for publisher in publishers:
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        publisher.send(b"x")
    other.state["/arm/mode"] = "idle"
    left = {*subscribers, watch}
    while left:
        ready = selector.select(LIMIT_S)
        assert ready
        for key, _ in ready:
            if drain(key.fileobj):
                left.remove(key.fileobj)


def test_closing_the_node_wakes_who_waits_for_the_descriptor(node):
    robot = node("robot")
    subscriber, watch = robot.subscriber("/t"), robot.state.watch("/arm")
    for source in (subscriber, watch):
        drain(source)
    epoll = select.epoll()
    filenos = {subscriber.fileno(), watch.fileno()}
    for fileno in filenos:
        epoll.register(fileno, select.EPOLLIN)
    woken: list = []

    def wait():
        while len(woken) < 2:
            for fileno, _ in epoll.poll(LIMIT_S):
                epoll.unregister(fileno)
                woken.append(fileno)

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.05)  # sleep: so that the thread usually waits; the test is also valid if it does not
    robot.close()
    waiting.join(LIMIT_S)
    assert set(woken) == filenos
    for source in (subscriber, watch):
        with pytest.raises(rnet.ClosedError):
            source.try_recv()
        with pytest.raises(rnet.ClosedError):
            source.fileno()
    assert all(is_readable(fileno) for fileno in filenos)


def test_a_subscriber_with_a_callback_has_no_descriptor(node):
    subscriber = node().subscriber("/t", on=print)
    with pytest.raises(rnet.errors.BadValueError):
        subscriber.fileno()


def child_of_a_fork(subscriber, fileno, result):
    try:
        subscriber.fileno()
    except rnet.ClosedError:
        result.put("closed")


def test_a_forked_child_leaves_the_descriptor_alone(pair):
    publisher, subscriber = pair(type=bytes)
    fileno = subscriber.fileno()
    drain(subscriber)
    context = multiprocessing.get_context("fork")
    result = context.SimpleQueue()
    child = context.Process(target=child_of_a_fork, args=(subscriber, fileno, result))
    child.start()
    child.join(LIMIT_S)
    assert child.exitcode == 0 and result.get() == "closed"
    publisher.send(b"x")
    poll = select.poll()
    poll.register(fileno, select.POLLIN)
    assert poll.poll(LIMIT_S * 1000) and drain(subscriber) == [b"x"]
