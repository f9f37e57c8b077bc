"""Typed topics: ctypes structures and numpy dtypes."""

from __future__ import annotations

import ctypes
import json

import numpy as np
import pytest
import rnet
from conftest import LIMIT_S
from hypothesis import given, settings
from hypothesis import strategies as st
from rnet import codec as codecs, types


class Stamp(ctypes.Structure):
    _fields_ = [("sec", ctypes.c_int32), ("nsec", ctypes.c_uint32)]


class Pose(ctypes.Structure):
    _fields_ = [
        ("valid", ctypes.c_bool),
        ("stamp", Stamp),
        ("q", ctypes.c_float * 4),
        ("grid", ctypes.c_uint8 * 3 * 2),
        ("x", ctypes.c_double),
    ]


STAMP = rnet.types.named_dtype("Stamp", [("sec", "i4"), ("nsec", "u4")])
POSE = rnet.types.named_dtype(
    "Pose",
    [("valid", "?"), ("stamp", STAMP), ("q", "f4", 4), ("grid", "u1", (2, 3)), ("x", "f8")],
)


def test_a_structure_and_a_dtype_of_one_layout_are_one_type():
    assert types.describe(Pose) == types.describe(POSE)
    assert types.describe(Pose) == {
        "kind": "plain",
        "name": "Pose",
        "size": 48,
        "align": 8,
        "fields": [
            {"name": "valid", "offset": 0, "type": "bool"},
            {
                "name": "stamp",
                "offset": 4,
                "type": {
                    "struct": {
                        "name": "Stamp",
                        "size": 8,
                        "align": 4,
                        "fields": [
                            {"name": "sec", "offset": 0, "type": "i32"},
                            {"name": "nsec", "offset": 4, "type": "u32"},
                        ],
                    }
                },
            },
            {"name": "q", "offset": 12, "type": {"array": {"of": "f32", "len": 4}}},
            {
                "name": "grid",
                "offset": 28,
                "type": {"array": {"of": {"array": {"of": "u8", "len": 3}}, "len": 2}},
            },
            {"name": "x", "offset": 40, "type": "f64"},
        ],
    }


@pytest.mark.parametrize("sent_as", [Pose, POSE])
@pytest.mark.parametrize("received_as", [Pose, POSE])
def test_either_side_may_be_either(node, sent_as, received_as):
    publisher = node("sender").publisher("/pose", sent_as)
    subscriber = node("receiver").subscriber("/pose", received_as)
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    if sent_as is Pose:
        pose = Pose(True, Stamp(1, 2), (1, 2, 3, 4), x=0.5)
        pose.grid[1][2] = 9
    else:
        pose = np.zeros((), POSE)
        pose["valid"], pose["stamp"], pose["q"] = True, (1, 2), (1, 2, 3, 4)
        pose["grid"][1, 2], pose["x"] = 9, 0.5
    publisher.send(pose)
    sample = subscriber.recv_sample(timeout=LIMIT_S)
    got = sample.value
    if received_as is Pose:
        assert isinstance(got, Pose)
        assert (got.valid, got.stamp.nsec, list(got.q), got.x) == (True, 2, [1, 2, 3, 4], 0.5)
        assert got.grid[1][2] == 9
    else:
        assert got.dtype == POSE
        assert (got["valid"], got["stamp"]["nsec"], got["x"]) == (True, 2, 0.5)
        assert got["q"].tolist() == [1, 2, 3, 4] and got["grid"][1, 2] == 9
    assert sample.seq == 0


def test_a_received_record_is_a_read_only_view(pair):
    big = rnet.types.named_dtype("Big", [("values", "f8", 10_000)])
    publisher, subscriber = pair(type=big)
    message = np.zeros((), big)
    message["values"] = np.arange(10_000)
    publisher.send(message)
    sample = subscriber.recv_sample(timeout=LIMIT_S)
    values = sample.value["values"]
    memory = np.frombuffer(sample, "f8")
    assert np.shares_memory(values, memory)
    del sample, memory
    assert values[-1] == 9999
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 1


def test_numbers_and_arrays_of_numbers_are_types_too(node):
    home = node()
    for number, (dtype, message) in enumerate(
        [("f8", 2.5), (np.dtype(np.uint16), np.uint16(7)), (np.dtype(("f4", (2, 2))), np.eye(2, dtype="f4"))]
    ):
        publisher = home.publisher(f"/n{number}", dtype)
        subscriber = home.subscriber(f"/n{number}", dtype)
        publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        publisher.send(message)
        assert np.array_equal(subscriber.recv(timeout=LIMIT_S), message)


def test_a_record_can_be_given_as_tuple_or_dict(pair):
    point = rnet.types.named_dtype("Point", [("x", "f8"), ("n", "i4")])
    publisher, subscriber = pair(type=point)
    publisher.send((1.5, 2))
    publisher.send({"n": 2, "x": 1.5})
    publisher.send(np.array([(1.5, 2)], point))
    publisher.send(np.array([(1.5, 2)], point)[0])
    assert [subscriber.recv(timeout=LIMIT_S).item() for _ in range(4)] == [(1.5, 2)] * 4
    with pytest.raises(TypeError, match="has the fields"):
        publisher.send({"x": 1.5})
    with pytest.raises(TypeError, match="cannot send float32"):
        publisher.send(np.zeros(1, "f4"))
    with pytest.raises(TypeError, match="of shape"):
        publisher.send(np.zeros(2, point))
    assert publisher.sent == 4


def test_only_objects_of_the_type_are_sent(pair):
    publisher, _ = pair(type=Pose)
    with pytest.raises(TypeError, match="the topic's messages are Pose"):
        publisher.send(Stamp())
    with pytest.raises(TypeError, match="cannot send a bytes here"):
        publisher.send(bytes(48))
    assert publisher.sent == 0


def test_typed_loans_know_their_length(node, pair):
    publisher, subscriber = pair(type=Pose)
    with publisher.loan() as memory:
        Pose.from_buffer(memory).x = 4.0
    assert subscriber.recv(timeout=LIMIT_S).x == 4.0
    with pytest.raises(rnet.errors.BadValueError, match="its type has 48"):
        publisher.loan(47)
    untyped = node().publisher("/untyped")
    with pytest.raises(rnet.errors.BadValueError, match="pass the number of bytes"):
        untyped.loan()


def test_a_raw_subscriber_gets_the_bytes_of_a_typed_topic(node):
    publisher = node("sender").publisher("/stamp", Stamp)
    subscriber = node("receiver").subscriber("/stamp")
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    publisher.send(Stamp(1, 2))
    assert bytes(subscriber.recv(timeout=LIMIT_S)) == bytes(Stamp(1, 2))


def test_named_lays_a_list_out_as_c_does_and_leaves_a_dtype_alone():
    fields = [("n", "u1"), ("x", "f8")]
    assert rnet.types.named_dtype("A", fields).itemsize == 16
    assert rnet.types.named_dtype("A", np.dtype(fields)).itemsize == 9
    assert types.describe(np.dtype(fields))["name"] == "record"
    # A name does not change anything else.
    assert rnet.types.named_dtype("A", np.dtype(fields)) == np.dtype(fields)


def test_inherited_fields_are_fields():
    class Base(ctypes.Structure):
        _fields_ = [("a", ctypes.c_uint32)]

    class Derived(Base):
        _fields_ = [("b", ctypes.c_uint32)]

    assert [field["name"] for field in types.describe(Derived)["fields"]] == ["a", "b"]


def test_a_class_may_have_another_name_for_the_others(pair):
    class PythonPoint(ctypes.Structure):
        _rnet_name_ = "Point"
        _fields_ = [("x", ctypes.c_double)]

    assert types.describe(PythonPoint)["name"] == "Point"


class Bits(ctypes.Structure):
    _fields_ = [("a", ctypes.c_uint32, 3)]


class Big(ctypes.BigEndianStructure):
    _fields_ = [("a", ctypes.c_uint32)]


class Choice(ctypes.Union):
    _fields_ = [("a", ctypes.c_uint32), ("b", ctypes.c_float)]


def structure(field: type) -> type:
    return type("S", (ctypes.Structure,), {"_fields_": [("f", field)]})


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (structure(ctypes.c_char), "S.f: c_char cannot be in a message: use c_uint8"),
        (structure(ctypes.c_char * 8), "S.f: c_char cannot"),
        (structure(ctypes.c_wchar), "UTF-8"),
        (structure(ctypes.c_void_p), "pointer"),
        (structure(ctypes.POINTER(ctypes.c_int)), "cannot be in a message"),
        (structure(ctypes.py_object), "cannot be in a message"),
        (structure(ctypes.c_longdouble), "use c_double"),
        (structure(Choice), "union"),
        (structure(Bits), "S.f.a: the layout of bit fields"),
        (Big, "big endian"),
        (Choice, "not a message type"),
        (np.dtype([("f", "O")]), "record.f: object cannot be in a message"),
        (np.dtype([("f", "S4")]), "cannot be in a message"),
        (np.dtype([("f", ">f8")]), "big endian"),
        (np.dtype([("f", "f2")]), "cannot be in a message"),
        (np.dtype([("f", "c16")]), "cannot be in a message"),
        (np.dtype("M8[ns]"), "cannot be in a message"),
        (float, "not a message type"),
        (3, "not a message type"),
        (Pose(), "not a message type"),
    ],
)
def test_what_is_no_message_type_is_refused(node, bad, why):
    home = node()
    for open_topic in (home.publisher, home.subscriber):
        with pytest.raises(TypeError) as caught:
            open_topic("/t", bad)
        assert why in str(caught.value)


def test_a_structure_without_fields_is_refused(node):
    class Empty(ctypes.Structure):
        _fields_ = [("none", ctypes.c_uint8 * 0)]

    with pytest.raises(rnet.errors.BadValueError, match="no size"):
        node().publisher("/t", Empty)


NUMBERS = {"u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8", "?"}


@settings(deadline=None, max_examples=100)
@given(
    fields=st.lists(
        st.tuples(st.sampled_from(sorted(NUMBERS)), st.lists(st.integers(1, 3), max_size=2)),
        min_size=1,
        max_size=6,
    ),
    aligned=st.booleans(),
    data=st.data(),
)
def test_any_dtype_is_described_and_kept(fields, aligned, data):
    dtype = np.dtype([(f"f{n}", t, tuple(s)) for n, (t, s) in enumerate(fields)], align=aligned)
    codec = codecs.codec(rnet.types.named_dtype("Any", dtype))
    description = json.loads(codec.described)
    assert description["name"] == "Any" and description["size"] == dtype.itemsize
    assert [f["offset"] for f in description["fields"]] == [dtype.fields[n][1] for n in dtype.names]
    raw = data.draw(st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize))
    # Gaps between fields are not part of the message's value.
    if not aligned:
        assert bytes(codec.encode(codec.decode(raw))) == raw
