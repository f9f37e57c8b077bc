"""Arrays whose elements are addresses: rejected by every operation that sends bytes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest
import rnet
from conftest import LIMIT_S

np = pytest.importorskip("numpy")


class Pointer(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char_p), ("n", ctypes.c_int)]


REFUSED = {
    "objects": np.array([[1.0, 2.0], [3.0]], dtype=object),
    "one object": np.array(None, dtype=object),
    "field": np.zeros(2, [("O", "f8"), ("what", "O")]),
    "nested field": np.zeros(2, [("P", [("what", "O"), ("n", "i4")])]),
    "field beside a time": np.zeros(2, [("when", "M8[ns]"), ("what", "O")]),
    "row beside a time": np.zeros(1, [("when", "m8[s]"), ("deep", [("what", "O")])])[0],
    "memoryview": memoryview(np.array([object()], dtype=object)),
    "py_object": (ctypes.py_object * 2)(1, 2),
    "pointer": ctypes.pointer(ctypes.c_int(1)),
    "void pointer": ctypes.c_void_p(1),
    "char pointer": Pointer(b"text", 1),
    "pointers": (ctypes.c_char_p * 2)(b"a", b"b"),
}

SENT = {
    "numbers": (np.arange(4.0), np.arange(4.0).tobytes()),
    "names like codes": (np.ones(1, [("O", "f8"), ("P", "u1"), ("&", "u1")]), None),
    "complex": (np.array([1 + 2j]), None),
    "times": (np.array([7], "datetime64[ns]"), (7).to_bytes(8, "little")),
    "times in fields": (np.zeros(1, [("when", "M8[ns]"), ("x", "f8")]), bytes(16)),
    "text": (np.array(["ab"]), None),
    "memoryview": (memoryview(b"abcd").cast("H"), b"abcd"),
    "structure": ((ctypes.c_uint16 * 2)(1, 2), b"\1\0\2\0"),
}

Way = Callable[[rnet.Node, Any], bytes]


def send(node: rnet.Node, message: Any) -> bytes:
    publisher, subscriber = node.publisher("/raw"), node.subscriber("/raw")
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    publisher.send(message)
    return bytes(subscriber.recv(timeout=LIMIT_S))


def call(node: rnet.Node, message: Any) -> bytes:
    with node.service("/echo", None, None, lambda request: request):
        return bytes(node.client("/echo").call(message, timeout=LIMIT_S))


def answer(node: rnet.Node, message: Any) -> bytes:
    with node.service("/give", None, None, lambda request: message):
        try:
            return bytes(node.client("/give").call(b"", timeout=LIMIT_S))
        except rnet.CallFailedError as failed:
            raise TypeError(failed.text) from failed


def push(node: rnet.Node, message: Any) -> bytes:
    pusher, worker = node.push("/jobs"), node.pull("/jobs")
    pusher.push(message)
    with worker.recv(timeout=LIMIT_S) as job:
        return bytes(job)


def keep(node: rnet.Node, message: Any) -> bytes:
    publisher = node.publisher("/will", last_will=message)
    publisher.close()
    return bytes(message)


WAYS: dict[str, Way] = {"send": send, "call": call, "answer": answer, "push": push, "last will": keep}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", REFUSED)
def test_addresses_are_not_sent(node, way, what):
    with pytest.raises(TypeError, match="its elements are (Python objects|pointers), which are meaningless in another"):
        WAYS[way](node(), REFUSED[what])


@pytest.mark.parametrize("way", ["send", "call", "push"])
@pytest.mark.parametrize("what", SENT)
def test_numbers_and_texts_are_sent(node, way, what):
    message, expected = SENT[what]
    assert WAYS[way](node(), message) == (bytes(message) if expected is None else expected)
