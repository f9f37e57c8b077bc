"""Loans, and reading samples in place."""

from __future__ import annotations

import ctypes
import gc
import threading

import numpy as np
import pytest
import rnet
from conftest import LIMIT_S

LARGE = 100_000


def mapped_file(address: int) -> str:
    """The file that is mapped at an address."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            span, _, _, _, _, *path = line.split(maxsplit=5)
            begin, end = (int(number, 16) for number in span.split("-"))
            if begin <= address < end:
                return path[0].strip() if path else ""
    return ""


def address_of(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_a_large_sample_is_the_publishers_memory(pair, domain):
    publisher, subscriber = pair()
    publisher.send(b"\7" * LARGE)
    view = np.frombuffer(subscriber.recv(timeout=LIMIT_S), np.uint8)
    assert mapped_file(address_of(view)).startswith(domain)
    assert not view.flags.writeable and not view.flags.owndata
    assert (view == 7).all()


def test_two_views_are_one_memory(pair):
    publisher, subscriber = pair()
    publisher.send(b"\7" * LARGE)
    sample = subscriber.recv(timeout=LIMIT_S)
    views = [np.frombuffer(sample, np.uint8), np.frombuffer(sample.data, np.uint8)]
    assert address_of(views[0]) == address_of(views[1])


@pytest.mark.parametrize("length", [100, LARGE])
def test_a_view_outlives_sample_subscriber_and_nodes(node, length):
    sender, receiver = node("sender"), node("receiver")
    publisher = sender.publisher("/t")
    subscriber = receiver.subscriber("/t")
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    publisher.send(b"\7" * length)
    view = np.frombuffer(subscriber.recv(timeout=LIMIT_S), np.uint8)[10:]
    for n in range(50):  # Would reuse the same memory if it were free.
        publisher.send(bytes([n]) * length)
        subscriber.recv(timeout=LIMIT_S)
    subscriber.close()
    receiver.close()
    del subscriber, receiver
    gc.collect()
    for n in range(50):
        publisher.send(bytes([n]) * length)
    assert (view == 7).all()
    publisher.close()
    sender.close()
    gc.collect()
    assert (view == 7).all()


def test_too_many_large_samples_is_an_error_until_one_goes(pair):
    publisher, subscriber = pair(pub={"large_depth": 100})
    held = []
    with pytest.raises(rnet.errors.TooManyPinsError) as caught:
        for _ in range(100):
            publisher.send(b"\7" * 5000)
            held.append(subscriber.recv(timeout=LIMIT_S))
    assert caught.value.limit == len(held) and caught.value.topic == "/t"
    held.pop()
    assert bytes(subscriber.recv(timeout=LIMIT_S)) == b"\7" * 5000


@pytest.mark.parametrize("length", [0, 100, LARGE])
def test_a_loan_is_filled_in_place(pair, length):
    publisher, subscriber = pair()
    with publisher.loan(length) as memory:
        assert isinstance(memory, memoryview) and not memory.readonly
        assert len(memory) == length
        memory[:] = b"\7" * length
    assert bytes(subscriber.recv(timeout=LIMIT_S)) == b"\7" * length
    with pytest.raises(ValueError, match="released"):
        memory[0:1] = b"x"


def test_a_loan_is_sent_without_a_copy(pair, domain):
    publisher, subscriber = pair()
    loan = publisher.loan(LARGE)
    place = address_of(np.frombuffer(loan.data, np.uint8))
    assert mapped_file(place).startswith(domain)
    written = mapped_file(place)
    loan.data[:] = b"\7" * LARGE
    loan.send()
    view = np.frombuffer(subscriber.recv(timeout=LIMIT_S), np.uint8)
    # Another mapping of the same file.
    assert mapped_file(address_of(view)) == written
    assert publisher.copied_loan_count == 0 and (view == 7).all()


@pytest.mark.parametrize("length", [100, LARGE])
def test_a_view_of_a_loan_cannot_write_to_what_was_sent(pair, length):
    publisher, subscriber = pair()
    with publisher.loan(length) as memory:
        image = np.frombuffer(memory, np.uint8)
        image[:] = 7
    sample = subscriber.recv(timeout=LIMIT_S)
    image[:] = 8  # The memory is still writable, and not readable by subscribers.
    assert bytes(sample) == b"\7" * length
    assert publisher.copied_loan_count == 1
    for n in range(20):
        publisher.send(bytes([n]) * length)
    assert (image == 8).all()
    publisher.close()
    image[:] = 9
    assert (image == 9).all()


def test_a_loan_that_raises_is_not_sent(pair):
    publisher, subscriber = pair()
    with pytest.raises(ZeroDivisionError), publisher.loan(LARGE) as memory:
        memory[:] = b"\7" * LARGE
        raise ZeroDivisionError
    publisher.send(b"next")
    assert bytes(subscriber.recv(timeout=LIMIT_S)) == b"next"


def test_a_loan_ends_once(pair):
    publisher, subscriber = pair()
    loan = publisher.loan(5)
    assert len(loan) == 5 and "5 bytes, open" in repr(loan)
    loan.data[:] = b"hello"
    loan.send()
    for again in (loan.send, loan.__enter__, lambda: loan.data):
        with pytest.raises(rnet.ClosedError, match="this loan of /t is closed"):
            again()
    loan.discard()
    assert "over" in repr(loan)
    with publisher.loan(3) as memory:
        memory[:] = b"two"
    assert [bytes(subscriber.recv(timeout=LIMIT_S)) for _ in range(2)] == [b"hello", b"two"]
    assert subscriber.try_recv() is None


def test_several_loans_at_a_time(pair):
    publisher, subscriber = pair()
    loans = [publisher.loan(LARGE) for _ in range(5)]
    for n, loan in enumerate(loans):
        loan.data[:] = bytes([n]) * LARGE
    for loan in reversed(loans):
        loan.send()
    received = [bytes(subscriber.recv(timeout=LIMIT_S)) for _ in loans]
    assert received == [bytes([n]) * LARGE for n in reversed(range(5))]


def test_loans_that_are_dropped_give_their_memory_back(pair):
    publisher, _ = pair(pub={"pool_limit_bytes": 1 << 20})
    for _ in range(100):
        publisher.loan(LARGE)
    gc.collect()
    assert publisher.memory_bytes < 3 << 20
    assert publisher.sent == 0


def test_a_refused_loan_can_be_sent_again(pair):
    publisher, subscriber = pair(
        pub={"reliable": True, "on_full": "refuse", "log_len_bytes": 16384},
        sub={"reliable": True},
    )
    with pytest.raises(rnet.FullError):
        while True:
            publisher.send(b"x" * 1000)
    loan = publisher.loan(1000)
    loan.data[:] = b"y" * 1000
    with pytest.raises(rnet.FullError):
        loan.send()
    while subscriber.try_recv() is not None:
        pass
    loan.send()
    assert bytes(subscriber.recv(timeout=LIMIT_S)) == b"y" * 1000


def test_a_closed_publisher_lends_nothing_and_sends_no_loan(pair):
    publisher, _ = pair()
    loan = publisher.loan(LARGE)
    publisher.close()
    loan.data[:] = b"\7" * LARGE
    with pytest.raises(rnet.ClosedError):
        loan.send()
    with pytest.raises(rnet.ClosedError):
        publisher.loan(1)


def test_memory_beyond_the_limit_is_an_error_that_says_so(pair):
    publisher, subscriber = pair(pub={"pool_limit_bytes": 1 << 20})
    with pytest.raises(rnet.errors.OutOfMemoryError) as caught:
        publisher.send(bytes(2 << 20))
    assert isinstance(caught.value, MemoryError)
    assert caught.value.limit_bytes == 1 << 20 and caught.value.topic == "/t"
    with pytest.raises(rnet.errors.MessageTooLargeError) as too_large:
        publisher.loan((1 << 30) + 1)
    assert too_large.value.limit == 1 << 30
    publisher.send(b"goes on")
    assert bytes(subscriber.recv(timeout=LIMIT_S)) == b"goes on"


def test_what_late_joiners_are_to_get_is_not_given_up_for_want_of_room(node):
    publisher = node("camera").publisher("/image", transient_local=3, pool_limit_bytes=400_000)
    for n in range(3):
        publisher.send(bytes([n]) * LARGE)
    named = "transient_local keeps the last 3.*pool_limit_bytes"
    with pytest.raises(rnet.errors.OutOfMemoryError, match=named) as caught:
        publisher.send(bytes(LARGE))
    assert caught.value.topic == "/image" and caught.value.limit_bytes == 400_000
    assert caught.value.needed_bytes >= 4 * LARGE
    with pytest.raises(rnet.errors.OutOfMemoryError, match="transient_local"):
        publisher.loan(LARGE)
    late = node("late").subscriber("/image", transient_local=True, keep_all=True)
    assert [bytes(late.recv(timeout=LIMIT_S))[:1] for _ in range(3)] == [b"\0", b"\1", b"\2"]
    enough = caught.value.needed_bytes
    roomy = node("roomy").publisher("/other", transient_local=3, pool_limit_bytes=enough)
    for n in range(20):
        roomy.send(bytes([n]) * LARGE)
    late = node("later").subscriber("/other", transient_local=True, keep_all=True)
    assert [bytes(late.recv(timeout=LIMIT_S))[0] for _ in range(3)] == [17, 18, 19]


def test_a_promise_that_the_pool_cannot_hold_is_refused(node):
    class Grid(ctypes.Structure):
        _fields_ = [("cells", ctypes.c_uint8 * LARGE)]

    home = node()
    with pytest.raises(rnet.errors.BadQosError, match="/grid.*3 messages.*pool_limit_bytes"):
        home.publisher("/grid", Grid, transient_local=3, pool_limit_bytes=4 * LARGE)
    with pytest.raises(rnet.errors.BadQosError, match="1023"):
        home.publisher("/grid", Grid, transient_local=1024)
    home.publisher("/grid", Grid, transient_local=3).send(Grid())


def test_a_reserved_log_has_its_memory_from_the_start(node):
    home = node()
    grows = home.publisher("/grows")
    reserved = home.publisher("/reserved", reserve_log=True, log_len_bytes=1 << 20)
    assert grows.memory_bytes < 64 << 10
    taken = reserved.memory_bytes
    assert taken >= 1 << 20
    subscriber = home.subscriber("/reserved", keep_all=True)
    reserved.wait_for_subscribers(1, timeout=LIMIT_S)
    for n in range(2000):
        reserved.send(n.to_bytes(2, "little") * 500)
        assert bytes(subscriber.recv(timeout=LIMIT_S))[:2] == n.to_bytes(2, "little")
    assert reserved.memory_bytes == taken


def test_samples_are_let_go_in_any_thread(pair):
    publisher, subscriber = pair()
    for n in range(200):
        publisher.send(bytes([n]) * LARGE)
        samples = [subscriber.recv(timeout=LIMIT_S)]
        letting_go = threading.Thread(target=samples.clear)
        letting_go.start()
        letting_go.join()
    assert publisher.memory_bytes < 10 << 20
