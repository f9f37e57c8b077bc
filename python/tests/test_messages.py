"""Sending and receiving bytes."""

from __future__ import annotations

import ctypes
import threading
import time

import numpy as np
import pytest
import rnet
from conftest import LIMIT_S
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

PER_EXAMPLE = settings(
    deadline=None,
    max_examples=50,
    # The topic keeps its state between examples, which is intended here.
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

# Lengths around the border between the log and the pool, 4096 bytes.
LENGTHS = st.one_of(st.integers(0, 64), st.integers(4090, 4100), st.integers(0, 300_000))


@PER_EXAMPLE
@given(message=st.binary(max_size=9000))
def test_any_bytes_arrive_equal(link, message):
    publisher, subscriber = link
    publisher.send(message)
    sample = subscriber.recv(timeout=LIMIT_S)
    assert bytes(sample) == message
    assert len(sample) == len(message)
    assert sample.data == message and sample.data.readonly


@pytest.fixture
def link(pair):
    return pair(pub={"reliable": True}, sub={"reliable": True})


@PER_EXAMPLE
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("send"), LENGTHS),
            st.tuples(st.just("loan"), LENGTHS),
            st.tuples(st.just("discard"), LENGTHS),
            st.tuples(st.sampled_from(["recv", "try", "hold", "latest"]), st.just(0)),
        ),
        max_size=20,
    )
)
def test_any_order_of_operations(link, steps):
    """After any sequence of operations, the received messages are the sent ones, in the same order."""
    publisher, subscriber = link
    sent: list[bytes] = []
    held: list[tuple[rnet.Sample, bytes]] = []
    for number, (step, length) in enumerate(steps):
        message = (bytes([number]) * length)[:length]
        if step == "send":
            publisher.send(message)
            sent.append(message)
        elif step == "loan":
            with publisher.loan(length) as memory:
                memory[:] = message
            sent.append(message)
        elif step == "discard":
            loan = publisher.loan(length)
            loan.data[:] = message
            loan.discard()
        elif not sent:
            assert subscriber.try_recv() is None
        elif step == "latest":
            assert bytes(subscriber.latest(timeout=LIMIT_S)) == sent[-1]
            sent.clear()
        else:
            sample = subscriber.try_recv() if step == "try" else subscriber.recv(timeout=LIMIT_S)
            expected = sent.pop(0)
            assert bytes(sample) == expected
            if step == "hold":
                held.append((sample, expected))
    for expected in sent:
        assert bytes(subscriber.recv(timeout=LIMIT_S)) == expected
    assert subscriber.try_recv() is None
    # A kept message does not change, however many follow.
    assert all(bytes(sample) == expected for sample, expected in held)
    assert sum(subscriber.lost.values()) == 0


@pytest.mark.parametrize("length", [0, 1, 22, 4096, 4097, 65_537, 3_000_000, 70_000_000])
def test_sizes(pair, length):
    publisher, subscriber = pair()
    message = np.random.default_rng(length).integers(0, 256, length, np.uint8)
    publisher.send(message)
    assert np.array_equal(np.frombuffer(subscriber.recv(timeout=LIMIT_S), np.uint8), message)


def test_every_kind_of_buffer_is_sent(pair):
    class Point(ctypes.Structure):
        _fields_ = [("x", ctypes.c_uint16), ("y", ctypes.c_uint16)]

    publisher, subscriber = pair()
    messages = [
        b"\1\0\2\0",
        bytearray(b"\1\0\2\0"),
        memoryview(b"-\1\0\2\0-")[1:-1],
        np.array([1, 2], "<u2"),
        Point(1, 2),
    ]
    for message in messages:
        publisher.send(message)
    received = [bytes(subscriber.recv(timeout=LIMIT_S)) for _ in messages]
    assert received == [b"\1\0\2\0"] * len(messages)
    # A sample is a buffer too, and can be sent.
    publisher.send(b"again")
    publisher.send(subscriber.recv(timeout=LIMIT_S))
    assert bytes(subscriber.recv(timeout=LIMIT_S)) == b"again"


def test_what_is_no_buffer_is_refused(pair):
    publisher, _ = pair()
    with pytest.raises(TypeError, match="cannot send a str: send bytes"):
        publisher.send("text")
    with pytest.raises(BufferError, match="make it contiguous"):
        publisher.send(np.zeros((4, 4))[:, 1])
    assert publisher.sent == 0


def test_a_sample_says_where_and_when_it_comes_from(pair):
    publisher, subscriber = pair()
    before = time.monotonic_ns()
    for _ in range(3):
        publisher.send(b"x")
    after = time.monotonic_ns()
    samples = [subscriber.recv(timeout=LIMIT_S) for _ in range(3)]
    assert [sample.seq for sample in samples] == [0, 1, 2]
    assert {sample.publisher for sample in samples} == {publisher.id}
    for sample in samples:
        assert before <= sample.sent_ns <= after <= rnet.now_ns()
        assert sample.latency_ns == sample.taken_ns - sample.sent_ns >= 0
        assert sample.value is sample
    assert "1 bytes, seq 0" in repr(samples[0])


def test_a_sample_cannot_be_made_or_written_to(pair):
    with pytest.raises(TypeError, match="cannot create"):
        rnet.Sample()
    with pytest.raises(TypeError):
        object.__new__(rnet.Sample)
    publisher, subscriber = pair()
    publisher.send(b"x" * 10_000)
    sample = subscriber.recv(timeout=LIMIT_S)
    with pytest.raises(TypeError, match="read-only"):
        sample.data[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        np.frombuffer(sample, np.uint8)[0] = 1
    with pytest.raises(TypeError):
        (ctypes.c_char * 4).from_buffer(sample)
    with pytest.raises(AttributeError):
        sample.seq = 1


def test_iteration_ends_when_closed_from_another_thread(pair):
    publisher, subscriber = pair()
    received: list[bytes] = []
    first = threading.Event()

    def read() -> None:
        for sample in subscriber:
            received.append(bytes(sample))
            first.set()

    reader = threading.Thread(target=read)
    reader.start()
    publisher.send(b"one")
    assert first.wait(LIMIT_S)
    subscriber.close()
    reader.join(LIMIT_S)
    assert not reader.is_alive() and received == [b"one"]
    with pytest.raises(rnet.ClosedError, match="the subscriber of /t is closed"):
        subscriber.recv()


def test_latest_passes_over_the_others(pair):
    publisher, subscriber = pair()
    for n in range(10):
        publisher.send(bytes([n]))
    assert bytes(subscriber.latest(timeout=LIMIT_S)) == b"\x09"
    assert subscriber.try_recv() is None
    assert sum(subscriber.lost.values()) == 0
    with pytest.raises(rnet.WaitTimeoutError):
        subscriber.latest(timeout=0)


def test_losses_are_counted_by_cause(pair):
    publisher, subscriber = pair(pub={"log_len_bytes": 16384}, sub={"keep_all": True})
    for n in range(2000):
        publisher.send(n.to_bytes(8, "little") * 8)
    received = 0
    while subscriber.try_recv() is not None:
        received += 1
    lost = subscriber.lost
    assert set(lost) == {"overrun", "link", "restart", "detached"}
    assert lost["overrun"] > 0 and received + sum(lost.values()) == 2000
    (stats,) = subscriber.stats()
    assert (stats.received, stats.lost, stats.connected) == (received, lost, True)
    assert (stats.node, stats.publisher) == ("/sender", publisher.id)


def test_threads_share_a_publisher_and_a_subscriber(pair):
    publisher, subscriber = pair(pub={"reliable": True}, sub={"reliable": True})
    threads, per_thread = 4, 500
    received: list[bytes] = []

    def send(name: int) -> None:
        for n in range(per_thread):
            publisher.send(bytes([name]) + n.to_bytes(4, "little"))

    def receive() -> None:
        for _ in range(per_thread):
            received.append(bytes(subscriber.recv(timeout=LIMIT_S)))

    work = [threading.Thread(target=send, args=[name]) for name in range(threads)]
    work += [threading.Thread(target=receive) for _ in range(threads)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    expected = [
        bytes([name]) + n.to_bytes(4, "little")
        for name in range(threads)
        for n in range(per_thread)
    ]
    assert sorted(received) == sorted(expected)


def test_a_subscriber_that_waits_can_be_looked_at(pair):
    publisher, subscriber = pair()
    waiting = threading.Thread(target=subscriber.recv)
    waiting.start()
    # Each of these waits for the waiting thread, and gets its turn.
    for _ in range(3):
        assert sum(subscriber.lost.values()) == 0
        assert subscriber.publisher_count == 1
    publisher.send(b"x")
    waiting.join(LIMIT_S)
    assert not waiting.is_alive()


def test_looks_do_not_wait_for_threads_that_wait(pair, node):
    """A hundred brief requests, each of which interrupts the waiting threads for a moment."""
    publisher, subscriber = pair()
    other = node("other").subscriber("/other")
    looks = 100
    waits = [
        threading.Thread(target=wait, daemon=True)
        for wait in (subscriber.recv, subscriber.recv, lambda: list(other))
    ]
    for thread in waits:
        thread.start()
    done = threading.Event()

    def look() -> None:
        for _ in range(looks):
            assert subscriber.publisher_count == 1 and sum(subscriber.lost.values()) == 0
            assert other.try_recv() is None and len(other.stats()) == 0
        done.set()

    threading.Thread(target=look, daemon=True).start()
    assert done.wait(LIMIT_S)
    publisher.send(b"one")
    publisher.send(b"two")
    other.close()
    for thread in waits:
        thread.join(LIMIT_S)
        assert not thread.is_alive()


def test_a_time_limit_holds_behind_a_thread_that_waits(pair):
    publisher, subscriber = pair()
    waiting = threading.Thread(target=subscriber.recv, daemon=True)
    waiting.start()
    for timeout in (0, 0.01):
        with pytest.raises(rnet.WaitTimeoutError, match="a message on /t"):
            subscriber.recv(timeout=timeout)
    publisher.send(b"x")
    waiting.join(LIMIT_S)
    assert not waiting.is_alive()


def test_merged_subscribers_can_be_looked_at(node):
    home = node()
    one, other = home.subscriber("/one"), home.subscriber("/other")
    publisher = home.publisher("/one")
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    one.wait_for_publishers(1, timeout=LIMIT_S)
    got = []
    waiting = threading.Thread(target=lambda: got.append(rnet.Merge(one, other).recv()))
    waiting.start()
    for _ in range(50):
        assert one.publisher_count == 1 and other.publisher_count == 0
    publisher.send(b"x")
    waiting.join(LIMIT_S)
    assert not waiting.is_alive() and bytes(got[0][1]) == b"x"


def test_merge_hears_all_while_a_thread_waits_for_one(node):
    home = node()
    one, other = home.subscriber("/one"), home.subscriber("/other")
    publisher = home.publisher("/one")
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    one.wait_for_publishers(1, timeout=LIMIT_S)
    heard, done = threading.Semaphore(0), threading.Event()

    def merge() -> None:
        for _ in rnet.Merge(one, other):
            heard.release()

    def talk() -> None:
        for _ in range(100):
            # Each brief request ends a wait, and both threads then request the lock of the other one.
            assert other.publisher_count == 0
            publisher.send(b"x")
            heard.acquire()
            assert one.publisher_count == 1
        done.set()

    targets = (merge, lambda: list(other), talk)
    threads = [threading.Thread(target=target, daemon=True) for target in targets]
    for thread in threads:
        thread.start()
    assert done.wait(LIMIT_S)
    one.close()
    other.close()
    for thread in threads:
        thread.join(LIMIT_S)
        assert not thread.is_alive()


def test_threads_share_the_messages_of_a_merge(node):
    home = node()
    subscribers = [home.subscriber(f"/s{n}", bytes, reliable=True) for n in range(3)]
    publishers = [home.publisher(f"/s{n}", bytes, reliable=True) for n in range(3)]
    for publisher, subscriber in zip(publishers, subscribers, strict=True):
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        subscriber.wait_for_publishers(1, timeout=LIMIT_S)
    # Two threads share one merge, and the third has another one.
    shared = rnet.Merge(*subscribers)
    merges = [shared, shared, rnet.Merge(*subscribers[1:])]
    got, all_got = [], threading.Semaphore(0)

    def take(merge: rnet.Merge) -> None:
        for _, message in merge:
            got.append(message)
            all_got.release()

    threads = [threading.Thread(target=take, args=[merge], daemon=True) for merge in merges]
    for thread in threads:
        thread.start()
    sent = [b"%d of %d" % (n, number) for n in range(100) for number in range(3)]
    for n, message in enumerate(sent):
        publishers[n % 3].send(message)
    for _ in sent:
        assert all_got.acquire(timeout=LIMIT_S)
    home.close()
    for thread in threads:
        thread.join(LIMIT_S)
        assert not thread.is_alive()
    assert sorted(got) == sorted(sent)


def test_merge_waits_for_many_topics(node):
    home = node()
    subscribers = [home.subscriber(f"/s{n}") for n in range(8)]
    publishers = [home.publisher(f"/s{n}") for n in range(8)]
    for publisher in publishers:
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    merge = rnet.Merge(*subscribers)
    assert merge.subscribers == tuple(subscribers)
    with pytest.raises(rnet.WaitTimeoutError):
        merge.recv(timeout=0)
    for turn in range(3):
        for n, publisher in enumerate(publishers):
            publisher.send(bytes([n, turn]))
    received = [merge.recv(timeout=LIMIT_S) for _ in range(24)]
    # Each gets its turn: no topic hides another.
    assert [bytes(m)[0] for _, m in received] == [n for _ in range(3) for n in range(8)]
    assert all(subscriber is subscribers[bytes(m)[0]] for subscriber, m in received)
    later = threading.Timer(0.05, publishers[3].send, [b"later"])
    later.start()
    subscriber, message = next(merge)
    assert subscriber is subscribers[3] and bytes(message) == b"later"
    subscribers[0].close()
    publishers[7].send(b"others go on")
    assert bytes(next(merge)[1]) == b"others go on"
    home.close()
    assert list(merge) == []
    with pytest.raises(rnet.ClosedError):
        merge.recv()


def test_merge_is_of_one_node(node):
    one, other = node("one"), node("other")
    a, b = one.subscriber("/a"), other.subscriber("/a")
    with pytest.raises(rnet.errors.BadValueError, match="belong to one node"):
        rnet.Merge(a, b)
    with pytest.raises(rnet.errors.BadValueError, match="listed twice"):
        rnet.Merge(a, a)
    with pytest.raises(rnet.errors.BadValueError, match="at least one subscriber"):
        rnet.Merge()
