"""``async with`` closes the same objects as ``with``, while the event loop runs their handlers."""

from __future__ import annotations

import asyncio
import inspect

import pytest
import rnet
from conftest import LIMIT_S


def run(main):
    return asyncio.run(asyncio.wait_for(main, LIMIT_S))


def test_whatever_has_with_has_async_with():
    having = []
    for module in (rnet, rnet.launching, rnet.recording, rnet.state):
        for name in module.__all__:
            cls = getattr(module, name)
            if isinstance(cls, type) and hasattr(cls, "__enter__"):
                having.append(name)
                assert inspect.iscoroutinefunction(cls.__aenter__), name
                assert inspect.iscoroutinefunction(cls.__aexit__), name
    assert len(having) > 20


def test_the_event_loop_runs_a_handler_while_its_node_closes(node):
    async def main():
        begun = asyncio.Event()

        async def slow(text: bytes) -> bytes:
            begun.set()
            # sleep: the node must be closing when this returns
            await asyncio.sleep(0.05)
            return text.upper()

        other = node("other")
        async with rnet.Node("home") as home:
            home.service("/slow", None, None, slow)
            call = other.client("/slow").start(b"robot")
            await begun.wait()
        assert home.closed
        assert await call == b"ROBOT"

    run(main())


def test_endpoints_are_closed_after_the_block(node):
    async def main():
        home = node()
        async with home.publisher("/t") as publisher, home.subscriber("/t") as subscriber:
            publisher.wait_for_subscribers(1, timeout=LIMIT_S)
            async with publisher.loan(2) as memory:
                memory[:] = b"up"
            assert bytes(await subscriber.recv_async()) == b"up"
        assert publisher.closed and subscriber.closed
        async with home.timer(60.0, lambda tick: None) as timer:
            assert not timer.cancelled
        assert timer.cancelled
        async with home.push("/jobs") as jobs, home.pull("/jobs") as worker:
            jobs.push(b"sweep")
            async with worker.recv(timeout=LIMIT_S) as job:
                assert job == b"sweep"
            await jobs.join()
        assert jobs.closed and worker.closed

    run(main())


def test_a_transaction_is_committed_or_discarded(node):
    async def main():
        state = node().state
        async with state.transaction() as both:
            both["/a"], both["/b"] = 1, 2
        assert dict(state.items()) == {"/a": 1, "/b": 2}
        with pytest.raises(KeyError, match="of a test"):
            async with state.transaction() as both:
                both["/a"] = 3
                raise KeyError("of a test")
        assert state["/a"] == 1

    run(main())


def test_a_cancelled_task_closes_what_it_has_opened(node):
    async def main():
        home = node()
        opened = []

        async def forever():
            async with home.subscriber("/t") as subscriber:
                opened.append(subscriber)
                await subscriber.recv_async()

        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(forever(), 0.01)
        assert opened[0].closed

    run(main())


def test_an_error_of_the_end_is_raised(node):
    async def main():
        state = node().state
        state["/a"] = 1
        with pytest.raises(rnet.errors.ConflictError):
            async with state.transaction() as both:
                both["/a"] += 1
                state["/a"] = 5

    run(main())
