"""The exceptions, and their causes."""

from __future__ import annotations

import copy
import ctypes
import math
import os
import pickle
import queue
import threading
import time

import pytest
import rnet
from conftest import LIMIT_S
from rnet import errors


def test_every_error_code_has_its_exception():
    python_alone = {"missing_numpy", "missing_protobuf", "schema", "launch_failed", "record_failed", "read_failed"}
    assert set(errors.BY_CODE) == set(rnet._rnet.ERROR_CODES) | python_alone
    for code, cls in errors.BY_CODE.items():
        assert cls.code == code and issubclass(cls, rnet.RnetError)
        assert cls.__name__.lower().removesuffix("error").endswith(code.replace("_", ""))
        assert getattr(errors, cls.__name__) is cls and cls.__name__ in errors.__all__
        assert cls.__doc__


@pytest.mark.parametrize("cls", errors.BY_CODE.values())
def test_each_has_code_topic_and_node_and_survives_a_pickle(cls):
    # OSError has its own errno, which must be ours.
    fields = {"topic": "/t", "node": "/n"} | ({"errno": 2} if cls is rnet.errors.IoError else {})
    for given, topic, node in (({}, None, None), (fields, "/t", "/n")):
        error = cls("so; do this", **given)
        for one in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):
            assert (type(one), str(one), one.args) == (cls, "so; do this", ("so; do this",))
            assert (one.code, one.topic, one.node) == (cls.code, topic, node)
            assert repr(one) == f"{cls.__name__}('so; do this')"
            assert {name: getattr(one, name) for name in given} == given


@pytest.mark.parametrize(
    ("cls", "base"),
    [
        (rnet.WaitTimeoutError, TimeoutError),
        (rnet.errors.OutOfMemoryError, MemoryError),
        (rnet.errors.NoPermissionError, PermissionError),
        (rnet.PeerLostError, ConnectionError),
        (rnet.errors.IoError, OSError),
        (rnet.errors.BadNameError, ValueError),
        (rnet.errors.BadValueError, ValueError),
        (rnet.errors.BadQosError, ValueError),
        (rnet.errors.MessageTooLargeError, ValueError),
        (rnet.IncompatibleTypeError, TypeError),
    ],
)
def test_exceptions_are_pythons_own_too(cls, base):
    assert issubclass(cls, base)
    error = cls("text", topic="/t")
    assert (str(error), error.topic) == ("text", "/t")


def test_errors_can_be_pickled(pair):
    _, subscriber = pair()
    with pytest.raises(TimeoutError) as caught:
        subscriber.recv(timeout=0.01)
    error = pickle.loads(pickle.dumps(caught.value))
    assert (type(error), str(error)) == (rnet.WaitTimeoutError, str(caught.value))
    assert (error.what, error.topic, error.after) == ("a message", "/t", 0.01)


def test_timeouts(pair):
    publisher, subscriber = pair()
    for wait in (
        lambda: subscriber.recv(timeout=0.02),
        lambda: subscriber.latest(timeout=0.02),
        lambda: subscriber.wait_for_publishers(2, timeout=0.02),
        lambda: publisher.wait_for_subscribers(2, timeout=0.02),
    ):
        with pytest.raises(rnet.WaitTimeoutError) as caught:
            wait()
        assert (caught.value.after, caught.value.topic, caught.value.node) == (0.02, "/t", None)
        assert "/t; wait longer" in str(caught.value)
    with pytest.raises(rnet.WaitTimeoutError):
        subscriber.recv(timeout=0)
    for bad in (-1, -math.inf, math.nan):
        with pytest.raises(rnet.errors.BadValueError, match="timeout"):
            subscriber.recv(timeout=bad)
    publisher.send(b"up")
    assert bytes(subscriber.recv(timeout=math.inf)) == b"up"
    with pytest.raises(TypeError, match="positional"):
        subscriber.recv(0.02)


def test_a_call_has_the_timeout_of_its_client_unless_it_is_given_one(node):
    client = node().client("/nobody", timeout=0.02)
    for given, after in (({}, 0.02), ({"timeout": 0.03}, 0.03), ({"timeout": None}, 0.02)):
        for call in (client.call, lambda *request, **more: client.start(*request, **more).result()):
            with pytest.raises(rnet.WaitTimeoutError) as caught:
                call(b"", **given)
            assert caught.value.after == after
    with pytest.raises(rnet.errors.BadValueError, match="timeout"):
        node("other").client("/nobody", timeout=-1)


def test_a_push_has_the_timeout_of_its_pusher_unless_it_is_given_one(node):
    jobs = node().push("/jobs", backlog=1, timeout=math.inf)
    jobs.push(b"first")
    with pytest.raises(rnet.errors.LimitReachedError):
        jobs.push(b"second", timeout=0)
    jobs.close()


@pytest.mark.parametrize("name", ["", "a b", "/a//b", "/a/", "ä", "x" * 300, "/a.b"])
def test_bad_names(node, name):
    home = node()
    with pytest.raises(rnet.errors.BadNameError) as caught:
        home.publisher(name)
    assert caught.value.what == "topic" and caught.value.why
    assert (caught.value.topic, caught.value.node) == (caught.value.name or None, None)
    with pytest.raises(rnet.errors.BadNameError):
        home.subscriber(name)
    with pytest.raises(rnet.errors.BadNameError) as caught:
        rnet.Node(name)
    assert caught.value.what == "node"


def test_bad_domain():
    with pytest.raises(rnet.errors.BadNameError) as caught:
        rnet.Node("a", domain="no spaces")
    assert caught.value.what == "domain"


def test_a_name_is_taken_once(node):
    first = node("arm")
    with pytest.raises(rnet.errors.NameTakenError) as caught:
        rnet.Node("arm")
    assert (caught.value.node, caught.value.pid) == ("/arm", os.getpid())
    first.close()
    node("arm")


def test_a_directory_that_is_none(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(OSError) as caught:
        rnet.Node("a", dir=file)
    assert isinstance(caught.value, rnet.RnetError) and str(file) in str(caught.value)
    assert (caught.value.topic, caught.value.node) == (None, None)


def test_settings_that_make_no_sense(node):
    home = node()
    with pytest.raises(rnet.errors.BadQosError, match="power of two"):
        home.publisher("/t", log_len_bytes=100_000)
    with pytest.raises(rnet.errors.BadQosError, match="large_depth"):
        home.publisher("/t", large_depth=0)
    with pytest.raises(rnet.errors.BadQosError, match="keep_last"):
        home.subscriber("/t", keep_last=0)
    with pytest.raises(rnet.errors.BadValueError, match="keep_all.* contradicts keep_last"):
        home.subscriber("/t", keep_last=1, keep_all=True)
    with pytest.raises(rnet.errors.BadQosError, match="stall of 0"):
        home.publisher("/t", reliable=True, on_full=rnet.Detach(0))
    with pytest.raises(rnet.errors.BadValueError, match="on_full: it needs a reliable"):
        home.publisher("/t", on_full="refuse")
    with pytest.raises(rnet.errors.BadValueError, match='"refuse"'):
        home.publisher("/t", reliable=True, on_full="wait")
    with pytest.raises(TypeError, match="rnet.Wait"):
        home.publisher("/t", reliable=True, on_full=1.0)
    with pytest.raises(rnet.errors.BadValueError, match="on_full"):
        home.publisher("/t", reliable=True, on_full=rnet.Wait(-1))
    with pytest.raises(rnet.errors.BadValueError, match="lane"):
        home.subscriber("/t", lane="fast")
    with pytest.raises(rnet.errors.BadValueError, match="wait"):
        home.subscriber("/t", wait="never")


class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_double), ("y", ctypes.c_double)]


class Swapped(ctypes.Structure):
    _rnet_name_ = "Point"
    _fields_ = [("y", ctypes.c_double), ("x", ctypes.c_double)]


def test_a_incompatible_type_is_told_to_both_sides(node):
    publisher = node("sender").publisher("/p", Point)
    subscriber = node("receiver").subscriber("/p", Swapped)
    for wait in (
        lambda: publisher.wait_for_subscribers(1, timeout=LIMIT_S),
        lambda: subscriber.wait_for_publishers(1, timeout=LIMIT_S),
    ):
        with pytest.raises(rnet.IncompatibleTypeError) as caught:
            wait()
        error = caught.value
        assert (error.topic, error.publisher_node, error.subscriber_node) == (
            "/p",
            "/sender",
            "/receiver",
        )
        assert (error.field_path, error.publisher, error.subscriber) == (
            "x",
            "f64 at 0",
            "f64 at 8",
        )
    (noted,) = publisher.incompatible
    assert isinstance(noted, rnet.IncompatibleTypeError) and noted.topic == "/p"
    publisher.send(Point(1, 2))
    assert subscriber.try_recv() is None


def test_quality_of_service_that_does_not_fit(node):
    publisher = node("sender").publisher("/t")
    subscriber = node("receiver").subscriber("/t", reliable=True)
    with pytest.raises(rnet.IncompatibleQosError, match="make the publisher reliable"):
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    with pytest.raises(rnet.IncompatibleQosError) as caught:
        subscriber.recv(timeout=LIMIT_S)
    assert caught.value.node == caught.value.publisher_node == "/sender"
    assert str(caught.value).endswith(caught.value.why)


def test_a_reliable_publisher_waits_refuses_or_detaches(node):
    def full(on_full):
        sender, receiver = node(f"s{len(made)}"), node(f"r{len(made)}")
        made.append(sender)
        topic = f"/t{len(made)}"
        publisher = sender.publisher(topic, reliable=True, on_full=on_full, log_len_bytes=16384)
        subscriber = receiver.subscriber(topic, reliable=True)
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        subscriber.wait_for_publishers(1, timeout=LIMIT_S)
        return publisher, subscriber

    made: list = []
    for on_full in ("refuse", rnet.Wait(0.02)):
        publisher, subscriber = full(on_full)
        with pytest.raises(rnet.FullError) as caught:
            while True:
                publisher.send(bytes(1000))
        assert caught.value.topic == publisher.topic
        assert caught.value.node == caught.value.reader_node == f"/r{len(made) - 1}"
        for _ in range(publisher.sent):
            subscriber.recv(timeout=LIMIT_S)
        publisher.send(b"goes on")
        assert bytes(subscriber.recv(timeout=LIMIT_S)) == b"goes on"
        assert sum(subscriber.lost.values()) == 0

    publisher, subscriber = full(rnet.Detach(0.02))
    for _ in range(100):
        publisher.send(bytes(1000))
    with pytest.raises(rnet.errors.DetachedError) as caught:
        while True:
            subscriber.recv(timeout=LIMIT_S)
    assert caught.value.stall == 0.02


def test_everything_says_that_it_is_closed(node):
    home = node("home")
    publisher, subscriber = home.publisher("/t"), home.subscriber("/t")
    assert not (home.closed or publisher.closed or subscriber.closed)
    home.close()
    home.close()
    assert home.closed and publisher.closed and subscriber.closed
    for use in (
        lambda: home.publisher("/t"),
        lambda: home.subscriber("/t"),
        lambda: publisher.send(b"x"),
        lambda: publisher.loan(1),
        lambda: publisher.sent,
        lambda: publisher.wait_for_subscribers(),
        subscriber.recv,
        subscriber.try_recv,
        subscriber.latest,
        subscriber.wait_for_publishers,
    ):
        with pytest.raises(rnet.ClosedError, match="is closed"):
            use()
    assert list(subscriber) == []
    publisher.close()
    subscriber.close()
    assert (home.name, publisher.topic, subscriber.topic) == ("/home", "/t", "/t")


def test_context_managers(node, domain):
    with rnet.Node("a") as a, a.publisher("/t") as publisher, a.subscriber("/t") as subscriber:
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        publisher.send(b"x")
        assert bytes(subscriber.recv(timeout=LIMIT_S)) == b"x"
        assert os.listdir(f"{domain}/nodes")
    assert a.closed and publisher.closed and subscriber.closed
    assert os.listdir(f"{domain}/nodes") == []


SENDS = {
    "small": lambda publisher: publisher.send(b"x" * 1000),
    "large": lambda publisher: publisher.send(b"x" * 50_000),
    "loan": lambda publisher: publisher.loan(50_000).send(),
    "many": lambda publisher: publisher.send_many(memoryview(bytes(64_000)).cast("B", (64, 1000))),
}


@pytest.mark.parametrize("closes", ["publisher", "node"])
@pytest.mark.parametrize("send", SENDS)
def test_a_send_that_waits_ends_when_its_publisher_is_closed(node, send, closes):
    sender, receiver = node("sender"), node("receiver")
    publisher = sender.publisher(
        "/t",
        reliable=True,
        on_full=rnet.Wait(10 * LIMIT_S),
        log_len_bytes=16384,
        pool_limit_bytes=200_000,
    )
    subscriber = receiver.subscriber("/t", reliable=True)
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    raised: queue.Queue = queue.Queue()

    def run() -> None:
        try:
            while True:
                SENDS[send](publisher)
        except rnet.RnetError as error:
            raised.put(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    # Waits until the sender is blocked, because nothing reads its messages; a later moment is equally good.
    before = -1
    while before != subscriber.behind.messages:
        before = subscriber.behind.messages
        settled = time.monotonic() + 0.05
        while time.monotonic() < settled:
            time.sleep(0.01)  # sleep: between two checks
    (publisher if closes == "publisher" else sender).close()
    error = raised.get(timeout=LIMIT_S)
    assert isinstance(error, rnet.ClosedError), error
    thread.join(LIMIT_S)
    assert not thread.is_alive() and publisher.closed
