"""Notification of changes: iterating, with a time limit, by callback, in asyncio."""

from __future__ import annotations

import asyncio
import gc
import os
import queue
import signal
import sys
import threading
import time

import pytest
import rnet
from conftest import LIMIT_S, finish, settle


@pytest.fixture
def state(node):
    return node("writer").state


@pytest.fixture
def reader(node):
    return node("reader").state


def test_first_what_stands_there_then_each_change(state, reader):
    state["/arm/mode"] = "idle"
    state["/army"] = 1
    watch = reader.watch("/arm")
    state["/arm/mode"] = "moving"
    state.set("/arm/speed", 0.5)
    del state["/arm/mode"]
    state["/arm"] = 1
    told = [watch.recv(timeout=LIMIT_S) for _ in range(5)]
    assert [(c.key, c.value, c.initial, c.deleted) for c in told] == [
        ("/arm/mode", "idle", True, False),
        ("/arm/mode", "moving", False, False),
        ("/arm/speed", 0.5, False, False),
        ("/arm/mode", None, False, True),
        ("/arm", 1, False, False),
    ]
    assert [c.revision for c in told] == sorted(c.revision for c in told)
    assert told[1].entry.owner == "/writer" and told[3].entry is None
    assert not any(c.expired or c.skipped for c in told)
    assert watch.try_recv() is None
    with pytest.raises(rnet.WaitTimeoutError):
        watch.recv(timeout=0.01)
    assert "deleted" in repr(told[3]) and "'moving'" in repr(told[1])
    assert watch.prefix == "/arm" and "/arm" in repr(watch)
    for bad in (-1, float("nan")):
        with pytest.raises(rnet.errors.BadValueError):
            watch.recv(timeout=bad)
    with pytest.raises(rnet.errors.BadNameError):
        reader.watch("no prefix!")


def test_an_iteration_ends_with_the_watch(state, reader):
    state["/n"] = 0
    watch = reader.watch("/n")
    got = []

    def read():
        got.extend(change.value for change in watch)

    thread = threading.Thread(target=read)
    thread.start()
    for n in range(1, 100):
        state["/n"] = n
    while not got or got[-1] != 99:
        assert thread.is_alive()
    watch.close()
    thread.join(LIMIT_S)
    assert not thread.is_alive() and watch.closed and got == sorted(set(got))
    with pytest.raises(rnet.ClosedError):
        watch.recv(timeout=0)


def test_who_is_slow_gets_the_newest_and_the_count(state, reader):
    watch = reader.watch("/n")
    for n in range(20_000):
        state["/n"] = n
    told = []
    while not told or told[-1].value != 19_999:
        told.append(watch.recv(timeout=LIMIT_S))
    values = [change.value for change in told]
    assert values == sorted(set(values))
    assert sum(change.skipped for change in told) + len(told) == 20_000


def test_what_expires_is_told(state, reader):
    watch = reader.watch("/short")
    state.set("/short", 1, ttl=0.05)
    assert watch.recv(timeout=LIMIT_S).value == 1
    gone = watch.recv(timeout=LIMIT_S)
    assert gone.deleted and gone.expired and "expired" in repr(gone)


def test_transactions_are_told_as_one_revision(state, reader):
    watch = reader.watch()
    with state.transaction() as t:
        t["/a"], t["/b"] = 1, 2
    told = {c.key: c for c in (watch.recv(timeout=LIMIT_S), watch.recv(timeout=LIMIT_S))}
    assert told["/a"].revision == told["/b"].revision == t.revision


def test_the_gil_is_released_while_a_thread_waits(reader, state):
    watch = reader.watch("/n")
    got: queue.Queue = queue.Queue()
    thread = threading.Thread(target=lambda: got.put(watch.recv(timeout=LIMIT_S).value))
    thread.start()
    count = 0
    # This thread runs while the other waits; otherwise it would never write.
    until = time.monotonic() + 0.1
    while time.monotonic() < until:
        count += 1
    assert count > 1000 and got.empty()
    state["/n"] = 7
    assert got.get(timeout=LIMIT_S) == 7
    thread.join(LIMIT_S)


def test_threads_share_a_watch(state, reader):
    watch = reader.watch("/k")
    got: queue.Queue = queue.Queue()

    def work():
        for change in watch:
            got.put(change.value)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for n in range(50):
        state[f"/k/{n}"] = n
    assert sorted(got.get(timeout=LIMIT_S) for _ in range(50)) == list(range(50))
    watch.close()
    for thread in threads:
        thread.join(LIMIT_S)
    assert not any(thread.is_alive() for thread in threads) and got.empty()


def test_a_signal_handler_runs_while_a_watch_waits(reader):
    watch = reader.watch("/nothing")

    class Rung(Exception):
        pass

    def ring(*_):
        raise Rung

    before = signal.signal(signal.SIGUSR1, ring)
    try:
        timer = threading.Timer(0.05, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1))
        timer.start()
        with pytest.raises(Rung):
            watch.recv(timeout=LIMIT_S)
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert watch.try_recv() is None


# -- callbacks ------------------------------------------------------------------------------------


def test_a_callback_gets_each_change_on_another_thread(state, reader):
    state["/n"] = 0
    got: queue.Queue = queue.Queue()
    watch = reader.watch("/n")
    watch.on(lambda change: got.put((change.value, threading.get_native_id())))
    assert got.get(timeout=LIMIT_S)[0] == 0
    for n in range(1, 100):
        state["/n"] = n
    values, threads = [], set()
    while 99 not in values:
        value, thread = got.get(timeout=LIMIT_S)
        values.append(value)
        threads.add(thread)
    assert values == sorted(values) and threads.isdisjoint({threading.get_native_id()})
    for misuse in (lambda: watch.recv(timeout=0), watch.try_recv, lambda: watch.on(print)):
        with pytest.raises(rnet.errors.BadValueError, match="callback"):
            misuse()
    watch.close()
    state["/n"] = 100
    assert got.empty()


@pytest.mark.parametrize(("urgent", "name"), [(False, "rnet-bulk"), (True, "rnet-urgent")])
def test_a_callback_runs_on_the_dispatch_thread_of_its_lane(state, reader, urgent, name):
    state["/n"] = 0
    got: queue.Queue = queue.Queue()

    def callback(change):
        with open(f"/proc/self/task/{threading.get_native_id()}/comm") as comm:
            got.put(comm.read().strip())

    watch = reader.watch("/n")
    watch.on(callback, urgent=urgent)
    assert got.get(timeout=LIMIT_S) == name
    watch.close()


def test_a_callback_lives_as_long_as_the_node(node, state):
    home = node("home")
    got: queue.Queue = queue.Queue()
    home.state.watch("/n").on(lambda change: got.put(change.value))
    gc.collect()
    state["/n"] = 1
    assert got.get(timeout=LIMIT_S) == 1
    home.close()
    state["/n"] = 2
    assert got.empty()


def test_a_callback_that_raises_is_told_and_called_again(state, reader, unraisable):
    got: queue.Queue = queue.Queue()

    def callback(change):
        got.put(change.value)
        raise ValueError(change.value)

    reader.watch("/n").on(callback)
    for n in range(2):
        state["/n"] = n
        assert got.get(timeout=LIMIT_S) == n
        assert str(unraisable.get(timeout=LIMIT_S)) == str(n)


def test_a_callback_may_use_the_state_and_close_its_watch(state, reader):
    done = threading.Event()
    watch = reader.watch("/n")

    def callback(change):
        reader["/answer"] = change.value + 1
        watch.close()
        done.set()

    watch.on(callback)
    state["/n"] = 1
    assert done.wait(LIMIT_S) and state["/answer"] == 2 and watch.closed


# -- asyncio --------------------------------------------------------------------------------------


def run(main):
    return asyncio.run(asyncio.wait_for(main, LIMIT_S))


def test_async_for(state, reader):
    state["/n"] = 0
    watch = reader.watch("/n")

    async def main():
        got = []
        async for change in watch:
            got.append(change.value)
            if change.value == 50:
                return got
            state["/n"] = change.value + 1
        raise AssertionError("it ended")

    assert run(main()) == list(range(51))
    # The watch can be read directly again.
    state["/n"] = 60
    assert watch.recv(timeout=LIMIT_S).value == 60


def test_async_changes_that_come_later_and_the_end(state, reader):
    watch = reader.watch("/n")

    async def main():
        threading.Timer(0.05, state.set, ["/n", 1]).start()
        first = await watch.recv_async()
        tasks = [asyncio.ensure_future(watch.recv_async()) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(rnet.WaitTimeoutError):
            watch.recv(timeout=0)
        tasks[0].cancel()
        for n in range(2, 4):
            state["/n"] = n
            await asyncio.wait([tasks[n - 1]])
        values = [task.result().value for task in tasks[1:]]

        async def iterate():
            return [change.value async for change in watch]

        rest = asyncio.create_task(iterate())
        await asyncio.sleep(0)
        await asyncio.to_thread(watch.close)
        with pytest.raises(rnet.ClosedError):
            await watch.recv_async()
        return first.value, values, await rest

    assert run(main()) == (1, [2, 3], [])


# -- processes ------------------------------------------------------------------------------------


def test_two_processes(state, program):
    state["/ping"] = 0
    process = program(
        """
import rnet
with rnet.Node("other") as node:
    for change in node.state.watch("/ping"):
        node.state["/pong"] = {"got": change.value, "from": change.entry.owner}
        if change.value == 100:
            break
"""
    )
    pongs = state.watch("/pong")
    for n in range(1, 101):
        state["/ping"] = n
        # An earlier value may come first.
        while pongs.recv(timeout=LIMIT_S).value["got"] != n:
            pass
    assert state["/pong"] == {"got": 100, "from": "/writer"}
    assert state.entry("/pong").owner == "/other"
    assert finish(process) == (0, "", "")


def test_ctrl_c_ends_a_wait(program):
    process = program(
        """
import rnet, sys
watch = rnet.Node("waits").state.watch()
print("ready", flush=True)
try:
    next(watch)
except KeyboardInterrupt:
    print("interrupted")
"""
    )
    assert process.stdout.readline() == "ready\n"
    settle(process)
    process.send_signal(signal.SIGINT)
    assert finish(process) == (0, "interrupted\n", "")


def test_a_forked_child_has_no_state(state):
    watch = state.watch()
    state["/n"] = 1
    transaction = state.transaction()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            wrong = 0
            for use in (
                lambda: state["/n"],
                lambda: state.set("/n", 2),
                lambda: watch.recv(timeout=0),
                lambda: transaction["/n"],
                lambda: state.watch(),
            ):
                try:
                    use()
                    wrong += 1
                except rnet.ClosedError:
                    pass
            watch.close()
            del transaction
            with rnet.Node("child") as node:
                wrong += node.state["/n"] != 1
            code = wrong
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert watch.recv(timeout=LIMIT_S).value == 1 and state["/n"] == 1
