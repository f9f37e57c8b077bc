"""recv_many and send_many: arrays whose rows are messages."""

from __future__ import annotations

import ctypes
import signal
import threading

import numpy as np
import pytest
import rnet
from conftest import LIMIT_S, finish, settle
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

RELIABLE = {"pub": {"reliable": True}, "sub": {"reliable": True}}
IMU = rnet.types.named_dtype("Imu", [("n", "u4"), ("acc", "f4", 3), ("ok", "?")])


class Base(ctypes.Structure):
    _fields_ = [("n", ctypes.c_uint32)]


class Point(Base):
    _fields_ = [("x", ctypes.c_double), ("grid", ctypes.c_uint8 * 3 * 2)]


class Named(ctypes.Structure):
    _fields_ = [("point", Point), ("names", ctypes.c_wchar_p * 2)]


def imus(count: int, first: int = 0) -> np.ndarray:
    array = np.zeros(count, IMU)
    array["n"] = np.arange(first, first + count)
    array["acc"] = array["n"][:, None] * np.float32([0.5, 1, 2])
    return array


def all_of(subscriber, count: int, **arguments) -> np.ndarray:
    """This many messages, in any number of batches."""
    parts = []
    while sum(map(len, parts)) < count:
        parts.append(subscriber.recv_many(timeout=LIMIT_S, **arguments))
    return np.concatenate(parts)


def test_rows_are_messages(pair):
    publisher, subscriber = pair(type=IMU, **RELIABLE)
    sent = imus(1000)
    assert publisher.send_many(sent) == 1000 == publisher.sent
    first = subscriber.recv_many(10, timeout=LIMIT_S)
    assert first.dtype == IMU and len(first) == 10
    # The array belongs to the caller: it shares no memory and is writable.
    assert first.flags.owndata and first.flags.c_contiguous and first.flags.writeable
    one = subscriber.recv(timeout=LIMIT_S)
    assert one["n"] == 10
    rest = all_of(subscriber, 989)
    assert np.array_equal(np.concatenate([first, sent[10:11], rest]), sent)
    with pytest.raises(rnet.WaitTimeoutError) as caught:
        subscriber.recv_many(timeout=0.01)
    assert (caught.value.after, caught.value.what) == (0.01, "a message")
    assert sum(subscriber.lost.values()) == 0


@settings(
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["send", "send_many"]), st.integers(1, 40)),
            st.tuples(st.sampled_from(["recv", "recv_many", "out", "latest"]), st.integers(1, 40)),
        ),
        max_size=20,
    )
)
def test_any_order_of_operations(link, steps):
    """Batches and single messages may be mixed in any way."""
    publisher, subscriber = link
    waiting: list[int] = []
    out = np.empty(50, IMU)
    for step, count in steps:
        messages = imus(count, publisher.sent)
        if step == "send":
            for message in messages:
                publisher.send(message)
            waiting.extend(messages["n"])
        elif step == "send_many":
            assert publisher.send_many(messages) == count
            waiting.extend(messages["n"])
        elif not waiting:
            assert subscriber.try_recv() is None
        elif step == "latest":
            assert subscriber.latest(timeout=LIMIT_S)["n"] == waiting[-1]
            waiting.clear()
        else:
            if step == "recv":
                got = [subscriber.recv(timeout=LIMIT_S)["n"]]
            elif step == "recv_many":
                got = list(subscriber.recv_many(count, timeout=LIMIT_S)["n"])
            else:
                got = list(subscriber.recv_many(count, timeout=LIMIT_S, out=out)["n"])
            assert 1 <= len(got) <= count and got == waiting[: len(got)]
            del waiting[: len(got)]
    while waiting:
        got = list(subscriber.recv_many(timeout=LIMIT_S)["n"])
        assert got == waiting[: len(got)]
        del waiting[: len(got)]
    assert sum(subscriber.lost.values()) == 0


@pytest.fixture
def link(pair):
    return pair(type=IMU, **RELIABLE)


def test_a_given_array_is_filled_and_nothing_is_allocated(pair):
    publisher, subscriber = pair(type=IMU, **RELIABLE)
    out = np.zeros(8, IMU)
    publisher.send_many(imus(11))
    part = subscriber.recv_many(out=out)
    assert len(part) == 8 and np.shares_memory(part, out)
    part = subscriber.recv_many(2, out=out)
    assert part["n"].tolist() == [8, 9] and out["n"].tolist() == [8, 9, 2, 3, 4, 5, 6, 7]
    # A part of another array is accepted.
    part = subscriber.recv_many(out=out[4:])
    assert len(part) == 1 and out["n"][4] == 10


def test_stamps_say_when_each_was_sent(pair):
    publisher, subscriber = pair(type=IMU, **RELIABLE)
    before = rnet.now_ns()
    publisher.send_many(imus(100))
    after = rnet.now_ns()
    messages, sent_ns = subscriber.recv_many(60, stamps=True)
    assert len(messages) == len(sent_ns) == 60 and sent_ns.dtype == np.int64
    assert before <= sent_ns[0] and sent_ns[-1] <= after and (np.diff(sent_ns) >= 0).all()
    out = np.empty(60, IMU)
    messages, sent_ns = subscriber.recv_many(out=out, stamps=True)
    assert np.shares_memory(messages, out) and len(messages) == len(sent_ns) == 40


def test_a_structure_has_a_dtype(pair):
    publisher, subscriber = pair(type=Point, **RELIABLE)
    points = (Point * 3)(*(Point(n, n / 2) for n in range(3)))
    points[2].grid[1][2] = 7
    assert publisher.send_many(points) == 3
    got = subscriber.recv_many()
    assert got.dtype.names == ("n", "x", "grid") and got.dtype.itemsize == ctypes.sizeof(Point)
    assert got["n"].tolist() == [0, 1, 2] and got["x"].tolist() == [0, 0.5, 1]
    assert got["grid"].shape == (3, 2, 3) and got["grid"][2, 1, 2] == 7
    # And back, as an array.
    assert publisher.send_many(got) == 3
    assert [(p.n, p.x) for p in (subscriber.recv(timeout=LIMIT_S) for _ in range(3))] == [
        (0, 0),
        (1, 0.5),
        (2, 1),
    ]


def test_arrays_of_numbers(pair):
    publisher, subscriber = pair(type=np.dtype(("f4", (2, 2))), **RELIABLE)
    sent = np.arange(20, dtype="f4").reshape(5, 2, 2)
    assert publisher.send_many(sent) == 5
    got = subscriber.recv_many()
    assert got.dtype == np.float32 and np.array_equal(got, sent)
    publisher.send_many(sent)
    out = np.empty((5, 2, 2), "f4")
    assert np.array_equal(subscriber.recv_many(out=out), sent)


def test_complex_numbers_are_no_pointers(pair):
    publisher, subscriber = pair(**RELIABLE)
    numbers = np.array([1 + 2j, 3j])
    fields = np.array([(1j, 1)], [("ZzP", "c8"), ("O", "u4")])
    assert publisher.send_many(numbers) == 2 and publisher.send_many(fields) == 1
    assert np.array_equal(subscriber.recv_many(2, timeout=LIMIT_S, dtype="c16"), numbers)
    assert np.array_equal(subscriber.recv_many(timeout=LIMIT_S, dtype=fields.dtype), fields)


def test_long_messages(pair):
    big = rnet.types.named_dtype("Big", [("values", "u8", 5000)])
    publisher, subscriber = pair(type=big, **RELIABLE)
    sent = np.zeros(20, big)
    sent["values"] = np.arange(20)[:, None]
    sender = threading.Thread(target=publisher.send_many, args=[sent])
    sender.start()
    assert np.array_equal(all_of(subscriber, 20), sent)
    sender.join()


@pytest.mark.parametrize("kind", [None, bytes])
def test_raw_bytes_are_read_as_the_dtype_says(pair, kind):
    publisher, subscriber = pair(type=kind, **RELIABLE)
    rows = np.arange(60, dtype="u1").reshape(10, 6)
    assert publisher.send_many(rows) == 10
    assert publisher.send_many(memoryview(rows)) == 10
    assert publisher.send_many((ctypes.c_uint16 * 3 * 2)((1, 2, 3), (4, 5, 6))) == 2
    got = all_of(subscriber, 22, dtype=[("a", "<u2"), ("b", "V4")])
    assert got["a"][:10].tolist() == rows.view("<u2")[:, 0].tolist()
    assert got["a"][20:].tolist() == [1, 4]
    publisher.send_many(rows)
    out = np.empty((4, 6), "u1")
    assert np.array_equal(subscriber.recv_many(out=out), rows[:4])
    assert np.array_equal(subscriber.recv_many(dtype=("u1", 6)), rows[4:])


def test_what_dtype_means_may_change_from_call_to_call(pair):
    publisher, subscriber = pair(**RELIABLE)
    fields = [("a", "u4")]
    publisher.send(b"1234")
    assert subscriber.recv_many(dtype=fields).dtype == np.dtype(fields)
    fields.append(("b", "u4"))
    publisher.send(b"12345678")
    assert subscriber.recv_many(dtype=fields).dtype.names == ("a", "b")


def test_a_message_of_another_length_is_refused_and_not_lost(pair):
    publisher, subscriber = pair(**RELIABLE)
    messages = [b"1234", b"5678", b"odd", b"more", b"" * 4, b"long" * 5000, b"last"]
    for message in messages:
        publisher.send(message)
    assert subscriber.recv_many(dtype="V4").tolist() == messages[:2]
    for _ in range(2):
        with pytest.raises(rnet.errors.BadValueError) as caught:
            subscriber.recv_many(dtype="V4")
        assert caught.value.what == f"message 2 of publisher {publisher.id:#x} on /t"
        assert "it has 3 bytes, but a row of the array has 4" in caught.value.why
    # It fits another array.
    assert subscriber.recv_many(dtype="V3").tolist() == [b"odd"]
    assert subscriber.recv_many(dtype="V4").tolist() == [b"more"]
    for odd in (b"", b"long" * 5000):
        with pytest.raises(rnet.errors.BadValueError, match=f"it has {len(odd)} bytes"):
            subscriber.recv_many(dtype="V4")
        assert bytes(subscriber.recv_sample(timeout=0)) == odd
    assert subscriber.recv_many(dtype="V4").tolist() == [b"last"]
    assert sum(subscriber.lost.values()) == 0


TAKES = {
    "recv": lambda sub, node: bytes(sub.recv(timeout=LIMIT_S)),
    "try_recv": lambda sub, node: bytes(sub.try_recv()),
    "iterate": lambda sub, node: bytes(next(sub)),
    "merge": lambda sub, node: bytes(rnet.Merge(sub).recv(timeout=LIMIT_S)[1]),
    "latest": lambda sub, node: bytes(sub.latest(timeout=LIMIT_S)),
}


@pytest.mark.parametrize("take", TAKES)
def test_every_form_of_receiving_gets_a_refused_message(pair, take):
    publisher, subscriber = pair(**RELIABLE)
    publisher.send(b"odd")
    with pytest.raises(rnet.errors.BadValueError, match="3 bytes"):
        subscriber.recv_many(dtype="V4", timeout=LIMIT_S)
    assert TAKES[take](subscriber, None) == b"odd"
    publisher.send(b"next")
    assert subscriber.recv_many(dtype="V4", timeout=LIMIT_S).tolist() == [b"next"]


def test_the_newest_may_be_a_refused_message_or_a_later_one(pair):
    publisher, subscriber = pair(**RELIABLE)
    publisher.send(b"odd")
    with pytest.raises(rnet.errors.BadValueError):
        subscriber.recv_many(dtype="V4", timeout=LIMIT_S)
    publisher.send(b"later")
    assert bytes(subscriber.latest(timeout=LIMIT_S)) == b"later"
    assert subscriber.try_recv() is None


@pytest.mark.parametrize("newest", [b"odd", b"1234"])
def test_of_a_refused_message_and_that_of_another_publisher_one_is_skipped(node, newest):
    one, two = node("one").publisher("/t"), node("two").publisher("/t")
    subscriber = node("home").subscriber("/t", keep_all=True)
    for publisher in (one, two):
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    subscriber.wait_for_publishers(2, timeout=LIMIT_S)
    # The first one gets its turn from here on.
    two.send(b"turn")
    assert bytes(subscriber.recv(timeout=LIMIT_S)) == b"turn"
    if newest == b"odd":
        two.send(b"1234")
    one.send(b"odd")
    with pytest.raises(rnet.errors.BadValueError, match="3 bytes"):
        subscriber.recv_many(1, dtype="V4", timeout=LIMIT_S)
    if newest == b"1234":
        two.send(b"1234")
    assert bytes(subscriber.latest(timeout=LIMIT_S)) == newest
    assert subscriber.try_recv() is None
    counts = {stats.publisher: (stats.received, stats.skipped) for stats in subscriber.stats()}
    assert counts == {one.id: (int(newest == b"odd"), int(newest == b"1234")), two.id: (
        1 + int(newest == b"1234"), int(newest == b"odd"))}


def test_tasks_and_callbacks_get_a_refused_message(pair):
    import asyncio

    publisher, subscriber = pair(**RELIABLE)

    def refuse() -> None:
        publisher.send(b"odd")
        with pytest.raises(rnet.errors.BadValueError):
            subscriber.recv_many(dtype="V4", timeout=LIMIT_S)

    async def two() -> list[bytes]:
        return [bytes(await subscriber.recv_async()) for _ in range(2)]

    refuse()
    publisher.send(b"then")
    assert asyncio.run(two()) == [b"odd", b"then"]
    refuse()
    got: list[bytes] = []
    both = threading.Event()

    def take(sample: rnet.Sample) -> None:
        got.append(bytes(sample))
        if len(got) == 2:
            both.set()

    subscriber.on(take)
    publisher.send(b"then")
    assert both.wait(LIMIT_S) and got == [b"odd", b"then"]
    with pytest.raises(rnet.errors.BadValueError, match="go to the callback"):
        subscriber.recv_many(dtype="V4")


def test_errors_of_publishers_never_swallow_messages(node, program):
    subscriber = node("receiver").subscriber("/t", "u4", reliable=True)
    process = program("""
import os, numpy, rnet
publisher = rnet.Node("dying").publisher("/t", "u4", reliable=True)
publisher.wait_for_subscribers()
publisher.send_many(numpy.arange(100, dtype="u4"))
os.kill(os.getpid(), 9)
""")
    got: list[int] = []
    with pytest.raises(rnet.PeerLostError):
        while True:
            got.extend(subscriber.recv_many(30, timeout=LIMIT_S))
    assert got == list(range(100))
    process.wait(LIMIT_S)


def test_a_batch_that_does_not_fit_says_how_many_were_sent(node):
    sender, receiver = node("sender"), node("receiver")
    publisher = sender.publisher("/t", reliable=True, on_full="refuse", log_len_bytes=16384)
    subscriber = receiver.subscriber("/t", reliable=True)
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    subscriber.wait_for_publishers(1, timeout=LIMIT_S)
    rows = np.arange(1000, dtype="u8").reshape(1000, 1).repeat(20, axis=1)
    left, got = rows, []
    while len(left):
        try:
            assert publisher.send_many(left) == len(left)
            break
        except rnet.FullError as full:
            assert 0 < full.sent < len(left) and full.reader_node == "/receiver"
            left = left[full.sent :]
        got.append(subscriber.recv_many(out=np.empty((1000, 20), "u8")))
    got.append(all_of(subscriber, 1000 - sum(map(len, got)), dtype=("u8", 20)))
    assert np.array_equal(np.concatenate(got), rows)
    assert publisher.send_many(rows[:0]) == 0
    publisher.close()
    with pytest.raises(rnet.ClosedError) as closed:
        publisher.send_many(rows)
    assert closed.value.sent == 0
    subscriber.close()
    with pytest.raises(rnet.ClosedError):
        subscriber.recv_many(dtype="u8")


def test_ctrl_c_ends_a_batch_and_says_how_many_were_sent(program):
    process = program("""
import numpy, rnet
node = rnet.Node("node")
slow = node.subscriber("/f", reliable=True)
publisher = node.publisher("/f", reliable=True, on_full=rnet.Wait(1000), log_len_bytes=16384)
publisher.wait_for_subscribers()
try:
    print("waiting", flush=True)
    publisher.send_many(numpy.zeros((1000, 100), "u1"))
except KeyboardInterrupt as stop:
    print("interrupted", 0 < stop.sent < 1000, stop.sent == publisher.sent, flush=True)
""")
    assert process.stdout.readline() == "waiting\n"
    settle(process)
    process.send_signal(signal.SIGINT)
    assert finish(process) == (0, "interrupted True True\n", "")


#: More than can be sent before the check.
MANY = 400_000_000


def test_a_batch_ends_when_its_publisher_is_closed(node):
    publisher = node().publisher("/t")
    raised = []

    def send() -> None:
        with pytest.raises(rnet.ClosedError) as closed:
            publisher.send_many(np.zeros((MANY, 1), "u1"))
        raised.append(closed.value.sent)

    sending = threading.Thread(target=send)
    sending.start()
    # Other senders get their turn during the batch.
    while publisher.sent == 0:
        assert sending.is_alive()
    before = publisher.sent
    publisher.close()
    sending.join()
    assert before <= raised[0] < MANY


def test_a_signal_ends_a_batch_that_waits_for_nothing(program):
    process = program(f"""
import os, signal, threading, numpy, rnet
publisher = rnet.Node("node").publisher("/t")

def stop():
    while publisher.sent == 0:
        pass
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=stop).start()
try:
    publisher.send_many(numpy.zeros(({MANY}, 1), "u1"))
except KeyboardInterrupt as stop:
    print(0 < stop.sent < {MANY}, stop.sent == publisher.sent)
""")
    assert finish(process) == (0, "True True\n", "")


BAD_RECV = [
    ({"max": 0}, rnet.errors.BadValueError, "max is 0, and must be 1 or more"),
    ({"max": -1}, rnet.errors.BadValueError, "max is -1"),
    ({"timeout": -1}, rnet.errors.BadValueError, "timeout"),
    ({"max": 5, "out": np.empty(4, IMU)}, rnet.errors.BadValueError, "out has 4 rows, and max is 5"),
    ({"out": np.empty(0, IMU)}, rnet.errors.BadValueError, "out has 0 rows"),
    ({"out": bytearray(100)}, TypeError, "not a bytearray"),
    ({"out": np.empty(4, "u4")}, TypeError, "out is uint32"),
    ({"out": np.empty((4, 4), IMU)}, TypeError, r"of shape \(4, 4\)"),
    ({"out": np.empty((), IMU)}, TypeError, r"of shape \(\)"),
    ({"out": np.empty(8, IMU)[::2]}, TypeError, "C-contiguous"),
    ({"out": np.frombuffer(bytes(IMU.itemsize), IMU)}, TypeError, "writeable"),
    ({"dtype": "u4"}, TypeError, "omit dtype"),
]


@pytest.mark.parametrize(("arguments", "error", "why"), BAD_RECV)
def test_what_recv_many_does_not_take(pair, arguments, error, why):
    publisher, subscriber = pair(type=IMU, **RELIABLE)
    publisher.send_many(imus(1))
    with pytest.raises(error, match=why):
        subscriber.recv_many(**arguments)
    # After each error, no message was taken.
    assert len(subscriber.recv_many(timeout=LIMIT_S, dtype=IMU)) == 1


BAD_RAW = [
    ({}, "pass their dtype"),
    ({"dtype": "O"}, "Python objects"),
    ({"dtype": [("a", "u4"), ("b", "O")]}, "Python objects"),
    ({"dtype": "V0"}, "a size of 0 bytes"),
    ({"dtype": "M8[ns]"}, "use integers"),
    ({"dtype": "no such type"}, "not understood"),
    ({"out": np.empty(3, "O")}, "Python objects"),
]


@pytest.mark.parametrize(("arguments", "why"), BAD_RAW)
def test_how_raw_bytes_cannot_be_read(pair, arguments, why):
    publisher, subscriber = pair(**RELIABLE)
    publisher.send(b"12345678")
    with pytest.raises(TypeError, match=why):
        subscriber.recv_many(**arguments)
    assert subscriber.recv_many(dtype="u8", timeout=LIMIT_S).tolist() == [0x3837363534333231]


BAD_SEND = [
    (None, b"one message", "one bytes: use send"),
    (None, bytearray(3), "one bytearray"),
    (None, [b"a", b"b"], "not a list"),
    (None, np.zeros((), "f8"), "one dimension"),
    (None, np.array([{}, {}]), "Python objects"),
    (None, (ctypes.py_object * 2)(), "Python objects or pointers"),
    (None, (ctypes.c_void_p * 2)(), "pointers"),
    (None, (ctypes.c_char_p * 2)(), "pointers"),
    (None, (ctypes.c_wchar_p * 2)(), "pointers"),
    (None, (ctypes.POINTER(Point) * 2)(), "pointers"),
    (None, (ctypes.CFUNCTYPE(None) * 2)(), "pointers"),
    (None, (Named * 2 * 2)(), "pointers"),
    (None, memoryview((Named * 2)()), "pointers"),
    (None, np.zeros((4, 4))[:, 1], "contiguous"),
    (None, np.zeros(3, "M8[ns]"), "cannot send this"),
    (IMU, np.zeros(3, "u4"), "cannot send uint32"),
    (IMU, np.zeros((3, 3), IMU), r"of shape \(3, 3\)"),
    (IMU, np.zeros((), IMU), r"of shape \(\)"),
    (IMU, np.zeros(6, IMU)[::2], "contiguous"),
    (IMU, [(1, (2, 3, 4), True)], "not a list"),
    (IMU, bytes(IMU.itemsize), "not a bytes"),
    (Point, (Base * 2)(), "array of Base"),
    (Point, Point(), "not a Point"),
]


@pytest.mark.parametrize(("kind", "messages", "why"), BAD_SEND)
def test_what_send_many_does_not_take(node, kind, messages, why):
    publisher = node().publisher("/t", kind)
    with pytest.raises((TypeError, BufferError), match=why):
        publisher.send_many(messages)
    assert publisher.sent == 0


def test_without_numpy_the_rest_works(program):
    process = program("""
import sys
sys.modules["numpy"] = None  # as if it were not installed
import ctypes, rnet
class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_double)]
node = rnet.Node("node")
publisher, subscriber = node.publisher("/t", Point), node.subscriber("/t", Point)
publisher.wait_for_subscribers()
subscriber.wait_for_publishers()
assert publisher.send_many((Point * 2)(Point(1), Point(2))) == 2
assert publisher.sent == 2
assert node.publisher("/raw").send_many(memoryview(bytes(6)).cast("B", (3, 2))) == 3
for call in (subscriber.recv_many, node.subscriber("/raw").recv_many):
    try:
        call()
    except rnet.errors.MissingNumpyError as error:
        assert isinstance(error, ImportError) and error.what == "recv_many"
        print(error)
print(subscriber.recv().x)
""")
    why = "recv_many needs numpy, which is not installed: pip install numpy\n"
    assert finish(process) == (0, why + why + "1.0\n", "")


def test_bytes_are_copies(pair):
    publisher, subscriber = pair(type=bytes, **RELIABLE)
    for message in (b"one", bytearray(b"two"), np.zeros(5000, "u1"), b""):
        publisher.send(message)
    assert subscriber.recv(timeout=LIMIT_S) == b"one"
    assert subscriber.try_recv() == b"two"
    assert next(subscriber) == bytes(5000)
    sample = subscriber.recv_sample(timeout=LIMIT_S)
    assert isinstance(sample, rnet.Sample) and type(sample.value) is bytes
    publisher.send(b"newest")
    assert subscriber.latest(timeout=LIMIT_S) == b"newest"
    publisher.send(b"merged")
    assert rnet.Merge(subscriber).recv(timeout=LIMIT_S)[1] == b"merged"
    got: list[bytes] = []
    done = threading.Event()
    subscriber.on(lambda message: (got.append(message), done.set()))
    publisher.send(b"called")
    assert done.wait(LIMIT_S) and got == [b"called"]
