"""Callbacks that are ``async def``: the event loop in which they were registered runs them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import rnet
from conftest import LIMIT_S
from rnet import event_loop


def run(main):
    return asyncio.run(asyncio.wait_for(main, LIMIT_S))


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def send(node: rnet.Node, topic: str = "/t", message: bytes = b"1") -> rnet.Publisher:
    publisher = node.publisher(topic)
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    publisher.send(message)
    return publisher


def subscribe(node: rnet.Node, callback: Any) -> Any:
    return node.subscriber("/t", on=callback), send(node)


def on(node: rnet.Node, callback: Any) -> Any:
    subscriber = node.subscriber("/t")
    subscriber.on(callback)
    return subscriber, send(node)


def subscribe_any(node: rnet.Node, callback: Any) -> Any:
    publisher = node.publisher("/any/t", transient_local=1)
    publisher.send(b"1")
    return publisher, node.subscribe_any("/any/**", callback, transient_local=True)


def change_parameter(node: rnet.Node, callback: Any) -> Any:
    gain = node.param("/gain", default=1.0, on_change=callback)
    gain.set(2.0)
    return gain


def change_later(node: rnet.Node, callback: Any) -> Any:
    gain = node.param("/gain", default=1.0)
    assert gain.on_change(callback) is callback
    gain.set(2.0)
    return gain


def watch(node: rnet.Node, callback: Any) -> Any:
    changes = node.state.watch("/k")
    changes.on(callback)
    node.state["/k"] = 1
    return changes


def on_node(node: rnet.Node, callback: Any) -> Any:
    node.on_node(callback)
    return rnet.Node("another")


def on_match(node: rnet.Node, callback: Any) -> Any:
    publisher = node.publisher("/t")
    publisher.on_match(callback)
    return publisher, node.subscriber("/t")


def match_of_subscriber(node: rnet.Node, callback: Any) -> Any:
    subscriber = node.subscriber("/t")
    subscriber.on_match(callback)
    return subscriber, node.publisher("/t")


def on_deadline(node: rnet.Node, callback: Any) -> Any:
    subscriber = node.subscriber("/t", deadline=0.01)
    subscriber.on_deadline(callback)
    publisher = node.publisher("/t", deadline=0.01)
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    publisher.send(b"1")
    return subscriber, publisher


def on_liveliness(node: rnet.Node, callback: Any) -> Any:
    subscriber = node.subscriber("/t")
    subscriber.on_liveliness(callback)
    return subscriber, node.publisher("/t")


def on_undelivered(node: rnet.Node, callback: Any) -> Any:
    pusher = node.push("/jobs", on_undelivered=callback)
    pusher.push(b"1")
    pusher.close()
    return pusher


WAYS = {
    "subscribe(on=)": subscribe,
    "Subscriber.on": on,
    "subscribe_any": subscribe_any,
    "timer": lambda node, callback: node.timer(0.001, callback),
    "timer(once=)": lambda node, callback: node.timer(0.001, callback, once=True),
    "param(on_change=)": change_parameter,
    "Param.on_change": change_later,
    "Watch.on": watch,
    "on_endpoint": lambda node, callback: (node.on_endpoint(callback), node.publisher("/t")),
    "on_node": on_node,
    "Publisher.on_match": on_match,
    "Subscriber.on_match": match_of_subscriber,
    "on_deadline": on_deadline,
    "on_liveliness": on_liveliness,
    "on_undelivered": on_undelivered,
}


@pytest.mark.parametrize("way", WAYS)
def test_each_kind_of_callback_runs_on_the_loop_of_the_caller(node, way):
    ran: list[tuple[int, object]] = []

    async def callback(given: object) -> None:
        await asyncio.sleep(0)
        ran.append((threading.get_ident(), asyncio.get_running_loop()))

    async def main():
        kept = WAYS[way](node(), callback)
        await until(lambda: ran)
        assert ran[0] == (threading.get_ident(), asyncio.get_running_loop())
        return kept

    run(main())


def test_what_is_async_shows_in_objects_with_a_call_too():
    class Counts:
        async def __call__(self, message: object) -> None: ...

        async def method(self, message: object) -> None: ...

    assert event_loop.is_async(Counts()) and event_loop.is_async(Counts().method)
    assert not event_loop.is_async(print) and not event_loop.is_async(lambda: None)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "on_undelivered"])
def test_without_a_loop_it_is_refused(node, way):
    async def callback(given: object) -> None: ...

    with pytest.raises(TypeError, match="is async, but this thread does not run an event loop"):
        WAYS[way](node(), callback)


@pytest.mark.parametrize("kind", ["subscriber", "timer", "command", "fallback", "action", "pull"])
def test_what_cannot_be_async_says_what_to_do(node, kind):
    async def yields(given: object) -> AsyncIterator[bytes]:
        yield b""

    async def apply(given: object) -> None: ...

    home = node()
    ways = {
        "subscriber": (lambda: home.subscriber("/t", on=yields), "which only a service handler may be"),
        "timer": (lambda: home.timer(1.0, yields), "which only a service handler may be"),
        "command": (lambda: home.command("/c", None, apply, fallback=b""), "is async: .*forward="),
        "fallback": (lambda: home.command("/c", None, print, fallback=apply), "is async: .*forward="),
        "action": (lambda: home.action("/a", None, None, None, yields), "send.* feedback with context.feedback"),
        "pull": (lambda: home.pull("/q", on=yields), "without yield"),
    }

    async def main():
        way, why = ways[kind]
        with pytest.raises(TypeError, match=why):
            way()

    run(main())


COUNTED = {way: WAYS[way] for way in ("subscribe(on=)", "Watch.on", "timer(once=)", "on_undelivered")}


@pytest.mark.parametrize("way", COUNTED)
def test_what_it_raises_is_counted_for_its_node(node, unraisable, way):
    async def fails(given: object) -> None:
        raise ValueError("of a test")

    async def main():
        home = node()
        kept = COUNTED[way](home, fails)
        await until(lambda: home.callback_errors)
        return kept, home

    _, home = run(main())
    assert home.callback_errors == unraisable.qsize() == 1


def test_calls_of_one_callback_follow_each_other_in_order(node):
    steps: list[tuple[str, int]] = []

    async def callback(message: rnet.events.AnyMessage) -> None:
        n = bytes(message.sample)[0]
        steps.append(("begins", n))
        await asyncio.sleep(0.001)
        steps.append(("ends", n))

    async def main():
        home = node()
        handle = home.subscribe_any("/t", callback, keep_all=True)
        publisher = home.publisher("/t")
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        for n in range(10):
            publisher.send(bytes([n]))
        await until(lambda: len(steps) == 20)
        assert handle.skipped == 0

    run(main())
    assert steps == [(step, n) for n in range(10) for step in ("begins", "ends")]


def test_a_loop_that_is_behind_gets_the_newest_of_many_topics(node):
    got: list[int] = []

    async def callback(message: rnet.events.AnyMessage) -> None:
        got.append(bytes(message.sample)[0])

    async def main():
        home = node()
        handle = home.subscribe_any("/t", callback, keep_all=True)
        publisher = home.publisher("/t")
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        for n in range(100):
            publisher.send(bytes([n]))
        # The loop does not run until all messages have arrived.
        while handle.skipped < 84:
            pass
        await until(lambda: len(got) == 16)

    run(main())
    assert got == list(range(84, 100))


def test_a_subscriber_keeps_its_quality_of_service(pair):
    async def main():
        got: list[int] = []
        release = asyncio.Event()

        async def callback(sample: rnet.Sample) -> None:
            got.append(bytes(sample)[0])
            await release.wait()

        publisher, subscriber = pair(sub={"keep_last": 2})
        subscriber.on(callback)
        publisher.send(bytes([0]))
        await until(lambda: got)
        for n in range(1, 100):
            publisher.send(bytes([n]))
        release.set()
        await until(lambda: got[-1] == 99)
        (stats,) = subscriber.stats()
        assert (got, stats.skipped) == ([0, 98, 99], 97)

    run(main())


def test_ticks_that_the_loop_does_not_come_to_are_missed(node):
    async def main():
        ticks: list[rnet.events.Tick] = []
        release = asyncio.Event()

        async def callback(tick: rnet.events.Tick) -> None:
            ticks.append(tick)
            await release.wait()

        timer = node().timer(0.001, callback)
        await until(lambda: timer.missed >= 5)
        assert len(ticks) == 1 and timer.ticks == 1
        release.set()
        await until(lambda: len(ticks) >= 2)
        assert ticks[0].missed + ticks[1].missed >= 5
        timer.cancel()

    run(main())


def test_nothing_begins_after_the_end(node):
    began: list[object] = []

    async def callback(given: object) -> None:
        began.append(given)

    async def main():
        home = node()
        handle = home.on_endpoint(callback)
        timer = home.timer(0.001, callback)
        publisher, others = home.publisher("/t"), home.subscriber("/t", on=callback)
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        publisher.send(b"1")
        # The loop has not run before this point.
        while timer.ticks == 0:
            pass
        for one in (handle.cancel, timer.cancel, others.close):
            one()
        await asyncio.sleep(0.01)
        await until(lambda: not event_loop._deliveries)

    run(main())
    assert began == []


def test_a_node_closes_on_its_loop_while_a_callback_waits(node):
    async def main():
        begun, release, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def callback(given: object) -> None:
            begun.set()
            await release.wait()
            ended.set()

        home = node()
        kept = [home.timer(0.001, callback), home.subscribe_any("/**", callback)]
        home.subscriber("/t", on=callback)
        await begun.wait()
        home.close()
        release.set()
        await ended.wait()
        assert kept[1].cancelled

    run(main())


def test_what_it_raises_is_reported_and_it_is_called_again(pair, unraisable):
    async def main():
        got: list[bytes] = []

        async def callback(sample: rnet.Sample) -> None:
            got.append(bytes(sample))
            raise ValueError(f"bad {bytes(sample)!r}")

        publisher, subscriber = pair(sub={"keep_all": True})
        subscriber.on(callback)
        for message in (b"1", b"2"):
            publisher.send(message)
        await until(lambda: len(got) == 2)

        async def fails(tick: rnet.events.Tick) -> None:
            raise KeyError(tick.number)

        timer = subscriber_node.timer(0.001, fails, once=True)
        await until(lambda: unraisable.qsize() == 3)
        return timer

    subscriber_node = rnet.Node("ticks")
    run(main())
    texts = [str(unraisable.get(timeout=LIMIT_S)) for _ in range(3)]
    assert texts[:2] == ["bad b'1'", "bad b'2'"]
    subscriber_node.close()


def test_errors_go_to_on_error_plain_or_async(node, program):
    async def main():
        codes: list[str] = []

        async def later(error: rnet.RnetError) -> None:
            codes.append(f"later {error.code}")

        async def callback(sample: rnet.Sample) -> None:
            raise AssertionError("no message fits")

        home, other = node(), node("other")
        typed = home.subscriber("/t", "f8", on=callback, on_error=lambda error: codes.append(error.code))
        again = home.subscriber("/t", "f8", on=callback, on_error=later)
        plain = home.subscriber("/t", "f8", on=print, on_error=later)
        publisher = other.publisher("/t", "i4")
        await until(lambda: len(codes) == 3)
        assert sorted(codes) == ["incompatible_type"] + ["later incompatible_type"] * 2
        return typed, again, plain, publisher

    run(main())


def test_a_callback_whose_loop_has_ended_is_called_no_more(node, unraisable):
    called: list[object] = []

    async def callback(given: object) -> None:
        called.append(given)

    home = node()

    async def main():
        home.subscriber("/t", on=callback)
        home.on_node(callback)
        return home.timer(0.001, callback)

    timer = run(main())
    before, ticks = len(called), timer.ticks
    subscriber = home.subscriber("/t")
    send(node("another"))
    assert bytes(subscriber.recv(timeout=LIMIT_S)) == b"1"
    while timer.ticks < ticks + 3:
        pass
    assert len(called) == before and unraisable.empty()


def test_a_transaction_with_an_async_body_is_awaited_and_tried_again(node):
    async def main():
        state = node().state
        state["/n"] = 1
        tries = 0

        async def body(t: rnet.state.Transaction) -> int:
            nonlocal tries
            tries += 1
            before = t["/n"]
            await asyncio.sleep(0)
            if tries == 1:
                # Another writer interferes.
                state["/n"] = 10
            t["/n"] = before + 1
            return before

        assert await state.transact(body) == 10
        assert (tries, state["/n"]) == (2, 11)

        async def fails(t: rnet.state.Transaction) -> None:
            t["/n"] = 0
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await state.transact(fails)

        async def always(t: rnet.state.Transaction) -> None:
            state["/n"] = t["/n"] + 1
            t["/n"] = 0

        with pytest.raises(rnet.errors.LimitReachedError, match="attempts to commit the transaction"):
            await state.transact(always)

    run(main())
