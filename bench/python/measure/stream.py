"""The sending end: as fast as possible, or by a schedule. See bench/harness/src/send_schedule.rs."""

from __future__ import annotations

import ctypes
import time
from time import monotonic_ns

from .message import (
    DATA,
    END,
    FILLED,
    HEADER,
    HEADER_LEN,
    HELLO,
    PAGE,
    fill,
    header_word,
    page_words,
    patterned,
)
from .net import Topic

# Above this rate messages due within a tick leave together.
_TICK_ABOVE_HZ = 15_000.0
_TICK_NS = 100_000
_PR_SET_TIMERSLACK = 29

_pack_header = HEADER.pack
_pack_header_into = HEADER.pack_into


def precise_sleep() -> None:
    """Lets the calling thread's sleeps end on time, not up to 50 µs later as by default."""
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)


class Stream:
    """A publisher with its buffers and its numbers.

    A publisher's `send` and `flush` return None, or what is to be awaited (asyncio libraries).
    """

    def __init__(self, publisher, topic: Topic) -> None:
        self._publisher = publisher
        self._topic = topic
        self._count = 0

    async def mark(self, ended: int | None) -> None:
        """Sends a Hello (before the first phase), or the End of the phase that is over."""
        if ended is None:
            word = header_word(HELLO, 0, self._topic.index, 0)
        else:
            word = header_word(END, ended, self._topic.index, self._count)
        await _done(self._publisher.send(_pack_header(monotonic_ns(), word)))
        await _done(self._publisher.flush())

    async def run(self, phase: int, load: dict | None, rate_hz: float | None) -> dict | None:
        """Runs a load; without one the phase has no messages."""
        self._count = 0
        if load is None:
            return None
        rate_hz = rate_hz or load.get("rate_hz")
        send = self._sender(phase, load)
        start_ns = monotonic_ns()
        if rate_hz is None:
            lag_max_ns = 0
            await self._flood(load, send)
        else:
            # At a rate of seconds the first message, too, comes after a period of silence.
            start_ns += int(1e9 / rate_hz) if rate_hz <= 1.0 else 1_000_000
            lag_max_ns = await self._schedule(load, send, start_ns, rate_hz)
        await _done(self._publisher.flush())
        return {
            "topic": self._topic.name,
            "count": self._count,
            "elapsed_ns": monotonic_ns() - start_ns,
            "lag_max_ns": lag_max_ns,
        }

    def _sender(self, phase: int, load: dict):
        """A function that stamps, packs and sends the message of a number."""
        length, index = load["len"], self._topic.index
        publish = self._publisher.send
        if load.get("filled"):
            first = header_word(FILLED, phase, index, 0)

            def write(memory, number: int) -> None:
                _pack_header_into(memory, 0, monotonic_ns(), first + number)
                fill(memory, number)

            return lambda number: self._publisher.send_in_place(length, write, number)
        content = patterned(length)
        if length < HEADER_LEN:
            return lambda number: publish(content)
        first = header_word(DATA, phase, index, 0)
        if length < PAGE:
            tail = content[HEADER_LEN:]
            return lambda number: publish(_pack_header(monotonic_ns(), first + number) + tail)
        buffer = bytearray(content)
        pages = page_words(buffer)

        def send_long(number: int):
            # The stamp last: earlier work on the message is the sender's own.
            pages[:] = number
            _pack_header_into(buffer, 0, monotonic_ns(), first + number)
            return publish(buffer)

        return send_long

    async def _flood(self, load: dict, send) -> None:
        end_ns = monotonic_ns() + int(load["seconds"] * 1e9)
        each = load["len"] > PAGE
        for number in range(load["count"]):
            if (each or not number & 63) and monotonic_ns() >= end_ns:
                break
            self._count = number + 1
            pending = send(number)
            if pending is not None:
                await pending

    async def _schedule(self, load: dict, send, start_ns: int, rate_hz: float) -> int:
        """Sends each message when it is due; a late one at once. Returns the worst delay."""
        period_ns = 1e9 / rate_hz
        # Messages that are passed on at once need no flush.
        flush = self._publisher.flush if self._topic.throughput else _nothing
        end_ns = start_ns + int(load["seconds"] * 1e9)
        lag_max_ns = tick_ns = 0
        for number in range(load["count"]):
            due_ns = start_ns + int(period_ns * number)
            if due_ns >= end_ns:
                break
            now_ns = monotonic_ns()
            if now_ns < due_ns:
                await _done(flush())
                if rate_hz > _TICK_ABOVE_HZ:
                    tick_ns = max(due_ns, tick_ns + _TICK_NS)
                else:
                    tick_ns = due_ns
                _sleep_until(tick_ns)
                now_ns = monotonic_ns()
            lag_max_ns = max(lag_max_ns, now_ns - due_ns)
            self._count = number + 1
            await _done(send(number))
        return lag_max_ns


def _nothing() -> None:
    return None


def _sleep_until(due_ns: int) -> None:
    left_ns = due_ns - monotonic_ns()
    if left_ns > 0:
        time.sleep(left_ns / 1e9)  # sleep: until the schedule's next message is due


async def _done(pending) -> None:
    if pending is not None:
        await pending
