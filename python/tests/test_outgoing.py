"""A publisher with a numpy dtype accepts only objects of that type."""

from __future__ import annotations

import array
import ctypes
import os

import numpy as np
import pytest
import rnet
from conftest import LIMIT_S, stable_repr

POINT = rnet.types.named_dtype("Point", [("x", "f8"), ("n", "i4")])
#: Like POINT, with a field of each other kind.
LEG = rnet.types.named_dtype(
    "Leg", [("point", POINT), ("force", "f4", 3), ("grid", "i2", (2, 2)), ("ok", "?"), ("id", "u1")]
)
LEG_PARTS = ((1.5, 2), [1.0, 2.0, 3.0], [[1, 2], [3, 4]], True, 255)
LEG_DICT = dict(zip(LEG.names, ({"x": 1.5, "n": 2}, *LEG_PARTS[1:]), strict=True))


class Same(ctypes.Structure):
    _fields_ = [("x", ctypes.c_double), ("n", ctypes.c_int32), ("_", ctypes.c_int32)]


POINTS = [
    np.array([(1.5, 2)], POINT),
    np.array((1.5, 2), POINT),
    np.array([(1.5, 2)], POINT)[0],
    (1.5, 2),
    (np.float32(1.5), np.uint8(2)),
    {"n": 2, "x": 1.5},
    np.array((1.5, 2), POINT).tobytes(),
    bytearray(np.array((1.5, 2), POINT).tobytes()),
    memoryview(np.array((1.5, 2), POINT).tobytes()),
    Same(1.5, 2),
]


def test_what_is_of_the_type_is_sent(pair):
    publisher, subscriber = pair(type=POINT)
    for message in POINTS:
        publisher.send(message)
        assert subscriber.recv(timeout=LIMIT_S).item() == (1.5, 2)
    # A received message may be sent.
    publisher.send(POINTS[0])
    publisher.send(subscriber.recv_sample(timeout=LIMIT_S))
    publisher.send(subscriber.recv(timeout=LIMIT_S))
    assert subscriber.recv(timeout=LIMIT_S).item() == (1.5, 2)


@pytest.mark.parametrize(
    "message", [LEG_PARTS, LEG_DICT, np.array(LEG_PARTS, LEG).tobytes()], ids=type
)
def test_nested_fields_and_arrays_are_given_in_any_form(pair, message):
    publisher, subscriber = pair(type=LEG)
    publisher.send(message)
    got, right = subscriber.recv(timeout=LIMIT_S), np.array(LEG_PARTS, LEG)
    # Compared by field: the padding bytes between them are undefined.
    assert all(np.array_equal(got[name], right[name]) for name in LEG.names)


@pytest.mark.parametrize("number", [0.1, np.float64(0.1), np.array(0.1), np.float64(0.1).tobytes()])
def test_a_number_of_the_dtype_is_a_message(pair, number):
    publisher, subscriber = pair(type="f8")
    publisher.send(number)
    assert subscriber.recv(timeout=LIMIT_S) == 0.1


GARBAGE = ["7", None, 5, b"12", 1 + 2j, "", [], [5], {}, object(), "12345678901234567890"]


@pytest.mark.parametrize("dtype", [POINT, LEG, "f8", "i4", "u8", "?", ("f4", 3), ("f8", (2, 2))])
@pytest.mark.parametrize("garbage", GARBAGE, ids=stable_repr)
def test_garbage_is_refused_by_name(pair, dtype, garbage):
    publisher, _ = pair("/arm/leg", np.dtype(dtype))
    with pytest.raises(TypeError) as caught:
        publisher.send(garbage)
    error = str(caught.value)
    assert "on /arm/leg" in error and type(garbage).__name__ in error
    assert str(np.dtype(dtype).base) in error or "fields" in error
    assert publisher.sent == 0


OTHERS = [
    ("f8", 5, "5 (a int)"),
    ("f8", True, "True (a bool)"),
    ("f8", np.float32(1), "float32 of shape ()"),
    ("i4", 5, "int32"),
    ("i4", 2.5, "2.5"),
    ("i4", np.int64(5), "int64 of shape ()"),
    ("?", 1, "1 (a int)"),
    ("f8", np.zeros(3), "float64 of shape (3,)"),
    (("f4", 3), np.float32(1), "float32 of shape ()"),
    (("f4", 3), np.zeros(3), "float64 of shape (3,)"),
    (("f4", 3), [1.0, 2.0, 3.0], "or a buffer of its 12 bytes"),
    (("f4", 3), b"123", "bytes of 3 bytes"),
    (("f4", 3), array.array("f", [1, 2]), "array of 8 bytes"),
    (POINT, np.zeros((), LEG.fields["force"][0].base), "float32 of shape ()"),
    (POINT, np.zeros(2, POINT), "of shape (2,)"),
    (POINT, bytes(POINT.itemsize - 1), f"has {POINT.itemsize} bytes"),
    (POINT, bytes(POINT.itemsize + 1), f"has {POINT.itemsize} bytes"),
]


@pytest.mark.parametrize(("dtype", "message", "why"), OTHERS)
def test_what_numpy_would_convert_is_refused(pair, dtype, message, why):
    publisher, _ = pair(type=np.dtype(dtype))
    with pytest.raises(TypeError) as caught:
        publisher.send(message)
    assert why in str(caught.value) and "on /t" in str(caught.value)
    assert publisher.sent == 0


WRONG_PARTS = [
    ({"x": 1.5}, "has the fields ('x', 'n')"),
    ({"x": 1.5, "n": 2, "y": 3}, "has the fields ('x', 'n')"),
    ((1.5,), "has the 2 fields"),
    ((1.5, 2, 3), "has the 2 fields"),
    (("7", 2), "the field x is float64"),
    ((None, 2), "the field x is float64"),
    ((1.5, None), "the field n is int32"),
    ((1.5, 2.5), "the field n is int32"),
    ((1.5, "2"), "the field n is int32"),
    ((1.5, 1 << 31), "the field n is int32"),
    ((10**400, 2), "the field x is float64"),
]


@pytest.mark.parametrize(("message", "why"), WRONG_PARTS)
def test_a_field_that_does_not_fit_is_named(pair, message, why):
    publisher, _ = pair(type=POINT)
    with pytest.raises(TypeError) as caught:
        publisher.send(message)
    assert why in str(caught.value) and "on /t" in str(caught.value)


WRONG_NESTED = [
    ("point", 5, "the field point is"),
    ("point", (1.5, None), "the field point.n is int32"),
    ("point", {"x": 1.5}, "point has the fields ('x', 'n')"),
    ("force", 1.0, "the field force is float32 of shape (3,)"),
    ("force", [1.0, 2.0], "the field force is float32 of shape (3,)"),
    ("force", [1.0, 2.0, "3"], "the field force[] is float32"),
    ("force", [1.0, 2.0, 1e300], "the field force[] is float32"),
    ("force", np.array([1.0, 2.0, 1e300]), "the field force is float32"),
    ("force", np.zeros(1), "the field force is float32 of shape (3,)"),
    ("force", b"123", "the field force is float32 of shape (3,)"),
    ("grid", [1, 2], "the field grid[] is int16 of shape (2,)"),
    ("grid", np.full((2, 2), 1 << 20), "the field grid is int16 of shape (2, 2)"),
    ("grid", np.zeros((2, 2)), "the field grid is int16 of shape (2, 2)"),
    ("ok", 1, "the field ok is bool"),
    ("ok", "no", "the field ok is bool"),
    ("id", 256, "the field id is uint8"),
    ("id", -1, "the field id is uint8"),
]


@pytest.mark.parametrize(("field", "value", "why"), WRONG_NESTED)
def test_a_nested_field_that_does_not_fit_is_named(pair, field, value, why):
    publisher, _ = pair(type=LEG)
    with pytest.raises(TypeError) as caught:
        publisher.send({**LEG_DICT, field: value})
    assert why in str(caught.value)
    assert publisher.sent == 0


def test_arrays_in_fields_are_those_that_numpy_holds(pair):
    publisher, subscriber = pair(type=LEG)
    publisher.send(
        {
            **LEG_DICT,
            "point": np.array((1.5, 2), POINT),
            "force": np.array([1.0, np.inf, np.nan]),
            "grid": [np.array([1, 2]), (3, 4)],
        }
    )
    got = subscriber.recv(timeout=LIMIT_S)
    assert got["grid"].tolist() == [[1, 2], [3, 4]] and np.isinf(got["force"][1])


def test_batches_and_the_state_take_only_arrays_of_the_dtype(pair, node):
    publisher, _ = pair(type=POINT)
    for garbage in GARBAGE:
        with pytest.raises(TypeError, match="send_many on /t takes a numpy array"):
            publisher.send_many(garbage)
    state = node("other").state
    state["/point"] = np.array((1.5, 2), POINT)
    with pytest.raises(BufferError, match="contiguous"):
        state["/points"] = np.zeros((4, 4), "f4")[:, ::2]


CALLBACKS = {
    "on": lambda home, bad: home.subscriber("/t", on=bad),
    "on_error": lambda home, bad: home.subscriber("/t", on=print, on_error=bad),
    "later": lambda home, bad: home.subscriber("/t").on(bad),
    "match": lambda home, bad: home.subscriber("/t").on_match(bad),
    "publisher": lambda home, bad: home.publisher("/t").on_match(bad),
    "node": lambda home, bad: home.on_node(bad),
    "endpoint": lambda home, bad: home.on_endpoint(bad),
    "any": lambda home, bad: home.subscribe_any("/**", bad),
    "watch": lambda home, bad: home.state.watch("/").on(bad),
    "param": lambda home, bad: home.param("p", default=1, on_change=bad),
    "on_change": lambda home, bad: home.param("p", default=1).on_change(bad),
}


@pytest.mark.parametrize("way", CALLBACKS)
def test_what_is_no_function_is_no_callback(node, way):
    home = node()
    with pytest.raises(TypeError, match="5 is not callable: pass a function"):
        CALLBACKS[way](home, 5)


def test_calls_with_equal_dtypes_share_a_client(node):
    home = node()
    point = [("x", "f8"), ("n", "i4")]
    home.service("/echo", np.dtype(point), np.dtype(point), lambda request: request)

    def call() -> None:
        request = np.zeros(1, np.dtype(point))[0]
        assert home.call("/echo", request, np.dtype(point), timeout=LIMIT_S).item() == (0, 0)

    call()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        call()
    # A leak would leave six descriptors per client. Other threads may have some open now.
    assert len(os.listdir("/proc/self/fd")) < before + 20
