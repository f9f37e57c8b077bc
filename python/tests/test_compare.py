"""Comparison of types, and the types of a topic's publishers."""

from __future__ import annotations

import ctypes
import json
import queue
from collections.abc import Callable
from typing import Any

import pytest
import rnet
from conftest import LIMIT_S

OLD = """syntax = "proto3"; package robot;
// What a leg stands on.
message Leg { double force = 1; uint32 spare = 2; }
"""
NEW = OLD.replace("double force = 1; uint32 spare = 2;", "double press = 1; reserved 2; bool slips = 3;")
WRONG = OLD.replace("double force", "float force")


class Wheel(ctypes.Structure):
    _fields_ = [("speed", ctypes.c_double), ("time_ns", ctypes.c_int64)]


class Longer(ctypes.Structure):
    _rnet_name_ = "Wheel"
    _fields_ = [*Wheel._fields_, ("torque", ctypes.c_double)]


class Other(ctypes.Structure):
    _rnet_name_ = "Wheel"
    _fields_ = [("speed", ctypes.c_float), ("time_ns", ctypes.c_int64)]


def leg(text: str) -> Any:
    return rnet.types.load_proto_text(text, name="leg.proto").Leg


def test_a_compatible_change_is_listed_both_ways() -> None:
    there = rnet.types.compare_types(leg(OLD), leg(NEW))
    assert there and there.compatible
    assert not any(change.breaking for change in there.changes)
    assert {change.rule for change in there.changes} == {
        "field.renamed",
        "field.writer_only",
        "field.reserved",
        "field.reader_only",
    }
    renamed = next(change for change in there.changes if change.rule == "field.renamed")
    assert renamed[2:] == ("press", "double force = 1", "double press = 1")
    back = rnet.types.compare_types(leg(NEW), leg(OLD))
    assert back and "force" in {change.path for change in back.changes}


def test_an_incompatible_change_is_false_and_says_which() -> None:
    verdict = rnet.types.compare_types(leg(OLD), leg(WRONG))
    assert not verdict and not verdict.compatible
    assert verdict.changes == (
        ("field.type", True, "force", "double force = 1", "float force = 1"),
    )
    assert str(verdict) == (
        "INCOMPATIBLE\n  breaking field.type `force`: "
        "publisher has double force = 1, subscriber has float force = 1"
    )


def test_the_same_type_has_no_difference() -> None:
    assert rnet.types.compare_types(leg(OLD), leg(OLD)) == rnet.types.TypeComparison(True, ())
    assert str(rnet.types.compare_types(Wheel, Wheel)) == "no difference"


def test_plain_types() -> None:
    grown = rnet.types.compare_types(Wheel, Longer)
    assert grown and [change.rule for change in grown.changes] == ["plain.appended_by_subscriber"]
    changed = rnet.types.compare_types(Wheel, Other)
    assert not changed and changed.changes[0].path == "speed"


def test_kinds() -> None:
    assert rnet.types.compare_types(Wheel, None) and rnet.types.compare_types(leg(OLD), None) and rnet.types.compare_types(None, None)
    for publisher, subscriber in ((None, Wheel), (None, leg(OLD)), (Wheel, leg(OLD)), (leg(OLD), Wheel)):
        verdict = rnet.types.compare_types(publisher, subscriber)
        assert not verdict and verdict.changes[0].breaking, (publisher, subscriber)


@pytest.mark.parametrize("with_numpy", [False, True])
def test_what_an_older_publisher_does_not_know_is_zero(
    node: Callable[..., rnet.Node], with_numpy: bool
) -> None:
    fields = [("speed", "f8"), ("time_ns", "i8"), ("torque", "f8")]
    longer: Any = rnet.types.named_dtype("Wheel", fields) if with_numpy else Longer

    def torque_of(wheel: Any) -> float:
        return float(wheel["torque"] if with_numpy else wheel.torque)

    publisher = node("old").publisher("/wheel", Wheel)
    subscriber = node("new").subscriber("/wheel", longer)
    called: queue.Queue[Any] = queue.Queue()
    node("called").subscriber("/wheel", longer, on=called.put)
    publisher.wait_for_subscribers(2, timeout=LIMIT_S)
    for _ in range(3):
        publisher.send(Wheel(1.5, 20))
    sample = subscriber.recv_sample(timeout=LIMIT_S)
    assert len(sample) == ctypes.sizeof(Wheel)
    wheels = [subscriber.recv(timeout=LIMIT_S), sample.value, called.get(timeout=LIMIT_S), subscriber.latest()]
    assert [torque_of(wheel) for wheel in wheels] == [0.0] * 4
    assert float(wheels[0]["speed"] if with_numpy else wheels[0].speed) == 1.5


def test_what_is_no_type() -> None:
    with pytest.raises(TypeError, match="not a message type"):
        rnet.types.compare_types(Wheel, 7)
    broken = rnet.types.PublishedType(1, "node", "protobuf", "robot.Leg", b"\x0a\xff", None)
    with pytest.raises(rnet.errors.SchemaError):
        rnet.types.compare_types(broken, leg(OLD))
    unread = rnet.types.PublishedType(1, "legs", "protobuf", "robot.Leg", None, None)
    with pytest.raises(ValueError, match=r"robot\.Leg of node legs could not be read"):
        rnet.types.compare_types(unread, leg(OLD))


def test_the_types_of_a_topic(node: Callable[..., rnet.Node]) -> None:
    legs, watcher = node("legs"), node("watcher")
    opened = [legs.publisher("/leg", kind) for kind in (leg(OLD), Wheel, None)]
    legs.publisher("/elsewhere", Wheel)
    found = {one.kind: one for one in watcher.published_types("/leg")}
    assert set(found) == {"protobuf", "plain", "raw"}
    assert {one.node for one in found.values()} == {"/legs"}
    protobuf, plain, raw = found["protobuf"], found["plain"], found["raw"]

    assert protobuf.name == "robot.Leg" and protobuf.layout is None
    assert protobuf.descriptor_set is not None
    assert b"What a leg stands on." in protobuf.descriptor_set
    assert rnet.types.load_descriptor_set(protobuf.descriptor_set)["robot.Leg"] is leg(OLD)
    assert rnet.types.compare_types(protobuf, leg(NEW)) == rnet.types.compare_types(leg(OLD), leg(NEW))

    assert plain.name == "Wheel" and plain.descriptor_set is None
    assert plain.layout is not None
    assert [field["name"] for field in json.loads(plain.layout)["fields"]] == ["speed", "time_ns"]
    assert rnet.types.compare_types(plain, Longer)

    assert (raw.name, raw.descriptor_set, raw.layout) == ("", None, None)
    assert rnet.types.compare_types(raw, None)
    for publisher in opened:
        publisher.close()
    assert watcher.published_types("/leg") == []


def test_the_publisher_is_that_of_the_sample(node: Callable[..., rnet.Node]) -> None:
    samples = node("recorder").subscriber("/leg")
    publishers = [node(name).publisher("/leg", leg(OLD)) for name in ("front", "back")]
    for publisher in publishers:
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        publisher.send(leg(OLD)(force=2.5))
    nodes = {one.publisher: one.node for one in node("asker").published_types("/leg")}
    heard = [nodes[samples.recv_sample(timeout=LIMIT_S).publisher] for _ in publishers]
    assert sorted(heard) == ["/back", "/front"]



def test_a_bad_topic_and_a_closed_node(node: Callable[..., rnet.Node]) -> None:
    watcher = node("watcher")
    with pytest.raises(rnet.errors.BadNameError):
        watcher.published_types("no topic")
    assert watcher.published_types("/nobody") == []


def test_a_set_that_is_none() -> None:
    with pytest.raises(rnet.errors.SchemaError):
        rnet.types.load_descriptor_set(b"\x0a\xff")
