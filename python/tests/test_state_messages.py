"""Messages as values: written with their types, and read back as objects of these types."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import numpy as np
import pytest
import rnet
from conftest import LIMIT_S
from rnet import msgs

PLAN_1 = """
syntax = "proto3";
package my;
message Plan { double speed = 1; repeated string steps = 2; }
"""
PLAN_2 = PLAN_1.replace("}", "string reason = 3; }")
PLAN_BAD = PLAN_1.replace("double speed", "string speed")


class Inner(ctypes.Structure):
    _fields_ = [("a", ctypes.c_uint8), ("b", ctypes.c_uint8 * 3)]


class Point(ctypes.Structure):
    _fields_ = [
        ("x", ctypes.c_double),
        ("n", ctypes.c_int32),
        ("inner", Inner),
        ("flags", ctypes.c_bool * 2 * 4),
    ]


@pytest.fixture
def states(node):
    """The state of a writer, and that of a reader that does not know any type."""
    return node("writer").state, node("reader").state


def test_protobuf_messages(states):
    writer, reader = states
    plan = rnet.types.load_proto_text(PLAN_1).Plan
    writer["/plan"] = plan(speed=0.5, steps=["up", "down"])
    for state in states:
        found = state["/plan"]
        assert (type(found), found.speed, list(found.steps)) == (plan, 0.5, ["up", "down"])
        assert state.get("/plan", type=plan) == found
    assert "my.Plan" in reader.entry("/plan").type_text
    # A value that was read may be written back.
    found.speed = 1.0
    reader["/plan"] = found
    assert writer["/plan"].speed == 1.0 and writer.entry("/plan").owner == "/reader"


def test_built_in_messages(states):
    writer, reader = states
    writer["/imu"] = msgs.Imu(frame_id="base")
    found = reader["/imu"]
    assert type(found) is msgs.Imu and found.frame_id == "base"
    with pytest.raises(rnet.errors.StateTypeError) as caught:
        writer["/imu"] = msgs.Pose()
    assert (caught.value.holds, caught.value.given) != ("", "")
    with pytest.raises(rnet.errors.StateTypeError):
        reader["/imu"] = 1
    with pytest.raises(rnet.errors.StateTypeError):
        reader.get("/imu", type=msgs.Pose)
    writer["/n"] = 1
    with pytest.raises(rnet.errors.StateTypeError) as caught:
        reader.get("/n", type=msgs.Imu)
    assert "Imu" in caught.value.given and caught.value.key == "/n"
    assert reader.get("/absent", type=msgs.Imu) is None
    assert reader.get("/absent", 3, type=msgs.Imu) == 3


def test_a_type_that_grew_is_read_by_the_rules_of_topics(states):
    writer, reader = states
    old, new = rnet.types.load_proto_text(PLAN_1).Plan, rnet.types.load_proto_text(PLAN_2, name="new.proto").Plan
    bad = rnet.types.load_proto_text(PLAN_BAD, name="bad.proto").Plan
    writer["/plan"] = old(speed=0.5)
    assert reader.get("/plan", type=new).reason == ""
    # That class is known now, and the rules allow it to read the value of the old one.
    assert type(reader["/plan"]) is new and type(writer["/plan"]) is old
    reader["/plan"] = new(speed=1.0, reason="hurry")
    assert writer["/plan"].speed == 1.0
    with pytest.raises(rnet.errors.StateTypeError):
        reader.get("/plan", type=bad)
    with pytest.raises(rnet.errors.StateTypeError):
        reader["/plan"] = bad(speed="fast")


def test_structures_come_back_as_their_class_or_one_like_it(states):
    writer, reader = states
    point = Point(1.5, -7, Inner(1, (2, 3, 4)))
    point.flags[3][1] = True
    writer["/p"] = point
    assert type(writer["/p"]) is Point and bytes(writer["/p"]) == bytes(point)
    found = reader["/p"]
    assert type(found).__name__ == "Point" and not isinstance(found, Point)
    assert (found.x, found.n, found.inner.a, list(found.inner.b)) == (1.5, -7, 1, [2, 3, 4])
    assert found.flags[3][1] is True and ctypes.sizeof(found) == ctypes.sizeof(Point)
    # It is the same type, so it may be written back.
    found.x = 2.5
    reader["/p"] = found
    assert writer["/p"].x == 2.5
    assert type(reader.get("/p", type=Point)) is Point
    assert type(reader["/p"]) is Point


def test_a_structure_with_gaps_keeps_its_layout(states):
    class Gappy(ctypes.Structure):
        _fields_ = [("a", ctypes.c_uint8), ("b", ctypes.c_uint64), ("c", ctypes.c_uint8)]

    writer, reader = states
    writer["/g"] = Gappy(1, 2, 3)
    found = reader["/g"]
    assert (found.a, found.b, found.c) == (1, 2, 3)
    reader["/g"] = found
    assert writer["/g"].b == 2


def test_arrays_and_records_of_numpy(states):
    writer, reader = states
    record = rnet.types.named_dtype("Joint", [("id", "u4"), ("angle", "f8")])
    for key, value in {
        "/angles": np.arange(6.0),
        "/matrix": np.arange(12, dtype="i2").reshape(3, 4),
        "/none": np.empty((0,), "f8"),
    }.items():
        if value.size == 0:
            with pytest.raises((TypeError, rnet.RnetError)):
                writer[key] = value
            continue
        writer[key] = value
        for state in states:
            found = state[key]
            assert isinstance(found, np.ndarray) and found.dtype == value.dtype
            np.testing.assert_array_equal(found, value)
            assert not found.flags.writeable
        # Written back, also after a change and as a part of another array.
        changed = np.array(found) + 1
        reader[key] = changed
        np.testing.assert_array_equal(writer[key], changed)
    with pytest.raises(rnet.errors.StateTypeError):
        writer["/angles"] = np.arange(7.0)
    writer["/unnamed"] = np.array((1, 2.5), [("n", "i4"), ("x", "f4")])[()]
    assert reader["/unnamed"]["x"] == 2.5
    writer["/joint"] = np.array((3, 0.5), record)[()]
    assert writer["/joint"]["angle"] == 0.5
    assert (reader["/joint"].id, reader["/joint"].angle) == (3, 0.5)
    assert reader.get("/joint", type=record)["angle"] == 0.5
    with pytest.raises(BufferError, match="contiguous"):
        writer["/strided"] = np.arange(10.0)[::2]


def test_images(states):
    writer, reader = states
    pixels = np.arange(2 * 3 * 3, dtype="u1").reshape(2, 3, 3)
    writer["/image"] = msgs.Image.from_array(pixels, "rgb8", frame_id="camera")
    for state in states:
        found = state["/image"]
        assert type(found) is msgs.Image and found.frame_id == "camera"
        np.testing.assert_array_equal(found.array, pixels)


def test_messages_in_snapshots_watches_wills_and_transactions(states):
    writer, reader = states
    watch = reader.watch("/pose")
    writer.set("/pose", msgs.Pose(), last_will=msgs.Pose(position={"x": 1.0}))
    assert watch.recv(timeout=LIMIT_S).value == msgs.Pose()
    assert reader.entry("/pose").last_will.position.x == 1.0
    with reader.transaction() as t:
        pose = t["/pose"]
        pose.position.y = 2.0
        t["/pose"] = pose
    assert writer.snapshot()["/pose"].position.y == 2.0
    entry = reader.entry("/pose")
    assert entry.value is entry.value


def test_a_program_without_numpy_and_protobuf(states, program):
    writer, _ = states
    writer["/point"] = Point(1.5)
    writer["/plain"] = 3
    writer["/imu"] = msgs.Imu(frame_id="base")
    writer["/array"] = np.arange(3.0)
    process = program(
        """
import sys
for missing in ("numpy", "google"):
    sys.modules[missing] = None
import rnet
state = rnet.Node("bare").state
assert state["/point"].x == 1.5 and state["/plain"] == 3
assert len(state.list()) == len(state.snapshot()) == 4
for key, error in {"/imu": rnet.errors.MissingProtobufError, "/array": rnet.errors.MissingNumpyError}.items():
    for read in (lambda: state[key], lambda: state.entry(key).value):
        try:
            read()
        except error:
            continue
        raise AssertionError(key)
assert "Imu" in state.entry("/imu").type_text
"""
    )
    _, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err) == (0, "")


def test_types_of_ever_new_shapes_are_not_kept_for_ever(states):
    writer, reader = states
    for n in range(1, 1100):
        writer.set("/array", np.zeros(n, "u1"), change_type=True)
        assert reader["/array"].shape == (n,)
    assert writer["/array"].shape == (1099,)


def test_stubs_know_it(tmp_path):
    text = tmp_path / "typed.py"
    text.write_text(
        '''
import rnet
from rnet.msgs import Imu

state = rnet.Node("typed").state
state["/n"] = 1
del state["/n"]
n: int = state.add("/n") + state.add("/n", 2)
x: float = state.add("/x", 0.5)
imu = state.get("/imu", type=Imu)
if imu is not None:
    print(imu.frame_id)
entry = state.entry("/n")
print(0 if entry is None else entry.revision + len(entry.owner))
print(state.set("/n", 1, ttl=1.0, last_will=rnet.state.DELETE) + 1)


async def read() -> None:
    async for change in state.watch("/arm"):
        print(change.key.upper(), change.value, (change.skipped or 0) + 1)


def body(t: rnet.state.Transaction) -> int:
    t["/a"] = t["/b"]
    return t.delete("/b") + 1


for change in state.watch():
    print(change.deleted, state.transact(body) + 1)
with state.transaction() as t:
    t.set("/a", 1)
snapshot: rnet.state.Snapshot = state.snapshot("/arm")
print(snapshot.revision, sorted(snapshot), snapshot.entries[0].key, state.list()[0].version)
print(state.hash("/arm").all().items(), state.keys()[0].upper())
'''
    )
    command = [sys.executable, "-m", "mypy", "--strict", str(text)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
