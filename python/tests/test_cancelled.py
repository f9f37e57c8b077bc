"""Cancelled awaits: each message is still received, once and in order.

Each test runs for messages of a topic and for changes of the state.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import random
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
import rnet
from conftest import LIMIT_S

#: Seconds between two messages of a steady source: 1 kHz.
PERIOD_S = 0.001


class Topic:
    """Numbers as messages of a topic."""

    def __init__(self, node: Callable[..., rnet.Node]) -> None:
        self.publisher = node("sender").publisher("/t", reliable=True)
        self.receiver = node("receiver").subscriber("/t", bytes, reliable=True)
        self.publisher.wait_for_subscribers(1, timeout=LIMIT_S)

    def send(self, number: int) -> None:
        self.publisher.send(b"%d" % number)

    def number(self, message: bytes) -> int:
        return int(message)

    def lost(self) -> int:
        return sum(self.receiver.lost.values())


class Keys:
    """Numbers as values of the state, each with a separate key, so that newer values do not replace them."""

    def __init__(self, node: Callable[..., rnet.Node]) -> None:
        self.state = node("sender").state
        self.receiver = node("receiver").state.watch("/numbers")

    def send(self, number: int) -> None:
        self.state.set(f"/numbers/{number}", number)

    def number(self, change: rnet.state.Change) -> int:
        assert not change.skipped
        return int(change.value)

    def lost(self) -> int:
        return 0


Source = Topic | Keys


@pytest.fixture(params=[Topic, Keys])
def source(request: pytest.FixtureRequest, node: Callable[..., rnet.Node]) -> Source:
    made: Source = request.param(node)
    return made


def run(main: Awaitable[Any]) -> Any:
    return asyncio.run(asyncio.wait_for(main, 2 * LIMIT_S))


class Steady:
    """Sends numbers at 1 kHz from a thread, until it is stopped or has sent `count`."""

    def __init__(self, source: Source, count: int | None = None) -> None:
        self.sent = 0
        self._source, self._count = source, count
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while self.sent != self._count and not self._end.wait(PERIOD_S):
            self._source.send(self.sent)
            self.sent += 1

    def __enter__(self) -> Steady:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()


def rest(source: Source) -> Iterator[int]:
    """The messages left by the tasks, received by a plain thread."""
    source.send(-1)
    while (number := source.number(source.receiver.recv(timeout=LIMIT_S))) != -1:
        yield number


def test_many_time_outs_in_steady_traffic(source):
    async def main() -> list[int]:
        got, timeouts = [], 0
        while timeouts < 300:
            try:
                message = await asyncio.wait_for(source.receiver.recv_async(), PERIOD_S / 10)
                got.append(source.number(message))
            except asyncio.TimeoutError:
                timeouts += 1
        return got

    with Steady(source) as steady:
        got = run(main())
    got += rest(source)
    assert got == list(range(steady.sent))
    assert source.lost() == 0


def test_time_outs_around_a_loop_over_messages(source):
    async def loop(got: list[int]) -> None:
        async for message in source.receiver:
            got.append(source.number(message))

    async def main(steady: Steady) -> list[int]:
        got: list[int] = []
        while not (steady.is_over and len(got) >= steady.sent):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(loop(got), 0.005)
        return got

    with Steady(source, 3000) as steady:
        got = run(main(steady))
    assert got == list(range(3000))
    assert source.lost() == 0


@contextlib.asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    """asyncio.timeout, which Python 3.10 does not have."""
    if hasattr(asyncio, "timeout"):
        async with asyncio.timeout(seconds):
            yield
        return
    task = asyncio.current_task()
    timer = asyncio.get_running_loop().call_later(seconds, task.cancel)
    try:
        yield
    except asyncio.CancelledError:
        raise asyncio.TimeoutError from None
    finally:
        timer.cancel()


def test_time_outs_by_the_context_manager(source):
    async def main(steady: Steady) -> list[int]:
        got: list[int] = []
        while not (steady.is_over and len(got) >= steady.sent):
            with pytest.raises(asyncio.TimeoutError):
                async with within(0.002):
                    async for message in source.receiver:
                        got.append(source.number(message))
        return got

    with Steady(source, 1000) as steady:
        got = run(main(steady))
    assert got == list(range(1000))


def test_sixty_four_tasks_that_are_cancelled_at_random(source):
    choose = random.Random(13)

    async def read(got: list[int]) -> None:
        while True:
            got.append(source.number(await source.receiver.recv_async()))

    async def main(steady: Steady) -> list[int]:
        got: list[int] = []
        tasks = [asyncio.create_task(read(got)) for _ in range(64)]
        while not (steady.is_over and len(got) >= steady.sent):
            for at in choose.sample(range(64), choose.randrange(1, 64)):
                tasks[at].cancel()
                tasks[at] = asyncio.create_task(read(got))
            await asyncio.sleep(choose.random() * PERIOD_S)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ended)
        return got

    with Steady(source, 2000) as steady:
        got = run(main(steady))
    # Each task records the messages that it takes before another task runs: this is the order of the sender.
    assert got == list(range(2000))
    assert source.lost() == 0


async def woken(task: asyncio.Task[Any]) -> None:
    """Returns when the task was woken and has not run yet."""
    while not (task._fut_waiter and task._fut_waiter.done()):
        await asyncio.sleep(0)


def test_a_task_that_was_woken_and_is_cancelled_takes_nothing(source):
    async def main() -> list[int]:
        first, second = (asyncio.create_task(source.receiver.recv_async()) for _ in range(2))
        await asyncio.sleep(0)
        source.send(0)
        await woken(first)
        first.cancel()
        source.send(1)
        got = [source.number(await second)]
        with pytest.raises(asyncio.CancelledError):
            await first
        got.append(source.number(await source.receiver.recv_async()))
        return got

    assert run(main()) == [0, 1]


WAYS: dict[str, Callable[[Source], Any]] = {
    "recv": lambda source: source.receiver.recv(timeout=LIMIT_S),
    "iteration": lambda source: next(iter(source.receiver)),
    "try_recv": lambda source: until(source.receiver.try_recv),
}

TOPIC_WAYS: dict[str, Callable[[Topic], Any]] = {
    "latest": lambda source: source.receiver.latest(timeout=LIMIT_S),
    "recv_sample": lambda source: bytes(source.receiver.recv_sample(timeout=LIMIT_S)),
    "recv_many": lambda source: source.receiver.recv_many(1, timeout=LIMIT_S, dtype="u1").tobytes(),
    "samples": lambda source: bytes(next(iter(source.receiver.samples()))),
    "merge": lambda source: rnet.Merge(source.receiver).recv(timeout=LIMIT_S)[1],
}


def until(look: Callable[[], Any]) -> Any:
    while (found := look()) is None:
        time.sleep(0)  # sleep: only lets other threads run, between two checks
    return found


def cancel_one(source: Source) -> None:
    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(source.receiver.recv_async(), 0.001)

    run(main())


@pytest.mark.parametrize("way", WAYS)
def test_after_a_cancelled_await_others_receive_at_once(source, way):
    cancel_one(source)
    source.send(7)
    assert source.number(WAYS[way](source)) == 7


@pytest.mark.parametrize("way", TOPIC_WAYS)
def test_after_a_cancelled_await_all_ways_of_a_topic_receive_at_once(node, way):
    source = Topic(node)
    cancel_one(source)
    source.send(7)
    assert int(TOPIC_WAYS[way](source)) == 7
    source.receiver.wait_for_publishers(1, timeout=LIMIT_S)
    assert source.receiver.publisher_count == 1


def test_after_a_cancelled_await_a_callback_receives(source):
    cancel_one(source)
    came = threading.Event()
    source.receiver.on(lambda message: came.set())
    source.send(7)
    assert came.wait(LIMIT_S)


@pytest.mark.parametrize("way", WAYS)
def test_while_a_task_awaits_threads_receive_too(source, way):
    async def main() -> list[int]:
        task = asyncio.create_task(source.receiver.recv_async())
        thread = asyncio.create_task(asyncio.to_thread(WAYS[way], source))
        await asyncio.sleep(0)
        source.send(0)
        done, _ = await asyncio.wait([task, thread], return_when=asyncio.FIRST_COMPLETED)
        source.send(1)
        return [source.number(await task), source.number(await thread)]

    assert sorted(run(main())) == [0, 1]


def test_threads_that_wait_are_not_disturbed_by_tasks_that_come_and_go(source):
    """Each message goes to a thread or to a task, and no thread gets an error."""
    got: list[int] = []

    def read() -> None:
        while (number := source.number(source.receiver.recv(timeout=LIMIT_S))) >= 0:
            got.append(number)

    async def main(steady: Steady) -> None:
        while not (steady.is_over and len(got) >= steady.sent):
            waits = (
                asyncio.wait_for(source.receiver.recv_async(), choose.random() * PERIOD_S)
                for _ in range(3)
            )
            for end in await asyncio.gather(*waits, return_exceptions=True):
                if isinstance(end, BaseException):
                    assert isinstance(end, asyncio.TimeoutError)
                else:
                    got.append(source.number(end))

    choose = random.Random(13)
    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    with Steady(source, 1000) as steady:
        run(main(steady))
    for number in range(3):
        source.send(-1 - number)
    for thread in threads:
        thread.join(LIMIT_S)
        assert not thread.is_alive()
    assert sorted(got) == list(range(1000))


def test_a_thread_and_a_task_share_what_comes(source):
    """Both get messages while both wait for them."""
    counts = {"thread": 0, "task": 0}
    end = threading.Event()

    def read() -> None:
        while not end.is_set():
            try:
                source.receiver.recv(timeout=0.1)
                counts["thread"] += 1
            except rnet.WaitTimeoutError:
                pass

    async def main() -> None:
        while not all(count >= 20 for count in counts.values()):
            await source.receiver.recv_async()
            counts["task"] += 1

    thread = threading.Thread(target=read)
    thread.start()
    with Steady(source):
        run(main())
        end.set()
        thread.join(LIMIT_S)
    assert not thread.is_alive()


def test_two_event_loops_share_what_comes(source):
    got: list[int] = []

    async def read() -> None:
        while (number := source.number(await source.receiver.recv_async())) >= 0:
            got.append(number)

    threads = [threading.Thread(target=run, args=(read(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    with Steady(source, 500) as steady:
        while not steady.is_over or len(got) < 500:
            time.sleep(PERIOD_S)  # sleep: between two checks
    for number in range(2):
        source.send(-1 - number)
    for thread in threads:
        thread.join(LIMIT_S)
        assert not thread.is_alive()
    assert sorted(got) == list(range(500))


@pytest.mark.parametrize("closes", [False, True])
def test_a_loop_that_has_ended_with_a_waiting_task_keeps_nothing_back(source, closes):
    loop = asyncio.new_event_loop()
    tasks = []

    async def wait() -> None:
        tasks.append(asyncio.create_task(source.receiver.recv_async()))
        await asyncio.sleep(0)

    loop.run_until_complete(wait())
    if closes:
        loop.close()
    source.send(0)
    assert source.number(source.receiver.recv(timeout=LIMIT_S)) == 0

    async def main() -> int:
        task = asyncio.create_task(source.receiver.recv_async())
        await asyncio.sleep(0)
        source.send(1)
        return source.number(await task)

    assert run(main()) == 1
    if not closes:
        source.send(2)
        assert source.number(loop.run_until_complete(tasks[0])) == 2
        loop.close()


def test_closing_ends_all_that_wait(source):
    async def loop() -> int:
        count = 0
        async for _ in source.receiver:
            count += 1
        return count

    async def main() -> None:
        waits = [asyncio.create_task(source.receiver.recv_async()) for _ in range(3)]
        loops = [asyncio.create_task(loop()) for _ in range(3)]
        thread = asyncio.create_task(asyncio.to_thread(source.receiver.recv, timeout=LIMIT_S))
        await asyncio.sleep(0)
        waits[0].cancel()
        await asyncio.to_thread(source.receiver.close)
        ends = await asyncio.gather(*waits, thread, return_exceptions=True)
        assert isinstance(ends[0], asyncio.CancelledError)
        assert all(isinstance(end, rnet.ClosedError) for end in ends[1:])
        assert await asyncio.gather(*loops) == [0, 0, 0]

    run(main())


def test_a_callback_ends_all_that_wait(source):
    async def main() -> None:
        task = asyncio.create_task(source.receiver.recv_async())
        await asyncio.sleep(0)
        came = asyncio.Event()
        loop = asyncio.get_running_loop()
        source.receiver.on(lambda _: loop.call_soon_threadsafe(came.set))
        with pytest.raises(rnet.errors.BadValueError, match="go to the callback"):
            await task
        source.send(0)
        await came.wait()

    run(main())


def test_what_is_awaited_is_a_coroutine(source):
    source.send(0)
    waits = source.receiver.recv_async()
    assert inspect.isawaitable(waits) and asyncio.iscoroutine(waits)
    assert source.number(asyncio.run(waits)) == 0
    with pytest.raises(RuntimeError, match="already awaited"):
        waits.send(None)
    waits = source.receiver.recv_async()
    with pytest.raises(RuntimeError, match="no running event loop"):
        waits.send(None)

    async def main() -> None:
        waits = source.receiver.recv_async()
        tasks = [asyncio.create_task(waits), asyncio.create_task(waits)]
        await asyncio.sleep(0)
        assert "Next" in repr(tasks[0])
        with pytest.raises(RuntimeError, match="another task"):
            await tasks[1]
        source.send(1)
        assert source.number(await tasks[0]) == 1
        # A coroutine that was never awaited has not taken a message.
        source.receiver.recv_async()
        source.receiver.recv_async().close()
        source.send(2)
        assert source.number(await source.receiver.recv_async()) == 2

    run(main())


def test_messages_that_are_always_there_let_other_tasks_run(source):
    for number in range(1000):
        source.send(number)

    async def main() -> int:
        count = 0

        async def read() -> None:
            nonlocal count
            async for _ in source.receiver:
                count += 1
                if count == 1000:
                    return

        reader = asyncio.create_task(read())
        while count == 0:
            await asyncio.sleep(0)
        seen = count
        await reader
        return seen

    assert run(main()) < 1000
