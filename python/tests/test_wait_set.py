"""One wait for messages, changes of the state and ticks."""

from __future__ import annotations

import asyncio
import signal
import threading
import time

import pytest
import rnet
from conftest import LIMIT_S
from rnet.msgs import Clock


@pytest.fixture
def sent(node):
    """A publisher of another node, once it is connected."""

    def make(subscriber: rnet.Subscriber) -> rnet.Publisher:
        publisher = node(f"sender{subscriber.topic.replace('/', '_')}").publisher(subscriber.topic)
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        subscriber.wait_for_publishers(1, timeout=LIMIT_S)
        return publisher

    return make


def waiting(waits: rnet.WaitSet, timeout: float = LIMIT_S) -> tuple[threading.Thread, list]:
    """A waiting thread, and the result of its wait."""
    came: list = []

    def wait() -> None:
        try:
            came.append(waits.wait(timeout=timeout))
        except rnet.RnetError as error:
            came.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread, came


def drained(waits: rnet.WaitSet) -> None:
    """Takes all available items."""
    while ready := waits.wait(timeout=0):
        for one in ready:
            take = one.try_tick if isinstance(one, rnet.Rate) else one.try_recv
            take()


def test_messages_changes_and_ticks_are_one_wait_and_none_hides_another(node, sent):
    robot = node()
    subscriber, watch, rate = robot.subscriber("/busy"), robot.state.watch("/k"), robot.rate(1000)
    publisher, waits = sent(subscriber), rnet.WaitSet(robot)
    for one in (subscriber, watch, rate):
        waits.attach(one)
    assert len(waits) == 3
    for turn in range(50):
        for _ in range(5):  # More than are taken: it is always ready.
            publisher.send(b"x")
        robot.state["/k/v"] = turn
        told, ticked = None, False
        while told != turn or not ticked:
            ready = waits.wait(timeout=LIMIT_S)
            assert ready == [one for one in (subscriber, watch, rate) if one in ready]
            if watch in ready:
                told = watch.try_recv().value
            if rate in ready:
                ticked |= rate.try_tick() is not None
        assert subscriber in waits.wait(timeout=LIMIT_S)
        assert subscriber.try_recv() is not None
    waits.detach(rate)
    drained(waits)
    robot.state["/other"] = 1
    assert waits.wait(timeout=0.001) == []


@pytest.mark.parametrize("kind", ["subscriber", "watch", "rate"])
def test_each_kind_wakes_a_thread_that_sleeps(node, sent, kind):
    robot = node()
    subscriber, watch = robot.subscriber("/t"), robot.state.watch("/k")
    publisher, waits = sent(subscriber), rnet.WaitSet(robot)
    waits.attach(subscriber)
    waits.attach(watch)
    for _ in range(20):
        drained(waits)
        thread, came = waiting(waits)
        if kind == "subscriber":
            publisher.send(b"x")
            expected = subscriber
        elif kind == "watch":
            robot.state["/k"] = 1
            expected = watch
        else:
            expected = robot.rate(1e6)
            waits.attach(expected)
        thread.join(LIMIT_S)
        assert came == [[expected]]
        if kind == "rate":
            waits.detach(expected)


def test_what_is_attached_and_detached_while_a_thread_waits(node, sent):
    robot = node()
    waits, first, second = rnet.WaitSet(robot), robot.subscriber("/a"), robot.subscriber("/b")
    publishers = sent(first), sent(second)
    for _ in range(20):
        thread, came = waiting(waits)
        waits.attach(first)
        waits.attach(second)
        waits.detach(first)
        publishers[0].send(b"not for the set")
        publishers[1].send(b"x")
        thread.join(LIMIT_S)
        assert came == [[second]]
        waits.detach(second)
        assert bytes(first.recv(timeout=LIMIT_S)) == b"not for the set" and bytes(second.recv(timeout=LIMIT_S)) == b"x"
    for wrong in (first, object()):
        with pytest.raises(rnet.errors.BadValueError, match="not attached"):
            waits.detach(wrong)
    waits.attach(first)
    with pytest.raises(rnet.errors.BadValueError, match="already attached"):
        waits.attach(first)
    with pytest.raises(TypeError):
        waits.attach("/a")
    with pytest.raises(rnet.errors.BadValueError, match="to node /other, but the set to node /node"):
        waits.attach(node("other").subscriber("/a"))


@pytest.mark.parametrize("kind", ["subscriber", "watch"])
def test_one_that_is_closed_ends_the_wait_until_it_is_detached(node, kind):
    robot = node()
    one = robot.subscriber("/t") if kind == "subscriber" else robot.state.watch("/k")
    waits = rnet.WaitSet(robot)
    waits.attach(one)
    for _ in range(3):
        waits.attach(robot.subscriber("/other"))
    thread, came = waiting(waits)
    one.close()
    thread.join(LIMIT_S)
    assert came == [[one]] and waits.wait() == [one]
    with pytest.raises(rnet.ClosedError):
        one.try_recv()
    waits.detach(one)
    assert waits.wait(timeout=0) == []


def test_a_timeout_of_a_signal_handler_is_raised(node):
    robot = node()
    waits = rnet.WaitSet(robot)
    waits.attach(robot.subscriber("/t"))

    def give_up(*_: object) -> None:
        raise rnet.WaitTimeoutError("the operator has waited long enough")

    before = signal.signal(signal.SIGUSR1, give_up)
    later = threading.Timer(0.1, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1))
    try:
        with pytest.raises(rnet.WaitTimeoutError, match="the operator has waited long enough"):
            later.start()
            waits.wait(timeout=LIMIT_S)
    finally:
        later.join()
        signal.signal(signal.SIGUSR1, before)


def test_a_merge_that_waits_again_names_the_time_that_it_was_given(node):
    robot = node()
    first, second = robot.subscriber("/first"), robot.subscriber("/second")
    merge = rnet.Merge(first, second)
    # Closing it ends the first wait, and the merge waits for the other one for the rest of the time.
    later = threading.Timer(0.1, second.close)
    later.start()
    with pytest.raises(rnet.WaitTimeoutError, match="1000 ms") as raised:
        merge.recv(timeout=1.0)
    later.join()
    assert raised.value.after == 1


@pytest.mark.parametrize("empty", [True, False])
def test_the_end_of_the_node_ends_the_wait(node, empty):
    robot = node()
    waits = rnet.WaitSet(robot)
    if not empty:
        waits.attach(robot.subscriber("/t"))
    thread, came = waiting(waits)
    robot.close()
    thread.join(LIMIT_S)
    assert isinstance(came[0], rnet.ClosedError)
    for use in (waits.wait, lambda: waits.attach(rnet.Rate(1))):
        with pytest.raises(rnet.ClosedError, match="a wait set of node /node"):
            use()


def test_several_threads_wait_and_others_receive_meanwhile(node, sent):
    robot = node()
    subscriber, watch = robot.subscriber("/t", keep_all=True), robot.state.watch("/k")
    publisher, waits = sent(subscriber), rnet.WaitSet(robot)
    waits.attach(subscriber)
    waits.attach(watch)
    drained(waits)
    taken, lock, total = [], threading.Lock(), 300

    def serve() -> None:
        while len(taken) < total:
            for one in waits.wait(timeout=0.05):
                while (message := one.try_recv()) is not None:
                    with lock:
                        taken.append(message)

    def receive() -> None:
        while len(taken) < total:
            try:
                message = subscriber.recv(timeout=0.05)
            except rnet.WaitTimeoutError:
                continue
            with lock:
                taken.append(message)

    threads = [threading.Thread(target=serve) for _ in range(2)]
    threads += [threading.Thread(target=receive), threading.Thread(target=asyncio.run, args=[idle(watch)])]
    for thread in threads:
        thread.start()
    for _ in range(total):
        publisher.send(b"x")
    for thread in threads:
        thread.join(LIMIT_S)
    assert len(taken) == total


async def idle(watch: rnet.state.Watch) -> None:
    """Awaits, concurrently with the set, a change that does not come."""
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(watch.recv_async(), 0.2)


def test_a_callback_takes_the_place_of_the_wait(node):
    robot = node()
    subscriber, waits = robot.subscriber("/t"), rnet.WaitSet(robot)
    waits.attach(subscriber)
    thread, came = waiting(waits)
    subscriber.on(lambda message: None)
    thread.join(LIMIT_S)
    assert isinstance(came[0], rnet.errors.BadValueError)


def test_the_death_of_a_publisher_ends_the_wait(node, program):
    robot = node()
    subscriber, waits = robot.subscriber("/t"), rnet.WaitSet(robot)
    waits.attach(subscriber)
    peer = program(
        "import rnet\n"
        "topic = rnet.Node('peer').publisher('/t')\n"
        "topic.wait_for_subscribers()\n"
        "topic.send(b'up')\n"
        "input()\n"
    )
    assert waits.wait(timeout=LIMIT_S) == [subscriber] and bytes(subscriber.recv(timeout=LIMIT_S)) == b"up"
    thread, came = waiting(waits)
    peer.kill()
    thread.join(LIMIT_S)
    assert came == [[subscriber]]
    with pytest.raises(rnet.PeerLostError):
        subscriber.try_recv()


def test_a_rate_in_simulated_time_wakes_the_wait(node):
    robot, host = node("sim", sim_time=True), node("host")
    clock = host.publisher("/clock", Clock)
    clock.wait_for_subscribers(1, timeout=LIMIT_S)
    clock.send(Clock(time_ns=1))
    until = time.monotonic() + LIMIT_S
    while robot.now() != 1:
        assert time.monotonic() < until
        time.sleep(0.001)  # sleep: checks again
    waits, rate = rnet.WaitSet(robot), robot.rate(1)
    waits.attach(rate)
    assert waits.wait(timeout=0.01) == []
    for second in range(1, 4):
        assert rate.try_tick() is None  # On time, whenever the thread checks.
        thread, came = waiting(waits)
        clock.send(Clock(time_ns=1 + second * 1_000_000_000))
        thread.join(LIMIT_S)
        assert came == [[rate]] and rate.try_tick().number == second
    assert rate.overruns == 0


def test_many_are_attached(node):
    robot = node()
    waits = rnet.WaitSet(robot)
    many = [robot.subscriber("/t") for _ in range(500)]
    watch, rates = robot.state.watch("/k"), [rnet.Rate(0.001) for _ in range(11)]
    for one in (*many, watch, *rates):
        waits.attach(one)
    assert len(waits) == 512
    publisher = node("sender").publisher("/t")
    publisher.wait_for_subscribers(len(many), timeout=LIMIT_S)
    drained(waits)
    publisher.send(b"x")
    robot.state["/k"] = 1
    got: set = set()
    while len(got) < len(many) + 1:
        for one in waits.wait(timeout=LIMIT_S):
            assert one not in rates
            if one.try_recv() is not None:
                got.add(one)
    assert waits.wait(timeout=0) == []
