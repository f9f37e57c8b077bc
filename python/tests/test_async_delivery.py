"""Async callbacks of subscribers and watches: their end, and concurrent readers."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from typing import Any

import pytest
import rnet
from conftest import LIMIT_S
from rnet import event_loop
from test_async_callbacks import run, send, until


needs_cancelling = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python 3.10 does not tell which of two tasks was cancelled"
)


def await_cancelled() -> Any:
    """An awaitable that raises CancelledError."""
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    return future


@needs_cancelling
@pytest.mark.parametrize("way", ["subscribe", "watch", "subscribe_any"])
def test_a_callback_that_awaits_what_was_cancelled_is_called_again(node, unraisable, way):
    got: list[object] = []

    async def callback(given: object) -> None:
        got.append(given)
        if len(got) == 1:
            await await_cancelled()

    async def main():
        home = node()
        publisher = home.publisher("/t")
        if way == "subscribe":
            home.subscriber("/t", on=callback)
        elif way == "subscribe_any":
            home.subscribe_any("/t", callback)
        else:
            home.state.watch("/k").on(callback)
        if way != "watch":
            publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        for number in range(3):
            home.state["/k"] = number
            publisher.send(b"%d" % number)
            await until(lambda n=number: len(got) == n + 1)
        assert home.callback_errors == 1

    run(main())
    assert isinstance(unraisable.get(timeout=LIMIT_S), asyncio.CancelledError) and unraisable.empty()


def test_messages_have_one_callback_and_no_other_reader(node, unraisable):
    async def main():
        home, got = node(), []

        async def first(sample: rnet.Sample) -> None:
            got.append(bytes(sample))

        async def second(sample: rnet.Sample) -> None:
            raise AssertionError("it was refused")

        subscriber, publisher = home.subscriber("/t", on=first, keep_all=True), home.publisher("/t")
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        for use in [
            lambda: subscriber.on(second),
            lambda: subscriber.on(print),
            lambda: subscriber.recv(timeout=0),
            lambda: subscriber.try_recv(),
            lambda: subscriber.latest(timeout=0),
            lambda: subscriber.fileno(),
            lambda: subscriber.recv_many(1, timeout=0, dtype="u1"),
            lambda: next(iter(subscriber)),
        ]:
            with pytest.raises(rnet.errors.BadValueError, match="go to the callback passed as on"):
                use()
        with pytest.raises(rnet.errors.BadValueError, match="go to the callback passed as on"):
            await subscriber.recv_async()
        for number in range(10):
            publisher.send(b"%d" % number)
        await until(lambda: len(got) == 10)
        subscriber.wait_for_publishers(1, timeout=LIMIT_S)

        plain = home.subscriber("/t", on=print)
        with pytest.raises(rnet.errors.BadValueError, match="go to the callback passed as on"):
            plain.on(second)

    run(main())
    assert unraisable.empty()


def test_a_watch_has_one_callback_and_no_lane_of_an_async_one(node, unraisable):
    async def main():
        home, got = node(), []

        async def first(change: rnet.state.Change) -> None:
            got.append(change.value)

        watch = home.state.watch("/k")
        with pytest.raises(rnet.errors.BadValueError, match="urgent: an async callback runs on the event loop"):
            watch.on(first, urgent=True)
        watch.on(first)
        for use in [lambda: watch.on(first), lambda: watch.on(print), lambda: watch.recv(timeout=0), lambda: watch.try_recv()]:
            with pytest.raises(rnet.errors.BadValueError, match="go to the callback passed as on"):
                use()
        home.state["/k"] = 1
        await until(lambda: got == [1])

    run(main())
    assert unraisable.empty()


def test_a_subscriber_whose_loop_has_ended_holds_no_publisher(node):
    home = node()
    subscribers: list[rnet.Subscriber] = []

    async def callback(sample: rnet.Sample) -> None:
        pass

    async def main():
        subscribers.append(home.subscriber("/t", on=callback, reliable=True))

    publisher = node("other").publisher("/t", reliable=True)
    run(main())
    assert subscribers[0].closed
    while publisher.subscriber_count:
        pass


def test_a_node_that_is_let_go_of_ends_its_async_callbacks(node):
    async def main():
        async def callback(given: object) -> None:
            pass

        def make() -> tuple[weakref.ref, weakref.ref]:
            home = rnet.Node("let_go")
            subscriber, watch = home.subscriber("/t", on=callback), home.state.watch("/k")
            watch.on(callback)
            return weakref.ref(home), weakref.ref(subscriber)

        publisher = node().publisher("/t")
        references = make()
        gc.collect()
        assert [reference() for reference in references] == [None, None]
        await until(lambda: not event_loop._deliveries and not publisher.subscriber_count)

    run(main())


def test_a_subscriber_that_is_let_go_of_goes_on_with_its_node(node):
    async def main():
        got: list[bytes] = []

        async def callback(sample: rnet.Sample) -> None:
            got.append(bytes(sample))

        home = node()
        home.subscriber("/t", on=callback)
        gc.collect()
        await asyncio.sleep(0)
        publisher = send(home)
        await until(lambda: got == [b"1"])
        return publisher

    run(main())


def test_ticks_go_on_after_one_whose_task_was_cancelled_before_it_began(node):
    async def main():
        ticks: list[rnet.events.Tick] = []

        async def tick(given: rnet.events.Tick) -> None:
            ticks.append(given)

        home = node()
        timer = home.timer(0.001, tick)
        await until(lambda: ticks)
        start, cancelled = event_loop.LoopCallback._start, []

        def start_in_vain(this: event_loop.LoopCallback) -> None:
            start(this)
            if not cancelled and this._task is not None:
                this._task.cancel()
                cancelled.append(this._task)

        event_loop.LoopCallback._start = start_in_vain
        try:
            await until(lambda: cancelled and cancelled[0].done())
            count = len(ticks)
            await until(lambda: len(ticks) > count)
        finally:
            event_loop.LoopCallback._start = start
        timer.cancel()

    run(main())
