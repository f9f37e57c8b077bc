"""Receiving in asyncio."""

from __future__ import annotations

import asyncio
import ctypes
import threading

import pytest
import rnet
from conftest import LIMIT_S


def run(main):
    return asyncio.run(asyncio.wait_for(main, LIMIT_S))


def test_messages_that_are_there_and_that_come_later(pair):
    publisher, subscriber = pair()

    async def main():
        publisher.send(b"there")
        first = bytes(await subscriber.recv_async())
        threading.Timer(0.05, publisher.send, [b"later"]).start()
        return first, bytes(await subscriber.recv_async())

    assert run(main()) == (b"there", b"later")


def test_async_for_ends_with_the_subscriber(pair):
    publisher, subscriber = pair(sub={"keep_all": True})

    async def read():
        return [bytes(message) async for message in subscriber]

    async def main():
        reader = asyncio.create_task(read())
        for n in range(100):
            publisher.send(bytes([n]))
            if n % 10 == 0:
                await asyncio.sleep(0)
        while sum(stats.received for stats in subscriber.stats()) < 100:
            await asyncio.sleep(0.001)
        await asyncio.to_thread(subscriber.close)
        return await reader

    assert run(main()) == [bytes([n]) for n in range(100)]


def test_samples_and_values(pair):
    class Count(ctypes.Structure):
        _fields_ = [("n", ctypes.c_uint32)]

    publisher, subscriber = pair(type=Count)

    async def main():
        for n in range(4):
            publisher.send(Count(n))
        value = await subscriber.recv_async()
        sample = await subscriber.recv_sample_async()
        async for iterated in subscriber.samples():
            break
        async for value_again in subscriber:
            break
        return value.n, sample.value.n, sample.seq, iterated.seq, value_again.n

    assert run(main()) == (0, 1, 1, 2, 3)


def test_tasks_get_messages_in_the_order_in_which_they_came(pair):
    publisher, subscriber = pair()

    async def main():
        tasks = [asyncio.ensure_future(subscriber.recv_async()) for _ in range(5)]
        for n in range(5):
            publisher.send(bytes([n]))
        return [bytes(sample) for sample in await asyncio.gather(*tasks)]

    assert run(main()) == [bytes([n]) for n in range(5)]


def test_a_cancelled_task_takes_no_message_with_it(pair):
    publisher, subscriber = pair()

    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(subscriber.recv_async(), 0.01)
        waiting = asyncio.ensure_future(subscriber.recv_async())
        await asyncio.sleep(0)
        waiting.cancel()
        publisher.send(b"kept")
        return bytes(await subscriber.recv_async())

    assert run(main()) == b"kept"
    assert sum(subscriber.lost.values()) == 0


def test_awaiting_and_waiting_may_alternate(pair):
    publisher, subscriber = pair()

    async def one():
        return bytes(await subscriber.recv_async())

    for n in range(5):
        publisher.send(bytes([n, 0]))
        publisher.send(bytes([n, 1]))
        assert run(one()) == bytes([n, 0])
        assert bytes(subscriber.recv(timeout=LIMIT_S)) == bytes([n, 1])
    assert subscriber.stats()[0].received == 10
    subscriber.wait_for_publishers(1, timeout=LIMIT_S)

    async def both():
        waiting = asyncio.ensure_future(subscriber.recv_async())
        await asyncio.sleep(0)
        assert subscriber.try_recv() is None
        assert subscriber.lost["overrun"] == 0
        subscriber.wait_for_publishers(1, timeout=LIMIT_S)
        with pytest.raises(rnet.WaitTimeoutError):
            subscriber.wait_for_publishers(2, timeout=0.01)
        publisher.send(b"x")
        return bytes(await waiting)

    assert run(both()) == b"x"


def test_errors_reach_the_task(pair):
    publisher, subscriber = pair()

    async def main():
        waiting = asyncio.ensure_future(subscriber.recv_async())
        await asyncio.sleep(0)
        await asyncio.to_thread(subscriber.close)
        with pytest.raises(rnet.ClosedError):
            await waiting
        with pytest.raises(rnet.ClosedError):
            await subscriber.recv_async()
        return [message async for message in subscriber]

    assert run(main()) == []


def test_the_loop_runs_while_a_task_waits(pair):
    publisher, subscriber = pair()

    async def main():
        waiting = asyncio.ensure_future(subscriber.recv_async())
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not waiting.done()
        publisher.send(b"x")
        await waiting

    run(main())


def test_a_call_has_one_outcome_however_it_is_asked_for(node):
    async def main():
        home = node()
        service = home.service("/echo", None, None, lambda request: request)
        client = home.client("/echo")
        call = client.start(b"1", timeout=LIMIT_S)
        assert (await call, await call, call.result(), await call) == (b"1",) * 4
        call = client.start(b"2", timeout=LIMIT_S)
        assert (call.result(), await call) == (b"2", b"2")
        service.close()
        while client.server_count:
            await asyncio.sleep(0.001)
        call = client.start(b"3", timeout=0.01)
        for _ in range(2):
            with pytest.raises(rnet.WaitTimeoutError):
                await call
            with pytest.raises(rnet.WaitTimeoutError):
                call.result()

    run(main())
