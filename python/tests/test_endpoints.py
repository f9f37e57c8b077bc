"""``Node.on_endpoint`` and ``Node.subscribe_any``."""

from __future__ import annotations

import gc
import queue
import signal
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
import rnet
from rnet import msgs

from conftest import LIMIT_S

CHILD = """
import rnet
publisher = rnet.Node("victim").publisher("/victim/beat")
print("ready", flush=True)
publisher.wait_for_subscribers()
publisher.send(b"beat")
publisher.wait_for_subscribers(2)  # It ends by being killed.
"""


def start_child() -> subprocess.Popen:
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    return child


def test_endpoints_that_exist_come_and_go(node):
    talker, watcher = node("talker"), node("watcher")
    publisher = talker.publisher("/t", np.dtype([("x", "f8")]), reliable=True)
    events: queue.Queue = queue.Queue()
    watch = watcher.on_endpoint(events.put)
    kind, end = events.get(timeout=LIMIT_S)
    assert (kind, end.role, end.topic, end.node) == ("opened", "publisher", "/t", "/talker")
    assert end.id == publisher.id
    assert end.type["kind"] == "plain" and end.qos["reliability"] == "reliable"
    subscriber = watcher.subscriber("/s", bytes)
    kind, own = events.get(timeout=LIMIT_S)
    assert (kind, own.role, own.topic, own.node) == ("opened", "subscriber", "/s", "/watcher")
    publisher.close()
    assert events.get(timeout=LIMIT_S) == ("closed", end)
    watch.cancel()
    assert watch.cancelled
    subscriber.close()
    talker.publisher("/u")
    assert events.empty()


def test_the_endpoints_of_a_process_that_is_killed_are_lost(node):
    events: queue.Queue = queue.Queue()
    with node("watcher").on_endpoint(events.put) as watch:
        child = start_child()
        kind, end = events.get(timeout=LIMIT_S)
        assert (kind, end.node, end.topic) == ("opened", "/victim", "/victim/beat")
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert events.get(timeout=LIMIT_S) == ("lost", end)
    assert watch.cancelled


def test_what_a_callback_raises_is_shown_and_the_next_event_is_told(node, unraisable):
    home = node()
    told: queue.Queue = queue.Queue()

    def callback(event: rnet.events.EndpointEvent) -> None:
        if event.endpoint.topic == "/log":
            return  # the topic of the first report of the exception below
        told.put(event.endpoint.topic)
        raise ValueError(event.endpoint.topic)

    home.on_endpoint(callback)
    ends = [home.publisher(topic) for topic in ("/a", "/b")]
    for topic in ("/a", "/b"):
        assert told.get(timeout=LIMIT_S) == topic
        assert str(unraisable.get(timeout=LIMIT_S)) == topic
    assert len(ends) == 2


def test_a_handle_may_be_cancelled_in_its_own_callback_and_goes_with_its_node(node):
    home = node()
    handles: queue.Queue = queue.Queue()
    calls: queue.Queue = queue.Queue()

    def cancels(event: rnet.events.EndpointEvent) -> None:
        calls.put(event)
        handles.get(timeout=LIMIT_S).cancel()

    handle = home.on_endpoint(cancels)
    handles.put(handle)
    seen: queue.Queue = queue.Queue()

    class Callback:
        def __call__(self, event: object) -> None:
            seen.put(event)

    callback = Callback()
    gone = weakref.ref(callback)
    home.on_endpoint(callback)
    del callback
    ends = [home.publisher(topic) for topic in ("/a", "/b")]
    for _ in ends:
        seen.get(timeout=LIMIT_S)
    assert calls.qsize() == 1 and handle.cancelled
    gc.collect()
    assert gone() is not None, "the node keeps it"
    home.close()
    gc.collect()
    assert gone() is None
    with pytest.raises(rnet.ClosedError):
        home.on_endpoint(seen.put)
    with pytest.raises(rnet.ClosedError):
        home.subscribe_any("/**", seen.put)


def test_a_handle_may_be_cancelled_by_a_thread_and_its_callback_at_once(node):
    home = node()
    handles: queue.Queue = queue.Queue()
    inside, done = threading.Event(), threading.Event()

    def cancels(_event: rnet.events.EndpointEvent) -> None:
        handle = handles.get(timeout=LIMIT_S)
        inside.set()
        while not handle.cancelled:
            threading.Event().wait(0.001)  # between two checks
        threading.Event().wait(0.1)  # The other thread then waits for this callback.
        handle.cancel()
        done.set()

    handle = home.on_endpoint(cancels)
    handles.put(handle)
    publisher = home.publisher("/a")
    assert inside.wait(LIMIT_S)
    other = threading.Thread(target=handle.cancel, daemon=True)
    other.start()
    assert done.wait(LIMIT_S)
    other.join(LIMIT_S)
    assert not other.is_alive()
    publisher.close()


def test_every_topic_that_matches_is_received_with_its_type(node):
    sender, receiver = node("sender"), node("receiver")
    told: queue.Queue = queue.Queue()
    old = sender.publisher("/arm/left/raw")
    handle = receiver.subscribe_any("/arm/**", told.put)
    joints = sender.publisher("/arm/joints", msgs.JointState, urgent=True)
    dtype = np.dtype([("volt", "f8")])
    level = sender.publisher("/arm/level", dtype)
    other = sender.publisher("/leg/raw")
    for publisher in (old, joints, level):
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    old.send(b"x" * 10_000)
    message = told.get(timeout=LIMIT_S)
    assert (message.topic, message.type.kind) == ("/arm/left/raw", "raw")
    assert (message.type.publisher, message.type.node) == (old.id, "/sender")
    assert bytes(message.sample) == b"x" * 10_000 and message.sample.publisher == old.id
    joints.send(msgs.JointState(names=["elbow"]))
    message = told.get(timeout=LIMIT_S)
    schema = rnet.types.load_descriptor_set(message.type.descriptor_set)[message.type.name]
    assert schema.FromString(bytes(message.sample)).names == ["elbow"]
    for volt in (1.5, 2.5):
        level.send(np.array([volt]).view(dtype))
        message = told.get(timeout=LIMIT_S)
        assert message.type.kind == "plain" and '"volt"' in message.type.layout
        assert np.frombuffer(message.sample, dtype)["volt"] == [volt]
    assert other.subscriber_count == 0
    handle.cancel()
    while old.subscriber_count:
        threading.Event().wait(0.001)  # between two checks
    assert told.empty()


def test_errors_of_topics_go_to_on_error(node, unraisable):
    sender, receiver = node("sender"), node("receiver")
    with pytest.raises(rnet.errors.BadNameError, match=r"/a\*"):
        receiver.subscribe_any("/a*", print)
    with pytest.raises(rnet.errors.BadValueError):
        receiver.subscribe_any("/**", print, keep_last=1, keep_all=True)
    with pytest.raises(TypeError):
        receiver.subscribe_any("/**", "no function")
    errors: queue.Queue = queue.Queue()
    told: queue.Queue = queue.Queue()
    receiver.subscribe_any("/victim/*", told.put, on_error=errors.put)
    receiver.subscribe_any("/plain", told.put, reliable=True)
    plain = sender.publisher("/plain")
    assert isinstance(unraisable.get(timeout=LIMIT_S), rnet.IncompatibleQosError)
    child = start_child()
    assert told.get(timeout=LIMIT_S).topic == "/victim/beat"
    child.kill()
    child.wait()
    assert isinstance(errors.get(timeout=LIMIT_S), rnet.PeerLostError)
    plain.close()
