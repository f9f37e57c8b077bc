"""Callbacks for messages and for peer events."""

from __future__ import annotations

import ctypes
import gc
import queue
import sys
import threading
import time
import weakref

import pytest
import rnet
from conftest import LIMIT_S


def test_a_callback_gets_each_message_on_another_thread(pair):
    got: queue.Queue = queue.Queue()
    callback = lambda sample: got.put((bytes(sample), threading.get_native_id()))  # noqa: E731
    publisher, subscriber = pair(sub={"on": callback, "keep_all": True})
    for n in range(100):
        publisher.send(bytes([n]))
    received = [got.get(timeout=LIMIT_S) for _ in range(100)]
    assert [message for message, _ in received] == [bytes([n]) for n in range(100)]
    threads = {thread for _, thread in received}
    assert len(threads) == 1 and threading.get_native_id() not in threads
    (stats,) = subscriber.stats()
    assert (stats.node, stats.received, stats.connected) == ("/sender", 100, True)
    assert sum(subscriber.lost.values()) == 0


def test_a_callback_gets_values_of_a_typed_topic(pair):
    class Count(ctypes.Structure):
        _fields_ = [("n", ctypes.c_uint32)]

    got: queue.Queue = queue.Queue()
    publisher, _ = pair(type=Count, sub={"on": got.put})
    publisher.send(Count(7))
    assert got.get(timeout=LIMIT_S).n == 7


def test_a_callback_lives_as_long_as_the_node(node):
    got: queue.Queue = queue.Queue()
    receiver = node("receiver")
    receiver.subscriber("/t", on=got.put)  # The returned object is not kept.
    gc.collect()
    publisher = node("sender").publisher("/t")
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    publisher.send(b"x")
    assert bytes(got.get(timeout=LIMIT_S)) == b"x"
    receiver.close()
    publisher.send(b"y")
    assert got.empty()


def test_what_a_callback_raises_is_reported_and_the_next_message_comes(pair, unraisable):
    got: queue.Queue = queue.Queue()

    def callback(sample: rnet.Sample) -> None:
        got.put(bytes(sample))
        raise ZeroDivisionError(bytes(sample).decode())

    publisher, _ = pair(sub={"on": callback})
    publisher.send(b"one")
    publisher.send(b"two")
    assert [got.get(timeout=LIMIT_S) for _ in range(2)] == [b"one", b"two"]
    errors = [unraisable.get(timeout=LIMIT_S) for _ in range(2)]
    assert [(type(e), str(e)) for e in errors] == [
        (ZeroDivisionError, "one"),
        (ZeroDivisionError, "two"),
    ]


def test_a_bulk_callback_delays_no_urgent_one(node):
    receiver, sender = node("receiver"), node("sender")
    busy, go_on = threading.Event(), threading.Event()
    stopped: queue.Queue = queue.Queue()

    def slow(_: rnet.Sample) -> None:
        busy.set()
        assert go_on.wait(LIMIT_S)

    receiver.subscriber("/load", on=slow)
    receiver.subscriber("/stop", on=stopped.put)
    load, stop = sender.publisher("/load"), sender.publisher("/stop", urgent=True)
    load.wait_for_subscribers(1, timeout=LIMIT_S)
    stop.wait_for_subscribers(1, timeout=LIMIT_S)
    load.send(b"x")
    assert busy.wait(LIMIT_S)
    # Blocks the bulk thread for as long as this test requires.
    for n in range(10):
        stop.send(bytes([n]))
        assert bytes(stopped.get(timeout=LIMIT_S)) == bytes([n])
    assert not go_on.is_set()
    go_on.set()


def test_a_callback_may_close_its_own_subscriber(node):
    receiver, sender = node("receiver"), node("sender")
    done = threading.Event()
    calls = []

    def once(sample: rnet.Sample) -> None:
        calls.append(bytes(sample))
        assert sum(subscriber.lost.values()) == 0
        subscriber.close()
        done.set()

    subscriber = receiver.subscriber("/t", on=once)
    publisher = sender.publisher("/t")
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    publisher.send(b"1")
    publisher.send(b"2")
    assert done.wait(LIMIT_S)
    after = threading.Event()
    receiver.subscriber("/after", on=lambda _: after.set())
    then = sender.publisher("/after")
    then.wait_for_subscribers(1, timeout=LIMIT_S)
    then.send(b"x")
    assert after.wait(LIMIT_S)
    assert calls == [b"1"]


def test_a_callback_may_close_its_node(node):
    receiver, sender = node("receiver"), node("sender")
    done = threading.Event()

    def end(_: rnet.Sample) -> None:
        receiver.close()
        done.set()

    receiver.subscriber("/t", on=end)
    publisher = sender.publisher("/t")
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    publisher.send(b"x")
    assert done.wait(LIMIT_S) and receiver.closed


def test_callbacks_of_two_lanes_may_close_each_other(node):
    receiver, sender = node("receiver"), node("sender")
    both, done = threading.Barrier(2, timeout=LIMIT_S), threading.Barrier(3, timeout=LIMIT_S)
    subscribers: dict[str, rnet.Subscriber] = {}

    def close(other: str) -> None:
        both.wait()
        subscribers[other].close()
        done.wait()

    subscribers["bulk"] = receiver.subscriber("/bulk", on=lambda _: close("urgent"))
    subscribers["urgent"] = receiver.subscriber("/urgent", on=lambda _: close("bulk"))
    publishers = [sender.publisher("/bulk"), sender.publisher("/urgent", urgent=True)]
    for publisher in publishers:
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        publisher.send(b"x")
    done.wait()


def test_closing_waits_for_a_callback_that_runs(node):
    receiver, sender = node("receiver"), node("sender")
    running, go_on = threading.Event(), threading.Event()
    ended = []

    def slow(_: rnet.Sample) -> None:
        running.set()
        assert go_on.wait(LIMIT_S)
        ended.append(True)

    subscriber = receiver.subscriber("/t", on=slow)
    publisher = sender.publisher("/t")
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    publisher.send(b"x")
    assert running.wait(LIMIT_S)
    threading.Timer(0.05, go_on.set).start()
    subscriber.close()
    assert ended == [True]


def test_reading_and_a_callback_do_not_mix(pair):
    publisher, subscriber = pair(sub={"on": print})
    for use in (subscriber.recv, subscriber.try_recv, subscriber.latest, lambda: next(subscriber)):
        with pytest.raises(rnet.errors.BadValueError, match="go to the callback"):
            use()
    with pytest.raises(rnet.errors.BadValueError, match="go to the callback"):
        subscriber.on(print)


def test_on_after_waiting_for_publishers(pair):
    publisher, subscriber = pair()
    got: queue.Queue = queue.Queue()
    publisher.send(b"before")
    subscriber.on(got.put)
    publisher.send(b"after")
    assert [bytes(got.get(timeout=LIMIT_S)) for _ in range(2)] == [b"before", b"after"]


class One(ctypes.Structure):
    _fields_ = [("x", ctypes.c_float)]


class Two(ctypes.Structure):
    _fields_ = [("x", ctypes.c_double)]


class Other(ctypes.Structure):
    _rnet_name_ = "One"
    _fields_ = [("x", ctypes.c_double)]


def test_errors_go_to_on_error(node, unraisable):
    errors: queue.Queue = queue.Queue()
    node("receiver").subscriber("/t", One, on=print, on_error=errors.put)
    node("quiet").subscriber("/t", One, on=print)
    publisher = node("sender").publisher("/t", Other)
    for told in (errors, unraisable):
        error = told.get(timeout=LIMIT_S)
        assert isinstance(error, rnet.IncompatibleTypeError) and error.field_path == "x"
    publisher.close()
    with pytest.raises(rnet.errors.BadValueError, match="it needs a callback"):
        node("none").subscriber("/t", on_error=print)


def test_match_events(node):
    sender, receiver = node("sender"), node("receiver")
    publisher = sender.publisher("/t")
    events: queue.Queue = queue.Queue()
    publisher.on_match(events.put)
    subscriber = receiver.subscriber("/t")
    assert events.get(timeout=LIMIT_S).node == "/receiver"
    other = node("other").subscriber("/t")
    event = events.get(timeout=LIMIT_S)
    assert (event.kind, event.node, event.error) == ("matched", "/other", None)
    other.close()
    assert events.get(timeout=LIMIT_S) == event._replace(kind="unmatched")
    stranger = node("stranger").subscriber("/t", One)
    bad = events.get(timeout=LIMIT_S)
    assert bad.kind == "incompatible" and isinstance(bad.error, rnet.IncompatibleTypeError)
    stranger.close()

    seen: queue.Queue = queue.Queue()
    subscriber.on_match(seen.put)
    sender.close()
    assert seen.get(timeout=LIMIT_S).kind == "unmatched"


def test_node_events(node):
    events: queue.Queue = queue.Queue()
    node("watcher").on_node(events.put)
    guest = rnet.Node("guest")
    assert events.get(timeout=LIMIT_S) == ("joined", "/guest")
    guest.close()
    assert events.get(timeout=LIMIT_S) == ("left", "/guest")


def test_closing_lets_go_of_the_callback(node):
    class Callback:
        def __call__(self, sample: rnet.Sample) -> None:
            pass

    callback = Callback()
    gone = weakref.ref(callback)
    receiver = node()
    receiver.subscriber("/t", on=callback)
    del callback
    gc.collect()
    assert gone() is not None
    receiver.close()
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_programs_ends_only_the_callback(pair, unraisable, error):
    got: queue.Queue = queue.Queue()

    def callback(sample: rnet.Sample) -> None:
        got.put(bytes(sample))
        raise error("in a callback")

    publisher, _ = pair(sub={"on": callback})
    for message in (b"one", b"two"):
        publisher.send(message)
        assert got.get(timeout=LIMIT_S) == message
        assert isinstance(unraisable.get(timeout=LIMIT_S), error)


def test_a_subscriber_with_a_callback_knows_its_publishers(node):
    receiver, sender = node("receiver"), node("sender")
    events: queue.Queue = queue.Queue()
    got: queue.Queue = queue.Queue()
    subscriber = receiver.subscriber("/t", bytes, on=got.put)
    subscriber.on_match(events.put)
    assert subscriber.publisher_count == 0
    with pytest.raises(rnet.WaitTimeoutError, match="1 publishers on /t"):
        subscriber.wait_for_publishers(1, timeout=0.01)
    publisher = sender.publisher("/t")
    subscriber.wait_for_publishers(1, timeout=LIMIT_S)
    assert subscriber.publisher_count == 1
    event = events.get(timeout=LIMIT_S)
    assert (event.kind, event.node, event.id) == ("matched", "/sender", publisher.id)
    publisher.send(b"heard")
    assert got.get(timeout=LIMIT_S) == b"heard"
    publisher.close()
    assert events.get(timeout=LIMIT_S).kind == "unmatched"
    while subscriber.publisher_count:
        time.sleep(0.001)  # sleep: between two checks
    wrong = sender.publisher("/t", One)
    typed = node("typed").subscriber("/t", Two, on=got.put)
    with pytest.raises(rnet.IncompatibleTypeError):
        typed.wait_for_publishers(1, timeout=LIMIT_S)
    while wrong.subscriber_count != 1:  # the untyped one
        time.sleep(0.001)  # sleep: between two checks


def test_a_wait_for_the_publishers_of_a_callback_ends_with_the_subscriber(node):
    subscriber = node().subscriber("/t", on=print)
    ended: queue.Queue = queue.Queue()

    def wait() -> None:
        with pytest.raises(rnet.ClosedError):
            subscriber.wait_for_publishers()
        ended.put(None)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    subscriber.close()
    ended.get(timeout=LIMIT_S)


class Hook:
    """A callback that can be referred to weakly."""

    def __init__(self) -> None:
        self.events: queue.Queue = queue.Queue()

    def __call__(self, event: object) -> None:
        self.events.put(event)


def test_a_cancelled_hook_is_not_called_again(node):
    a, b = node("a"), node("b")
    publisher, first, second = a.publisher("/t"), Hook(), Hook()
    handle = publisher.on_match(first)
    publisher.on_match(second)
    handle.cancel()
    subscriber = b.subscriber("/t")
    assert second.events.get(timeout=LIMIT_S).kind == "matched"
    assert first.events.empty()
    subscriber.close()


def test_a_hook_ends_with_its_endpoint(node):
    a = node("a")
    hook = Hook()
    freed = weakref.ref(hook)
    publisher = a.publisher("/t")
    handle = publisher.on_match(hook)
    del hook
    publisher.close()
    gc.collect()
    assert freed() is None
    handle.cancel()
