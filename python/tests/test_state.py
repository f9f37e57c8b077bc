"""State as a mapping: reading, writing, rejected values, snapshots."""

from __future__ import annotations

import collections.abc
import enum
import json
import math
import time

import numpy as np
import pytest
from conftest import stable_repr
import rnet


@pytest.fixture
def state(node):
    return node("writer").state


# -- values ---------------------------------------------------------------------------------------

SIMPLE = [
    True,
    False,
    0,
    -1,
    (1 << 63) - 1,
    -(1 << 63),
    0.0,
    -0.0,
    1.5e-300,
    math.inf,
    "",
    "idle",
    "häßlich \U0001f916",
    "a zero \0 in it",
    b"",
    bytes(range(256)),
    None,
    {},
    [],
    {"kp": 12.5, "steps": [1, -2.5, "x", None, True, {"deep": []}]},
    [1, [2, [3]]],
    {"big": 1 << 70, "quote \" \\ \n\t\x01": "\x7f ä"},
    set(),
    {1, 2, 3},
    {"a", "b", b"a", 1.5, True},
]


@pytest.mark.parametrize("value", SIMPLE, ids=stable_repr)
def test_values_come_back_as_they_went_in(state, node, value):
    state["/k"] = value
    for reader in (state, node("reader").state):
        found = reader["/k"]
        assert found == value and type(found) is type(value)
        assert reader.get("/k") == value
        assert reader.entry("/k").value == value
    if isinstance(value, float):
        assert math.copysign(1.0, state["/k"]) == math.copysign(1.0, value)


def test_not_a_number_is_a_float_and_no_json(state):
    state["/nan"] = math.nan
    assert math.isnan(state["/nan"])
    for bad in ({"x": math.nan}, [math.inf], {"a": {"b": [-math.inf]}}):
        with pytest.raises(rnet.errors.BadValueError, match="which JSON cannot represent") as caught:
            state["/json"] = bad
        assert caught.value.what == "/json"
    assert "/json" not in state


class Mode(enum.IntEnum):
    MOVING = 2


class Name(str):
    pass


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (bytearray(b"xy"), b"xy"),
        (memoryview(b"xy")[1:], b"y"),
        ((1, (2.5, "x")), [1, [2.5, "x"]]),
        (frozenset({1}), {1}),
        (Mode.MOVING, 2),
        (Name("n"), "n"),
        (np.float64(1.5), 1.5),
        (np.float32(0.5), 0.5),
        (np.int64(-7), -7),
        (np.uint8(255), 255),
        (np.bool_(True), True),
        (np.str_("text"), "text"),
        (collections.OrderedDict(a=1), {"a": 1}),
        ({"n": np.float64(2.5), "mode": Mode.MOVING}, {"n": 2.5, "mode": 2}),
    ],
    ids=stable_repr,
)
def test_what_is_like_a_value_becomes_one(state, given, read):
    state["/k"] = given
    assert state["/k"] == read and type(state["/k"]) is type(read)


def test_what_is_no_value_is_refused_with_its_place(state):
    cyclic: list = []
    cyclic.append(cyclic)
    deep: dict = {}
    for _ in range(1000):
        deep = {"d": deep}
    for bad, error, text in [
        (object(), TypeError, "/k cannot hold a object"),
        (1j, TypeError, "cannot hold a complex"),
        (np.datetime64("2026-01-01"), TypeError, "cannot hold a numpy.datetime64"),
        (lambda: 0, TypeError, "function"),
        (1 << 63, rnet.errors.BadValueError, "64 bits"),
        (np.uint64(1 << 63), rnet.errors.BadValueError, "64 bits"),
        ("\ud800", rnet.errors.BadValueError, "surrogate"),
        ({"a": ["\ud800"]}, rnet.errors.BadValueError, r'\["a"\]\[0\] is a str with a lone surrogate'),
        ({"\ud800": 1}, rnet.errors.BadValueError, "surrogate"),
        ({"steps": [{"name": {1}}]}, TypeError, r'/k: \["steps"\]\[0\]\["name"\] is a set'),
        ({1: 2}, TypeError, "has the key 1: keys of JSON objects must be str"),
        ({"a": b"bytes"}, TypeError, "is a bytes"),
        (cyclic, rnet.errors.BadValueError, "contains itself"),
        (deep, rnet.errors.BadValueError, "levels deep"),
        ({(1, 2)}, Exception, "set"),
        (np.array([object()]), TypeError, "cannot be in a message"),
    ]:
        with pytest.raises(error, match=text):
            state["/k"] = bad
    assert "/k" not in state and len(state) == 0 and state.revision == 0


def test_json_is_what_the_json_module_reads(state, node):
    """Our own JSON writer, checked with json.loads for many values."""
    import random

    random.seed(7)

    def make(depth):
        kind = random.randrange(8 if depth else 6)
        if kind == 0:
            return random.choice([True, False, None])
        if kind == 1:
            return random.randrange(-(1 << 80), 1 << 80)
        if kind in (2, 3):
            return random.uniform(-1, 1) * 10.0 ** random.randrange(-320, 300)
        if kind in (4, 5):
            points = [random.choice([random.randrange(128), random.randrange(0xD800), 0x1F916])]
            return "".join(chr(p) for p in points * random.randrange(4))
        if kind == 6:
            return [make(depth - 1) for _ in range(random.randrange(5))]
        return {str(make(0)): make(depth - 1) for _ in range(random.randrange(5))}

    for _ in range(300):
        value = [make(4)]
        state["/k"] = value
        assert json.dumps(state["/k"]) == json.dumps(value)


def test_what_is_read_is_a_copy(state):
    state["/plan"] = {"steps": [1]}
    state["/plan"]["steps"].append(2)
    assert state["/plan"] == {"steps": [1]}
    plan = state["/plan"]
    plan["steps"].append(2)
    state["/plan"] = plan
    assert state["/plan"] == {"steps": [1, 2]}


# -- the mapping ----------------------------------------------------------------------------------


def test_it_is_a_mapping(state):
    assert len(state) == 0 and list(state) == [] and "/a" not in state
    state["/b"] = 2
    state["/a/x"] = 1
    state["/a"] = 0
    assert len(state) == 3 and list(state) == state.keys() == ["/a", "/a/x", "/b"]
    assert state.values() == [0, 1, 2] and dict(state) == dict(state.items())
    assert "/a" in state and "/c" not in state and 3 not in state and "no key!" not in state
    assert state.get("/c") is None and state.get("/c", 7) == 7 and state.get("/a", 7) == 0
    del state["/a"]
    assert list(state) == ["/a/x", "/b"]
    assert state.setdefault("/b", 9) == 2 and state.setdefault("/new", 9) == 9
    assert state.delete("/new") is True and state.delete("/new") is False
    for missing in (lambda: state["/c"], lambda: state.__delitem__("/c")):
        with pytest.raises(KeyError) as caught:
            missing()
        assert caught.value.args == ("/c",)
    for no_key in (lambda: state[1], lambda: state.__setitem__(None, 1)):
        with pytest.raises(TypeError):
            no_key()


def test_the_first_slash_may_be_left_out(state):
    state["arm/mode"] = "idle"
    assert state["/arm/mode"] == "idle" and list(state) == ["/arm/mode"]
    assert state.snapshot("arm")["arm/mode"] == "idle"


@pytest.mark.parametrize("key", ["", "/", "//a", "/a/", "a b", "/ä", "!type/x", "/" + "k" * 255])
def test_bad_keys(state, key):
    for use in (
        lambda: state[key],
        lambda: state.__setitem__(key, 1),
        lambda: state.entry(key),
        lambda: state.delete(key),
        lambda: state.add(key),
        lambda: state.update(key, lambda _: 1),
    ):
        with pytest.raises(rnet.errors.BadNameError) as caught:
            use()
        assert caught.value.what == "key" and caught.value.why
    assert key not in state


def test_entries_say_who_when_and_how_often(state, node):
    before = time.time_ns()
    first = state.set("/k", 1)
    other = node("other").state
    second = other.set("/k", 2)
    entry = state.entry("/k")
    assert 0 < first < second == entry.revision == state.revision
    assert (entry.key, entry.value, entry.version, entry.owner) == ("/k", 2, 2, "/other")
    assert before <= entry.written_unix_ns <= time.time_ns()
    assert (entry.durable, entry.expires_boot_ns, entry.ttl_left, entry.last_will) == (False, None, None, None)
    assert entry.type_text and "/k = 2" in repr(entry)
    assert state.entry("/absent") is None
    with pytest.raises(AttributeError):
        entry.value = 3


def test_the_type_stays_unless_asked(state):
    state["/k"] = 1
    for other in (1.0, "1", True, [1], {1}, None):
        with pytest.raises(rnet.errors.StateTypeError) as caught:
            state["/k"] = other
        assert isinstance(caught.value, TypeError) and caught.value.key == "/k"
        assert caught.value.holds != caught.value.given
    assert state["/k"] == 1
    state.set("/k", "text", change_type=True)
    assert state["/k"] == "text"
    del state["/k"]
    state["/k"] = 1.5
    assert state["/k"] == 1.5


def test_snapshots_do_not_change(state):
    state["/a/x"] = 1
    state["/a/y"] = {"deep": [1]}
    state["/b"] = 2
    snapshot = state.snapshot("/a")
    state["/a/x"] = 10
    del state["/a/y"]
    assert dict(snapshot) == {"/a/x": 1, "/a/y": {"deep": [1]}} and len(snapshot) == 2
    assert snapshot["/a/x"] == 1 and "/b" not in snapshot and snapshot.get("/b", 0) == 0
    assert snapshot.entry("/a/x").version == 1 and snapshot.entry("/b") is None
    assert [entry.key for entry in snapshot.entries] == list(snapshot) == snapshot.keys()
    assert snapshot.values() == [1, {"deep": [1]}] and snapshot.items()[0] == ("/a/x", 1)
    assert snapshot.revision == state.revision - 2
    with pytest.raises(KeyError):
        snapshot["/b"]
    match snapshot:
        case {"/a/x": found}:
            assert found == 1
        case _:
            raise AssertionError("a snapshot is a mapping")
    for mapping in (snapshot, state, state.hash("/a")):
        assert isinstance(mapping, collections.abc.Mapping)


# -- closing --------------------------------------------------------------------------------------


def test_a_closed_node_has_no_state(node):
    node("persister")
    home = node("home")
    state = home.state
    state["/k"] = 1
    transaction, watch, arm = state.transaction(), state.watch(), state.hash("/arm")
    home.close()
    for use in (
        lambda: home.state,
        lambda: state["/k"],
        lambda: state.__setitem__("/k", 2),
        lambda: list(state),
        lambda: state.revision,
        lambda: state.watch(),
        lambda: state.transaction(),
        lambda: transaction["/k"],
        lambda: transaction.commit(),
        lambda: arm.all(),
        lambda: watch.recv(timeout=0),
    ):
        with pytest.raises(rnet.ClosedError):
            use()
    assert watch.closed and list(watch) == []
    # The name is free again, so the node is closed.
    with rnet.Node("home") as again:
        assert again.state["/k"] == 1


def test_state_keeps_its_node_alive():
    state = rnet.Node("x").state
    state["/k"] = 1
    assert state["/k"] == 1 and state.entry("/k").owner == "/x" and "/x" in repr(state)


def test_large_values(state):
    large = bytes(16 << 20)
    state["/large"] = large
    assert state["/large"] == large
    with pytest.raises(rnet.RnetError):
        state["/large"] = bytes((64 << 20) + 1)
    assert len(state["/large"]) == len(large)
