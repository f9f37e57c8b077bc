"""Counters of arriving messages, as in bench/harness/src/collect.rs."""

from __future__ import annotations

from time import monotonic_ns

from measure.collect import Collector
from measure.message import DATA, END, HEADER, HEADER_LEN, HELLO, header_word, patterned
from measure.net import Topic


def collected(messages: list[bytes], publishers: int = 1) -> list[dict]:
    """The results of the phases that the messages end."""
    topic = Topic("t", "throughput", "bulk", 64, publishers, 1, 0)
    results: list[dict] = []
    collector = Collector(
        topic, [{}, {}], lambda: None, lambda _phase, result: results.append(result)
    )
    for message in messages:
        collector.take(message)
    return results


def message(kind: int, number: int, phase: int = 0, publisher: int = 0) -> bytes:
    """A message of 22 bytes."""
    header = HEADER.pack(monotonic_ns(), header_word(kind, phase, publisher, number))
    return header + patterned(22)[HEADER_LEN:]


def changed(whole: bytes) -> bytes:
    """The message with one byte of its content changed."""
    return whole[:20] + bytes([whole[20] ^ 1]) + whole[21:]


def test_a_gap_is_lost_a_repeat_is_out_of_order_and_changed_bytes_are_corrupt() -> None:
    messages = [message(DATA, number) for number in (0, 1, 3, 3, 2)]
    messages += [changed(message(DATA, 4)), message(END, 7)]
    (result,) = collected(messages)
    assert (result["count"], result["out_of_order"], result["corrupt"]) == (4, 2, 1)
    # 0, 1, 3 and 4 count for the publisher's seven; the two out of order may be repeats.
    assert result["lost"] == 3
    assert result["latency"]["count"] == 4


def test_a_phase_waits_for_the_end_of_every_publisher_and_leaves_out_stragglers() -> None:
    first = [
        message(HELLO, 0),
        message(DATA, 0),
        message(END, 1),
        message(END, 1),
        message(END, 5, publisher=1),
    ]
    second = [message(DATA, 2, publisher=1), message(END, 0, 1), message(END, 0, 1, 1)]
    assert collected(first[:-1], publishers=2) == []
    results = collected(first + second, publishers=2)
    assert [(each["count"], each["lost"]) for each in results] == [(1, 5), (0, 0)]


def test_empty_messages_are_counted_and_those_of_another_length_are_corrupt() -> None:
    (result,) = collected([b"", b"\x07", message(END, 3)])
    assert (result["count"], result["lost"], result["corrupt"]) == (2, 1, 1)
