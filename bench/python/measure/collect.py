"""The receiving end: counts, checks and times each message. See bench/harness/src/collect.rs."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from time import monotonic_ns

import numpy as np

from .distribution import distribution
from .message import (
    DATA,
    END,
    FILLED,
    HEADER,
    HEADER_LEN,
    HELLO,
    NUMBER_BITS,
    NUMBER_MASK,
    PAGE,
    long_content_is_right,
    patterned,
    stream_word,
    sum_is_right,
)
from .net import Topic

_unpack_header = HEADER.unpack_from


class Collector:
    """Collects one subscription's messages, phase after phase.

    `take` is called with each message, from one thread at a time; `joined` is called when every
    publisher has been heard, `finished` with each phase's number and result.
    """

    def __init__(
        self,
        topic: Topic,
        expects: list[dict],
        joined: Callable[[], None],
        finished: Callable[[int, dict], None],
    ) -> None:
        self._topic = topic
        self._expects = expects
        self._joined = joined
        self._finished = finished
        self._template = patterned(max(topic.max_len, HEADER_LEN))
        self._tail_len = 0
        self._tail = b""
        self._unheard = set(range(topic.publishers))
        self._phase = 0
        self._begin()

    def _begin(self) -> None:
        publishers = range(self._topic.publishers)
        # By stream: the next number of each publisher, of either kind.
        self._next = {
            stream_word(kind, self._phase, publisher): 0
            for kind in (DATA, FILLED)
            for publisher in publishers
        }
        self._missed = dict.fromkeys(publishers, 0)
        self._ended: dict[int, int] = {}
        self._short = self._out_of_order = self._corrupt = 0
        self._first_ns = self._last_ns = 0
        self._times_ns = array("q")
        self._record = self._times_ns.append

    def take(self, message) -> None:
        """Takes one message: bytes or a view of them."""
        now_ns = monotonic_ns()
        length = len(message)
        if length < HEADER_LEN:
            self._take_short(bytes(message), now_ns)
            return
        stamp_ns, word = _unpack_header(message)
        stream = word >> NUMBER_BITS
        expected = self._next.get(stream)
        if expected is None:
            self._take_other(word)
            return
        number = word & NUMBER_MASK
        if number == expected:
            self._next[stream] = number + 1
        elif number > expected:
            self._missed[stream & 0xFFF] += number - expected
            self._next[stream] = number + 1
        else:
            # Repeated, or after a later one: counted only here.
            self._out_of_order += 1
            return
        if stream >> 20 == FILLED:
            right = sum_is_right(message, number)
        elif length >= PAGE:
            right = long_content_is_right(message, number, self._template)
        else:
            if length != self._tail_len:
                self._tail_len, self._tail = length, self._template[HEADER_LEN:length]
            right = bytes(message[HEADER_LEN:]) == self._tail
        if not right:
            self._corrupt += 1
        if not self._first_ns:
            self._first_ns = now_ns
        self._last_ns = now_ns
        self._record(now_ns - stamp_ns)

    def _take_short(self, message: bytes, now_ns: int) -> None:
        """A message without a header: only its length, content and count can be checked."""
        if len(message) != self._expect().get("len", 0) or not self._template.startswith(message):
            self._corrupt += 1
        self._short += 1
        if not self._first_ns:
            self._first_ns = now_ns
        self._last_ns = now_ns

    def _expect(self) -> dict:
        return self._expects[self._phase] if self._phase < len(self._expects) else {}

    def _take_other(self, word: int) -> None:
        kind, publisher = word >> 60, word >> NUMBER_BITS & 0xFFF
        if kind not in (HELLO, DATA, FILLED, END) or publisher >= self._topic.publishers:
            self._corrupt += 1
        elif kind == HELLO:
            if publisher in self._unheard:
                self._unheard.remove(publisher)
                if not self._unheard:
                    self._joined()
        elif kind == END and word >> 52 & 0xFF == self._phase & 0xFF:
            self._ended.setdefault(publisher, word & NUMBER_MASK)
            if len(self._ended) == self._topic.publishers:
                self._finish()
        # The rest are stragglers of another phase, counted as lost there.

    def _lost(self, publisher: int) -> int:
        received = sum(
            self._next[stream_word(kind, self._phase, publisher)] for kind in (DATA, FILLED)
        )
        received -= self._missed[publisher]
        if self._topic.publishers == 1:
            received += self._short
        return max(self._ended[publisher] - received, 0)

    def _finish(self) -> None:
        phase, expect, times_ns = self._phase, self._expect(), self._times_ns
        late = too_late = 0
        if expect.get("late_ns") is not None and expect.get("too_late_ns") is not None:
            times = np.frombuffer(times_ns, np.int64)
            too_late = int((times > expect["too_late_ns"]).sum())
            late = int((times > expect["late_ns"]).sum()) - too_late
        received = {
            "topic": self._topic.name,
            "count": len(times_ns) + self._short,
            "lost": sum(map(self._lost, range(self._topic.publishers))),
            "out_of_order": self._out_of_order,
            "corrupt": self._corrupt,
            "late": late,
            "too_late": too_late,
            "span_ns": self._last_ns - self._first_ns,
            "latency": distribution(times_ns),
        }
        self._phase += 1
        self._begin()
        self._finished(phase, received)
