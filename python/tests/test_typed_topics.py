"""Topics of protobuf messages: sending, receiving, different types, malformed messages."""

from __future__ import annotations

import asyncio
import gc
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest
import rnet
from conftest import LIMIT_S, finish
from google.protobuf.message import Message
from rnet import codec
from rnet.msgs import Event, Image, Imu, JointState, LaserScan, Pose

numbers: Iterator[int] = iter(range(1_000_000))

#: A field of 8 bytes, which occurs twice.
BROKEN = b"\x09\x01\x02"


def send_broken(publisher: Any) -> None:
    """Sends like an untrusted program."""
    with publisher.loan(len(BROKEN)) as memory:
        memory[:] = BROKEN


def imu(n: float = 0.0) -> Imu:
    message = Imu(frame_id="imu_link", orientation={"w": 1.0}, angular_velocity={"z": n})
    message.orientation_covariance.extend([0.01] * 9)
    return message


def test_messages_arrive_as_they_were_sent(pair):
    publisher, subscriber = pair("/imu", Imu)
    sent = [imu(n) for n in range(5)]
    for message in sent:
        publisher.send(message)
    first = subscriber.recv(timeout=LIMIT_S)
    assert type(first) is Imu and first == sent[0]
    assert subscriber.try_recv() == sent[1]
    sample = subscriber.recv_sample(timeout=LIMIT_S)
    assert (sample.seq, sample.value) == (2, sent[2]) and type(sample.value) is Imu
    assert bytes(sample) == sent[2].SerializeToString()
    assert subscriber.latest(timeout=LIMIT_S) == sent[4]
    # The message belongs to the receiver.
    first.frame_id = "other"
    assert subscriber.try_recv() is None and sent[0].frame_id == "imu_link"
    assert (publisher.sent, subscriber.stats()[0].malformed) == (5, 0)


def test_large_messages_and_empty_ones(pair):
    publisher, subscriber = pair("/scan", LaserScan)
    large = LaserScan(ranges=[float(n) for n in range(100_000)])
    # More than can be pinned: none is kept.
    for _ in range(100):
        publisher.send(large)
        assert subscriber.recv(timeout=LIMIT_S) == large
    publisher.send(LaserScan())
    assert subscriber.recv(timeout=LIMIT_S) == LaserScan()


@pytest.mark.parametrize("reading", ["for", "samples", "callback", "async", "merge"])
def test_every_way_of_receiving(node, reading):
    home = node()
    publisher = home.publisher("/imu", Imu, reliable=True)
    subscriber = home.subscriber("/imu", Imu, reliable=True)
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    subscriber.wait_for_publishers(1, timeout=LIMIT_S)
    sent = [imu(n) for n in range(20)]
    got: list[Any] = []
    if reading == "callback":
        told: queue.Queue[Any] = queue.Queue()
        subscriber.on(told.put)
    for message in sent:
        publisher.send(message)
    if reading == "callback":
        got = [told.get(timeout=LIMIT_S) for _ in sent]
    elif reading == "for":
        got = list(islice(subscriber, len(sent)))
    elif reading == "samples":
        got = [sample.value for sample in islice(subscriber.samples(), len(sent))]
    elif reading == "merge":
        got = [message for _, message in islice(rnet.Merge(subscriber), len(sent))]
    else:

        async def read() -> None:
            async for message in subscriber:
                got.append(message)
                if len(got) == len(sent):
                    return

        asyncio.run(asyncio.wait_for(read(), LIMIT_S))
    assert got == sent


def test_a_type_may_be_given_by_name(node):
    home = node()
    publisher = home.publisher("/scan", "foxglove.LaserScan")
    subscriber = home.subscriber("/scan", LaserScan)
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    publisher.send(LaserScan(frame_id="laser"))
    assert subscriber.recv(timeout=LIMIT_S).frame_id == "laser"
    assert home.subscriber("/joints", "rnet.msgs.JointState")
    names = ("LaserScan", "foxglove/LaserScan", "rnet.msgs.LaserScan", ".foxglove.LaserScan")
    for name in (*names, "sensor_msgs/LaserScan", "sensor_msgs/msg/LaserScan"):
        assert codec.codec(name).cls is LaserScan, name
    for name in ("Image", "rnet.msgs.Image"):
        assert codec.codec(name).cls is Image, name
    assert codec.codec("Pose").cls is Pose and codec.codec("rnet.msgs.Event").cls is Event
    assert codec.codec("f8").cls is None
    with pytest.raises(TypeError, match=r"2 types match: foxglove\.Event, rnet\.msgs\.Event; use"):
        home.publisher("/event", "Event")
    with pytest.raises(TypeError, match="'LaserScn' is not a built-in message"):
        home.publisher("/scan", "LaserScn")
    with pytest.raises(TypeError, match=r"'foxglove\.Lidar' is not a built-in message"):
        home.publisher("/lidar", "foxglove.Lidar")


def test_only_messages_of_the_type_are_sent(pair):
    publisher, _ = pair("/imu", Imu)
    wrong = "cannot send a rnet.msgs.JointState here: the topic's messages are rnet.msgs.Imu"
    with pytest.raises(TypeError, match=wrong):
        publisher.send(JointState())
    with pytest.raises(TypeError, match=r"cannot send a bytes here.* rnet\.msgs\.Imu"):
        publisher.send(b"")
    with pytest.raises(TypeError, match="cannot send a dict here"):
        publisher.send({"frame_id": "x"})
    assert publisher.sent == 0


def test_many_at_once_are_refused(pair):
    publisher, subscriber = pair("/imu", Imu)
    with pytest.raises(TypeError, match=r"/imu are protobuf messages rnet\.msgs\.Imu: use recv"):
        subscriber.recv_many(10)
    with pytest.raises(TypeError, match="use recv and send"):
        publisher.send_many([imu()])
    with pytest.raises(rnet.errors.BadValueError, match="pass the number of bytes"):
        publisher.loan()


def load(text: str) -> rnet.types.Protos:
    return rnet.types.load_proto_text(f'syntax = "proto2"; package typed{next(numbers)}; {text}')


def test_what_is_required_must_be_set(pair):
    needs = load("message Needs { required int32 count = 1; }").Needs
    publisher, subscriber = pair("/needs", needs)
    with pytest.raises(Exception, match="missing required fields: count"):
        publisher.send(needs())
    publisher.send(needs(count=3))
    assert subscriber.recv(timeout=LIMIT_S).count == 3


def test_a_raw_subscriber_gets_the_bytes(node):
    publisher = node("sender").publisher("/imu", Imu)
    copies = node("receiver").subscriber("/imu", bytes)
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    publisher.send(imu())
    assert Imu.FromString(copies.recv(timeout=LIMIT_S)) == imu()


# -- two versions ----------------------------------------------------------------------------------

VERSIONS = 'syntax = "proto3"; package moving; message Arm { %s }'


def version(fields: str) -> Any:
    return rnet.types.load_proto_text(VERSIONS % fields).Arm


def test_old_and_new_understand_each_other(node):
    old, new = version("double speed = 1;"), version("double speed = 1; string tool = 2;")
    assert old is not new
    for number, (writes, reads) in enumerate([(old, new), (new, old)]):
        publisher = node(f"sender{number}").publisher(f"/arm{number}", writes)
        subscriber = node(f"receiver{number}").subscriber(f"/arm{number}", reads)
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        publisher.send(writes(speed=0.5) if writes is old else writes(speed=0.5, tool="drill"))
        got = subscriber.recv(timeout=LIMIT_S)
        assert type(got) is reads and got.speed == 0.5
        if reads is new:
            assert got.tool == ""
        else:
            # Fields that the old type lacks are preserved.
            assert new.FromString(got.SerializeToString()).tool == "drill"
    # The classes differ, although they have the same name.
    with pytest.raises(TypeError, match=r"moving\.Arm with a different definition"):
        publisher.send(old(speed=1.0))


def test_what_is_no_type_is_told_apart(node):
    home = node()
    with pytest.raises(TypeError, match=r"^an object of rnet\.msgs\.Imu is not a message type"):
        home.publisher("/imu", Imu())
    with pytest.raises(TypeError, match=r"message\.Message'> is not a message type"):
        home.publisher("/imu", Message)


def test_what_does_not_fit_is_told_to_both_sides(node):
    publisher = node("sender").publisher("/arm", version("double speed = 1;"))
    subscriber = node("receiver").subscriber("/arm", version("string speed = 1;"))
    for wait in (publisher.wait_for_subscribers, subscriber.wait_for_publishers):
        with pytest.raises(rnet.IncompatibleTypeError) as caught:
            wait(1, timeout=LIMIT_S)
        error = caught.value
        assert (error.topic, error.publisher_node, error.subscriber_node) == (
            "/arm",
            "/sender",
            "/receiver",
        )
        assert error.field_path == "speed"
        assert "double" in error.publisher and "string" in error.subscriber
    publisher.send(version("double speed = 1;")(speed=1.0))
    assert subscriber.try_recv() is None
    other = node("other").subscriber("/arm", Imu)
    with pytest.raises(rnet.IncompatibleTypeError, match=r"moving\.Arm.* rnet\.msgs\.Imu"):
        other.wait_for_publishers(1, timeout=LIMIT_S)


# -- bytes that are no message ---------------------------------------------------------------------


def test_a_malformed_message_is_told_once_and_the_stream_goes_on(pair):
    publisher, subscriber = pair("/imu", Imu)
    publisher.send(imu(1))
    send_broken(publisher)
    publisher.send(imu(2))
    assert subscriber.recv(timeout=LIMIT_S) == imu(1)
    with pytest.raises(rnet.errors.MalformedError) as caught:
        subscriber.recv(timeout=LIMIT_S)
    error = caught.value
    assert (error.topic, error.publisher_node, error.seq) == ("/imu", "/sender", 1)
    assert "rnet.msgs.Imu at byte 1" in error.why and isinstance(error, ValueError)
    assert subscriber.recv(timeout=LIMIT_S) == imu(2)
    (stats,) = subscriber.stats()
    assert (stats.received, stats.malformed, sum(stats.lost.values())) == (3, 1, 0)


def test_malformed_messages_of_one_topic_hide_no_other_in_a_merge(node):
    home, sender = node("receiver"), node("sender")
    subscribers = [home.subscriber(topic, Imu, keep_all=True) for topic in ("/broken", "/sound")]
    broken, sound = (sender.publisher(topic, Imu) for topic in ("/broken", "/sound"))
    for publisher in (broken, sound):
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    for _ in range(5):
        send_broken(broken)
    sound.send(imu(1))
    merge = rnet.Merge(*subscribers)
    outcomes = []
    for _ in range(2):
        try:
            outcomes.append(merge.recv(timeout=LIMIT_S)[1])
        except rnet.errors.MalformedError as error:
            outcomes.append(error.topic)
    assert outcomes == ["/broken", imu(1)]
    with pytest.raises(TypeError, match="Merge takes subscribers, not a str"):
        rnet.Merge(subscribers[0], "/sound")


def test_malformed_messages_are_counted_by_publisher(node):
    subscriber = node("receiver").subscriber("/imu", Imu)
    publishers = [node(f"sender{n}").publisher("/imu", Imu) for n in range(2)]
    for publisher in publishers:
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    for _ in range(3):
        send_broken(publishers[1])
    for _ in range(3):
        with pytest.raises(rnet.errors.MalformedError, match="/sender1"):
            subscriber.recv(timeout=LIMIT_S)
    assert {s.publisher: s.malformed for s in subscriber.stats()} == {
        publishers[0].id: 0,
        publishers[1].id: 3,
    }


@pytest.mark.parametrize("reading", ["for", "async", "merge"])
def test_iterations_pass_over_what_is_malformed_and_count_it(pair, reading):
    publisher, subscriber = pair("/imu", Imu)
    for n in range(3):
        send_broken(publisher)
        publisher.send(imu(n))
    if reading == "for":
        got = list(islice(subscriber, 3))
    elif reading == "merge":
        got = [message for _, message in islice(rnet.Merge(subscriber), 3)]
    else:

        async def read() -> list[Any]:
            return [await asyncio.wait_for(subscriber.__anext__(), LIMIT_S) for _ in range(3)]

        got = asyncio.run(read())
    assert got == [imu(n) for n in range(3)]
    assert subscriber.stats()[0].malformed == 3


def test_whoever_awaits_or_merges_single_messages_is_told(pair):
    publisher, subscriber = pair("/imu", Imu)
    send_broken(publisher)
    with pytest.raises(rnet.errors.MalformedError):
        rnet.Merge(subscriber).recv(timeout=LIMIT_S)

    async def read() -> Any:
        return await asyncio.wait_for(subscriber.recv_async(), LIMIT_S)

    send_broken(publisher)
    with pytest.raises(rnet.errors.MalformedError, match="/imu from /sender"):
        asyncio.run(read())
    send_broken(publisher)
    with pytest.raises(rnet.errors.MalformedError):
        subscriber.latest(timeout=LIMIT_S)
    assert subscriber.stats()[0].malformed == 3


def test_a_sample_that_is_malformed_is_counted_when_its_value_is_asked_for(pair):
    publisher, subscriber = pair("/imu", Imu)
    send_broken(publisher)
    sample = subscriber.recv_sample(timeout=LIMIT_S)
    assert bytes(sample) == BROKEN and subscriber.stats()[0].malformed == 0
    for _ in range(3):
        with pytest.raises(rnet.errors.MalformedError):
            sample.value
    assert subscriber.stats()[0].malformed == 1
    subscriber.close()
    with pytest.raises(rnet.errors.MalformedError):
        sample.value


@pytest.mark.parametrize("with_on_error", [True, False])
def test_callbacks_are_told_by_on_error_or_the_hook(node, monkeypatch, with_on_error):
    messages: queue.Queue[Any] = queue.Queue()
    errors: queue.Queue[Any] = queue.Queue()
    monkeypatch.setattr(sys, "unraisablehook", lambda told: errors.put(told.exc_value))
    home = node()
    publisher = home.publisher("/imu", Imu)
    on_error: Callable[[Any], None] | None = errors.put if with_on_error else None
    home.subscriber("/imu", Imu, on=messages.put, on_error=on_error)
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    send_broken(publisher)
    publisher.send(imu(1))
    assert messages.get(timeout=LIMIT_S) == imu(1)
    error = errors.get(timeout=LIMIT_S)
    assert isinstance(error, rnet.errors.MalformedError) and error.seq == 0


def test_a_message_that_would_grow_without_measure_is_malformed(pair):
    """Each two bytes of it would be an object of tens of bytes."""
    many = version("repeated Arm parts = 1;")
    publisher, subscriber = pair("/arm", many)
    for count, fits in (((1 << 22) + 1, False), (1 << 16, True)):
        with publisher.loan(2 * count) as memory:
            memory[:] = b"\x0a\x00" * count
        if fits:
            assert len(subscriber.recv(timeout=LIMIT_S).parts) == count
        else:
            with pytest.raises(rnet.errors.MalformedError, match="max_values"):
                subscriber.recv(timeout=LIMIT_S)
    assert subscriber.stats()[0].malformed == 1


def test_text_that_is_not_utf_8_is_malformed(pair):
    publisher, subscriber = pair("/imu", Imu)
    bad = b"\x12\x02\xff\xfe"
    with publisher.loan(len(bad)) as memory:
        memory[:] = bad
    with pytest.raises(rnet.errors.MalformedError, match="frame_id"):
        subscriber.recv(timeout=LIMIT_S)


def test_a_subscriber_that_is_closed_leaves_though_its_samples_stay(node):
    publisher = node("sender").publisher("/imu", Imu)
    subscriber = node("receiver").subscriber("/imu", Imu)
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    left = threading.Event()
    publisher.on_match(lambda event: left.set() if event.kind == "unmatched" else None)
    publisher.send(imu())
    sample = subscriber.recv_sample(timeout=LIMIT_S)
    subscriber.close()
    assert left.wait(LIMIT_S) and sample.value == imu()
    del sample, subscriber
    gc.collect()


def test_processes_talk_in_messages(node, program):
    talker = program(
        """
import rnet
from rnet.msgs import Imu, Pose
node = rnet.Node("talker")
imus = node.publisher("/imu", Imu, reliable=True)
poses = node.publisher("/pose", Pose, reliable=True)
for publisher in (imus, poses):
    publisher.wait_for_subscribers(1, timeout=20)
for n in range(1000):
    imus.send(Imu(angular_velocity={"z": n}))
poses.send(Pose(position={"x": 2.5}))
input()
"""
    )
    home = node()
    imus = home.subscriber("/imu", Imu, reliable=True)
    poses = home.subscriber("/pose", Pose, reliable=True)
    assert [imus.recv(timeout=LIMIT_S).angular_velocity.z for _ in range(1000)] == list(range(1000))
    assert poses.recv(timeout=LIMIT_S).position.x == 2.5
    assert talker.stdin is not None
    talker.stdin.write("\n")
    talker.stdin.flush()
    assert finish(talker)[0] == 0
