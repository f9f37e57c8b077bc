"""Handlers of services, actions and work queues that are ``async def``: the event loop of their opener runs them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import rnet
from conftest import LIMIT_S


def run(main):
    return asyncio.run(asyncio.wait_for(main, LIMIT_S))


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


class Slow:
    """A running handler that waits for its release."""

    def __init__(self) -> None:
        self.begun, self.release, self.cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def __call__(self, request: object) -> bytes:
        self.begun.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return b"answer"


def test_a_service_answers_what_its_coroutine_returns(node):
    async def main():
        home = node()

        async def upper(text: bytes) -> bytes:
            await asyncio.sleep(0)
            assert threading.current_thread() is threading.main_thread()
            return text.upper()

        async def whose(text: bytes, context: rnet.CallContext) -> bytes:
            return context.caller.encode()

        async def fails(text: bytes) -> bytes:
            raise KeyError("of a test")

        home.service("/upper", None, None, upper)
        home.service("/whose", None, None, whose)
        home.service("/fails", None, None, fails)
        other = node("other")
        assert await other.client("/upper").start(b"robot") == b"ROBOT"
        assert await other.client("/whose").start(b"") == b"/other"
        with pytest.raises(rnet.CallFailedError) as failed:
            await other.client("/fails").start(b"")
        assert (failed.value.kind, home.callback_errors) == ("KeyError", 1)

    run(main())


def test_as_many_run_at_once_as_the_service_allows(node):
    async def main():
        here = asyncio.Event()
        arrived: list[bytes] = []

        async def meet(who: bytes) -> bytes:
            arrived.append(who)
            if len(arrived) == 3:
                here.set()
            await here.wait()
            return who

        home = node()
        home.service("/meet", None, None, meet, at_once=3)
        client = home.client("/meet")
        assert await asyncio.gather(*(client.start(who) for who in (b"a", b"b", b"c"))) == [b"a", b"b", b"c"]

    run(main())


def test_an_async_generator_streams_and_is_closed_where_it_is_left(node):
    async def main():
        left = asyncio.Event()

        async def count(request: bytes) -> AsyncIterator[bytes]:
            try:
                for n in range(3 if request == b"few" else 1_000_000):
                    await asyncio.sleep(0)
                    yield str(n).encode()
            finally:
                left.set()

        home = node()
        home.service("/count", None, None, count)
        client = home.client("/count")
        assert [reply async for reply in client.stream(b"few")] == [b"0", b"1", b"2"]
        left.clear()
        with client.stream(b"many") as replies:
            async for reply in replies:
                if reply == b"2":
                    break
        await left.wait()
        assert home.callback_errors == 0

    run(main())


def test_a_goal_has_feedback_and_a_result(node):
    async def main():
        async def go(goal: bytes, context: rnet.ActionContext) -> bytes:
            for step in goal:
                context.feedback(bytes([step]))
                await asyncio.sleep(0)
            return b"there"

        home = node()
        home.action("/go", None, None, None, go)
        goal = home.action_client("/go").send(b"abc")
        assert [step async for step in goal] == [b"a", b"b", b"c"]
        assert await goal == b"there"

    run(main())


@pytest.mark.parametrize("kind", ["service", "action"])
def test_a_cancel_reaches_the_coroutine(node, kind):
    async def main():
        slow, home = Slow(), node()
        if kind == "action":
            home.action("/slow", None, None, None, slow)
            call = home.action_client("/slow").send(b"")
        else:
            home.service("/slow", None, None, slow)
            call = home.client("/slow").start(b"")
        await slow.begun.wait()
        call.cancel()
        await slow.cancelled.wait()
        if kind == "action":
            with pytest.raises(rnet.CallCancelledError):
                await call
        assert home.callback_errors == 0

    run(main())


def test_a_job_is_done_when_its_coroutine_returns(node):
    async def main():
        done: list[bytes] = []
        undelivered: list[rnet.events.Undelivered] = []

        async def sweep(job: bytes, context: rnet.JobContext) -> None:
            await asyncio.sleep(0)
            if job == b"bad":
                raise ValueError("of a test")
            done.append(job)

        home = node()
        home.pull("/jobs", on=sweep)
        jobs = home.push("/jobs", on_undelivered=undelivered.append)
        for job in (b"1", b"bad", b"2"):
            jobs.push(job)
        await until(lambda: len(done) == 2 and undelivered)
        assert undelivered[0].job == b"bad" and isinstance(undelivered[0].error, rnet.CallFailedError)
        assert home.callback_errors == 1

    run(main())


def test_a_service_that_another_thread_closes_delivers_what_its_coroutine_answers(node):
    async def main():
        slow, home = Slow(), node()
        service = home.service("/slow", None, None, slow)
        call = node("other").client("/slow").start(b"")
        await slow.begun.wait()
        closing = asyncio.create_task(asyncio.to_thread(service.close))
        await until(lambda: service.closed)
        slow.release.set()
        assert await call == b"answer"
        await closing
        assert not slow.cancelled.is_set()

    run(main())


def test_an_action_that_another_thread_closes_cancels_its_coroutine(node):
    async def main():
        slow, home = Slow(), node()
        action = home.action("/slow", None, None, None, slow)
        goal = node("other").action_client("/slow").send(b"")
        await slow.begun.wait()
        await asyncio.to_thread(action.close)
        with pytest.raises(rnet.CallCancelledError) as ended:
            await goal
        assert ended.value.reason == "server_closing" and slow.cancelled.is_set()

    run(main())


@pytest.mark.parametrize("what", ["service", "node"])
@pytest.mark.parametrize("kind", ["service", "action", "pull"])
def test_a_close_on_the_loop_cannot_wait_for_a_coroutine_and_cancels_it(node, what, kind):
    async def main():
        slow, home, other = Slow(), node(), node("other")
        undelivered: list[rnet.events.Undelivered] = []
        if kind == "pull":
            server = home.pull("/slow", on=slow)
            jobs = other.push("/slow", on_undelivered=undelivered.append)
            jobs.push(b"")
        elif kind == "action":
            server = home.action("/slow", None, None, None, slow)
            call = other.action_client("/slow").send(b"")
        else:
            server = home.service("/slow", None, None, slow)
            call = other.client("/slow").start(b"")
        await slow.begun.wait()
        (server if what == "service" else home).close()
        await slow.cancelled.wait()
        if kind == "service":
            with pytest.raises(rnet.ServerLostError):
                await call
        elif kind == "action":
            with pytest.raises(rnet.CallCancelledError):
                await call

    run(main())


def test_a_handler_whose_loop_has_ended_says_so(node):
    home = node()

    async def main():
        async def upper(text: bytes) -> bytes:
            return text.upper()

        return home.service("/upper", None, None, upper)

    kept = run(main())
    with pytest.raises(rnet.CallFailedError, match="event loop") as failed:
        node("other").call("/upper", b"x", timeout=LIMIT_S)
    assert failed.value.kind.endswith("ClosedError")
    kept.close()


def test_a_goal_that_is_cancelled_is_no_error_of_its_handler(node):
    def go(goal: bytes):
        while True:
            yield b"goes"

    home = node()
    action = home.action("/go", None, None, None, go)
    goal = home.action_client("/go").send(b"")
    assert next(iter(goal)) == b"goes"
    goal.cancel()
    with pytest.raises(rnet.CallCancelledError):
        goal.result(timeout=LIMIT_S)
    action.close()
    assert home.callback_errors == 0
