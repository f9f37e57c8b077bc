"""Mistakes of ROS 2 users: the error states the fix."""

from __future__ import annotations

import time

import pytest
import rnet
from conftest import LIMIT_S
from rnet.msgs import Image, Imu, LaserScan, Twist, Vector3


@pytest.mark.parametrize("method", ["publisher", "subscriber", "client", "action_client", "push", "pull", "drive"])
def test_the_type_ahead_of_the_name(node, method):
    with pytest.raises(TypeError, match=r'name comes first and the type second, as in publisher\("/topic", Imu\)'):
        getattr(node(), method)(Imu, "/imu")


def test_a_service_by_type_and_name(node):
    with pytest.raises(TypeError, match="the name comes first"):
        node().service(Imu, "/imu", None, print)
    with pytest.raises(TypeError, match="the name comes first"):
        node("other").action(Imu, "/imu", None, None, print)
    with pytest.raises(TypeError, match=r"a name must be a str, not 7 \(int\)"):
        node("third").publisher(7, Imu)


@pytest.mark.parametrize("stamp", [time.time(), time.time_ns()], ids=["seconds", "nanoseconds"])
def test_the_time_as_a_number(stamp):
    with pytest.raises(TypeError) as caught:
        Imu(timestamp=stamp)
    text = str(caught.value)
    assert "Imu.timestamp is google.protobuf.Timestamp" in text and "datetime" in text
    # The suggested code works.
    message = Imu()
    message.timestamp.FromNanoseconds(time.time_ns())
    assert message.timestamp.seconds > 0


def test_a_field_that_is_not_there():
    with pytest.raises(ValueError, match=r"rnet.msgs.Twist has no field 'lineer'; did you mean 'linear'\?"):
        Twist(lineer=1)
    with pytest.raises(ValueError, match="has no field 'xyz'; it has x, y, z"):
        Vector3(xyz=1)


def test_a_number_where_a_message_is_wanted():
    with pytest.raises(TypeError, match=r"Twist.linear is foxglove.Vector3, or a dict of its fields; got 1 \(int\)"):
        Twist(linear=1)
    assert Twist(linear={"x": 1.0}).linear.x == 1.0
    # The runtime reports other mistakes.
    with pytest.raises(TypeError):
        LaserScan(ranges="x")


MISSING = {
    "PoseStamped": "use PoseInFrame",
    "NavSatFix": "use LocationFix",
    "Twsit": "did you mean 'Twist'",
    "LaserScans": "did you mean 'LaserScan'",
    "Nothing": "dir\\(rnet.msgs\\) lists them",
}


@pytest.mark.parametrize("name", MISSING)
def test_a_message_that_is_not_there(name):
    with pytest.raises(ImportError, match=f"rnet.msgs has no message '{name}'.*{MISSING[name]}"):
        exec(f"from rnet.msgs import {name}")
    with pytest.raises(AttributeError, match=MISSING[name]):
        getattr(rnet.msgs, name)
    assert not hasattr(rnet.msgs, name)


def test_the_messages_that_are_named_are_there():
    from rnet import hints

    for instead in hints._ROS2.values():
        word = instead.partition(",")[0].partition(" ")[0]
        if word[0].isupper():
            assert hasattr(rnet.msgs, word), word


def test_an_encoding_that_is_not_known():
    np = pytest.importorskip("numpy")
    pixels = np.zeros((4, 6, 3), "u1")
    with pytest.raises(rnet.errors.BadValueError, match=r"encoding 'bgr' is not known; did you mean 'bgr8'\? A custom encoding"):
        Image.from_array(pixels, "bgr")
    with pytest.raises(rnet.errors.BadValueError, match="'jpeg' is not known; known are mono8.* needs a row_stride"):
        Image(width=6, height=4, encoding="jpeg", data=bytes(72))
    # An encoding of the user.
    assert Image.from_array(pixels[:, :, 0], "mine", width=2).array.shape == (4, 6)


def test_warn_is_warning(node):
    home = node()
    lines = home.subscriber("/log", rnet.msgs.foxglove.Log, transient_local=True)
    home.log.warn("the battery is at %d %%", 7)
    line = lines.recv(timeout=LIMIT_S)
    assert (line.message, line.level) == ("the battery is at 7 %", rnet.msgs.foxglove.Log.WARNING)
    assert line.file == __file__


def test_whole_numbers_for_a_float(node):
    gain = node().param("/gain", default=1.0)
    for whole in (2**53, -(2**53), 2**62):
        gain.set(whole)
        assert gain.get() == float(whole) and isinstance(gain.get(), float)
    with pytest.raises(rnet.errors.BadValueError, match="an int that has no exact float value.* use 9007199254740992.0"):
        gain.set(2**53 + 1)
    with pytest.raises(rnet.errors.BadValueError, match="has 9007199254740993, an int that has no exact float value"):
        node("lists").param("/gains", default=[1.0]).set([1, 2**53 + 1])
    limits = node("limits").param("/gain", default=0, type=float, min=-(2**60), max=2**60)
    assert limits.get() == 0.0


def test_a_call_gives_its_reply_as_often_as_it_is_asked(node):
    home = node()
    service = home.service("/upper", None, None, lambda text: text.upper())
    call = home.client("/upper").start(b"robot")
    assert call.result() == call.result() == b"ROBOT"
    service.close()
