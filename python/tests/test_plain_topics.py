"""Images, point clouds, tensors on topics: sent and received in place, refused where they lie; and
plain types that grew, read by those who know the shorter or the longer one.
"""

from __future__ import annotations

import ctypes
import gc
import json
import struct
import subprocess
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import rnet
from conftest import LIMIT_S
from rnet.msgs import Image, PointCloud, Tensor, foxglove

Pair = tuple[Any, Any]
#: Longer than a message in the log: read in the publisher's own memory.
LARGE = (480, 640, 3)


def picture(shape: tuple[int, ...] = LARGE) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(0, 256, shape, dtype="u1")


@pytest.mark.parametrize("shape", [LARGE, (2, 3, 3), (0, 0, 3)])
def test_images_arrive(pair: Callable[..., Pair], shape: tuple[int, ...]) -> None:
    publisher, subscriber = pair("/camera", Image)
    pixels = picture(shape)
    publisher.send(Image.from_array(pixels, "rgb8", frame_id="camera", timestamp_ns=5))
    image = subscriber.recv(timeout=LIMIT_S)
    assert type(image) is Image
    assert (image.width, image.height, image.encoding) == (shape[1], shape[0], "rgb8")
    assert (image.frame_id, image.timestamp_ns) == ("camera", 5)
    assert np.array_equal(image.array, pixels)
    assert not image.array.flags.writeable
    # The received message is sent unchanged.
    publisher.send(image)
    assert bytes(subscriber.recv(timeout=LIMIT_S)) == bytes(image)


def test_clouds_arrive(pair: Callable[..., Pair]) -> None:
    publisher, subscriber = pair("/lidar", PointCloud)
    xyz = np.random.default_rng(1).random((5000, 3), "f4")
    publisher.send(PointCloud.from_xyz(xyz, ring=np.arange(5000, dtype="u2")))
    cloud = subscriber.recv(timeout=LIMIT_S)
    assert np.array_equal(cloud.xyz(), xyz)
    assert cloud.points["ring"][0, 4999] == 4999


def test_tensors_arrive(pair: Callable[..., Pair]) -> None:
    publisher, subscriber = pair("/features", Tensor)
    numbers = np.random.default_rng(1).random((5000, 3), "f4").T
    publisher.send(Tensor.from_array(numbers))
    assert np.array_equal(subscriber.recv(timeout=LIMIT_S).array, numbers)


def test_arrays_lie_in_the_message(pair: Callable[..., Pair]) -> None:
    publisher, subscriber = pair("/camera", Image)
    pixels = picture()
    publisher.send(Image.from_array(pixels[:, ::-1], "rgb8"))
    sample = subscriber.recv_sample(timeout=LIMIT_S)
    array = sample.value.array
    memory = np.frombuffer(sample, "u1")
    assert np.shares_memory(array, memory)
    offset = array.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    assert offset == 192
    # The data is aligned for vector loads.
    assert array.__array_interface__["data"][0] % 64 == 0
    assert np.array_equal(array, pixels[:, ::-1])


def test_arrays_outlive_everything(node: Callable[..., rnet.Node]) -> None:
    sender, receiver = node("a"), node("b")
    publisher = sender.publisher("/camera", Image)
    subscriber = receiver.subscriber("/camera", Image)
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    pixels = picture()
    publisher.send(Image.from_array(pixels, "rgb8"))
    array = subscriber.recv(timeout=LIMIT_S).array[10:20]
    subscriber.close()
    publisher.close()
    receiver.close()
    sender.close()
    del subscriber, publisher, receiver, sender
    gc.collect()
    assert np.array_equal(array, pixels[10:20])


def test_images_are_filled_in_place(pair: Callable[..., Pair]) -> None:
    publisher, subscriber = pair("/camera", Image)
    with Image.loan(publisher, 480, 640, "rgb8", frame_id="camera") as image:
        image.array[:] = 7
        image.timestamp_ns = 9
    received = subscriber.recv(timeout=LIMIT_S)
    assert (received.array == 7).all()
    assert (received.timestamp_ns, received.frame_id) == (9, "camera")
    assert publisher.copied_loan_count == 0
    with pytest.raises(rnet.ClosedError):
        image.array  # noqa: B018
    # A loan with an array that is still writable is sent as a copy, and counted.
    with Image.loan(publisher, 480, 640, "rgb8") as image:
        kept = image.array
        kept[:] = 8
    assert publisher.copied_loan_count == 1
    kept[:] = 0
    assert (subscriber.recv(timeout=LIMIT_S).array == 8).all()


def test_the_first_copied_loan_of_a_publisher_warns(pair: Callable[..., Pair]) -> None:
    publisher, _ = pair("/camera", Image)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(3):
            with Image.loan(publisher, 480, 640, "rgb8") as image:
                array = image.array
                array[:] = n
    assert [warning.category for warning in caught] == [RuntimeWarning]
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    assert text.startswith("/camera: a loan was sent as a copy") and "image.array[:] = " in text
    assert publisher.copied_loan_count == 3


def test_a_copied_loan_is_sent_once_if_warnings_are_errors(pair: Callable[..., Pair]) -> None:
    publisher, subscriber = pair("/raw")
    with warnings.catch_warnings(), pytest.raises(RuntimeWarning, match="/raw"):
        warnings.simplefilter("error")
        with publisher.loan(8192) as memory:
            kept = np.frombuffer(memory, "u1")
            kept[:] = 3
    assert publisher.sent == 1 and bytes(subscriber.recv(timeout=LIMIT_S)) == b"\3" * 8192


def test_an_array_that_keeps_only_the_object_is_a_view_too(pair: Callable[..., Pair]) -> None:
    publisher, subscriber = pair("/raw")
    loan = publisher.loan(8192)
    # numpy keeps the object of the memory, and not its buffer.
    kept = np.ndarray(8192, "u1", loan.data)
    kept[:] = 5
    loan.send()
    assert publisher.copied_loan_count == 1
    kept[:] = 6
    assert bytes(subscriber.recv(timeout=LIMIT_S)) == b"\x05" * 8192


def test_clouds_are_filled_in_place(pair: Callable[..., Pair]) -> None:
    publisher, subscriber = pair("/lidar", PointCloud)
    with PointCloud.loan(publisher, [("x", "f4"), ("ring", "u1")], 2000) as cloud:
        cloud.points["x"], cloud.points["ring"] = 1.5, 3
        cloud.has_nan = True
    received = subscriber.recv(timeout=LIMIT_S)
    assert received.has_nan and (received.points["x"] == 1.5).all()
    assert received.points["ring"].sum() == 6000
    assert publisher.copied_loan_count == 0


def test_tensors_are_filled_in_place(pair: Callable[..., Pair]) -> None:
    publisher, subscriber = pair("/tensor", Tensor)
    with Tensor.loan(publisher, (100, 200), "bfloat16") as tensor:
        tensor.array[:] = 0x3F80
    assert publisher.copied_loan_count == 0
    assert subscriber.recv(timeout=LIMIT_S).dtype == "bfloat16"


def test_a_loan_that_fails_sends_nothing(pair: Callable[..., Pair]) -> None:
    publisher, subscriber = pair("/camera", Image)
    with pytest.raises(ZeroDivisionError), Image.loan(publisher, 480, 640, "rgb8"):
        1 / 0  # noqa: B018
    with pytest.raises(rnet.errors.BadValueError, match="frame_id"):
        with Image.loan(publisher, 480, 640, "rgb8") as image:
            image.frame_id = "x" * 65
    with pytest.raises(rnet.errors.BadValueError, match="width is -1"), Image.loan(publisher, 1, -1, "mono8"):
        pass
    assert publisher.sent == 0
    assert subscriber.try_recv() is None
    lent = Image.loan(publisher, 4, 4, "mono8")
    with lent as image:
        image.array[:] = 1
    with pytest.raises(rnet.ClosedError), lent:
        pass


def test_what_is_no_image_is_not_sent(pair: Callable[..., Pair]) -> None:
    publisher, _ = pair("/camera", Image)
    tensor = Tensor.from_array(np.zeros(3))
    for wrong, name in ((b"raw", "bytes"), (picture(), "ndarray"), (tensor, "Tensor")):
        with pytest.raises(TypeError, match=f"cannot send .*{name} here.*Image"):
            publisher.send(wrong)
    image = Image.from_array(picture(), "rgb8")
    image.width = 641
    with pytest.raises(rnet.errors.BadValueError, match="row_stride is 1920, but a row takes 1923"):
        publisher.send(image)
    with pytest.raises(rnet.errors.BadValueError, match="number of bytes"):
        publisher.loan()
    assert publisher.sent == 0
    with pytest.raises(TypeError, match=r"of /camera are rnet\.msgs\.Image.*use recv and send"):
        publisher.send_many(np.zeros((2, 300), "u1"))


def bad_and_good(publisher: Any) -> None:
    """Sends an image, one with an invalid header, and another image."""
    image = Image.from_array(picture((30, 40, 3)), "rgb8")
    publisher.send(image)
    with publisher.loan(image.nbytes) as memory:
        image.write_to(memory)
        struct.pack_into("<I", memory, 96, 41)
    image.timestamp_ns = 3
    publisher.send(image)


def test_a_bad_header_is_told_once_and_counted(pair: Callable[..., Pair]) -> None:
    publisher, subscriber = pair("/camera", Image)
    bad_and_good(publisher)
    subscriber.recv(timeout=LIMIT_S)
    with pytest.raises(rnet.errors.MalformedError, match="row_stride is 120, but a row takes 123") as raised:
        subscriber.recv(timeout=LIMIT_S)
    assert (raised.value.topic, raised.value.publisher_node) == ("/camera", "/sender")
    assert raised.value.seq == 1
    assert subscriber.recv(timeout=LIMIT_S).timestamp_ns == 3
    assert [stats.malformed for stats in subscriber.stats()] == [1]


def test_a_bad_header_ends_no_loop(pair: Callable[..., Pair]) -> None:
    publisher, subscriber = pair("/camera", Image)
    bad_and_good(publisher)
    got = []
    for image in subscriber:
        got.append(image.timestamp_ns)
        if image.timestamp_ns == 3:
            break
    assert got == [0, 3]
    bad_and_good(publisher)
    samples = [subscriber.recv_sample(timeout=LIMIT_S) for _ in range(3)]
    for _ in range(2):
        # Each access of the value raises the error; it is counted once.
        with pytest.raises(rnet.errors.MalformedError):
            samples[1].value  # noqa: B018
    assert samples[2].value.timestamp_ns == 3
    assert [stats.malformed for stats in subscriber.stats()] == [2]


def test_other_types_do_not_match(node: Callable[..., rnet.Node]) -> None:
    publisher = node("a").publisher("/camera", Image)
    with pytest.raises(rnet.IncompatibleTypeError, match=r"rnet\.msgs\.Image"):
        node("b").subscriber("/camera", Tensor).wait_for_publishers(1, timeout=LIMIT_S)
    with pytest.raises(rnet.IncompatibleTypeError, match=r"foxglove\.RawImage"):
        node("c").subscriber("/camera", foxglove.RawImage).wait_for_publishers(1, timeout=LIMIT_S)
    # Raw bytes are the bytes of the message.
    raw = node("d").subscriber("/camera")
    raw.wait_for_publishers(1, timeout=LIMIT_S)
    image = Image.from_array(picture(), "rgb8")
    publisher.send(image)
    assert bytes(raw.recv(timeout=LIMIT_S)) == bytes(image)


def test_between_processes(
    node: Callable[..., rnet.Node], program: Callable[[str], subprocess.Popen[str]]
) -> None:
    subscriber = node("viewer").subscriber("/camera", Image, reliable=True)
    process = program(
        """
import numpy as np, rnet
from rnet.msgs import Image
publisher = rnet.Node("camera").publisher("/camera", Image, reliable=True)
publisher.wait_for_subscribers(1, timeout=20)
for number in range(5):
    with Image.loan(publisher, 480, 640, "mono16", timestamp_ns=number) as image:
        image.array[:] = np.arange(640) * number
input()
"""
    )
    for number in range(5):
        image = subscriber.recv(timeout=LIMIT_S)
        assert image.timestamp_ns == number
        assert np.array_equal(image.array[479], np.arange(640) * number)
    process.communicate("\n", LIMIT_S)
    assert image.array[0, 639] == 639 * 4


# -- Types that grew -------------------------------------------------------------------------------

OLD = rnet.types.named_dtype("Level", [("volt", "f8")])
NEW = rnet.types.named_dtype("Level", [("volt", "f8"), ("ampere", "f8"), ("cells", "u2", 4)])


class OldLevel(ctypes.Structure):
    _rnet_name_ = "Level"
    _fields_ = [("volt", ctypes.c_double)]


class NewLevel(ctypes.Structure):
    _rnet_name_ = "Level"
    _fields_ = [
        ("volt", ctypes.c_double),
        ("ampere", ctypes.c_double),
        ("cells", ctypes.c_uint16 * 4),
    ]


def meet(node: Callable[..., rnet.Node], sends: Any, reads: Any) -> Pair:
    publisher = node("old").publisher("/level", sends)
    subscriber = node("new").subscriber("/level", reads)
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    subscriber.wait_for_publishers(1, timeout=LIMIT_S)
    return publisher, subscriber


@pytest.mark.parametrize("sends", [OLD, OldLevel])
@pytest.mark.parametrize("reads", [NEW, NewLevel])
def test_fields_that_the_sender_lacks_are_zero(
    node: Callable[..., rnet.Node], sends: Any, reads: Any
) -> None:
    publisher, subscriber = meet(node, sends, reads)
    message = OldLevel(24.5) if sends is OldLevel else (24.5,)
    publisher.send(message)
    publisher.send(message)
    for level in (subscriber.recv(timeout=LIMIT_S), subscriber.recv_sample(timeout=LIMIT_S).value):
        if reads is NewLevel:
            assert (level.volt, level.ampere, list(level.cells)) == (24.5, 0, [0, 0, 0, 0])
        else:
            assert (level["volt"], level["ampere"], level["cells"].any()) == (24.5, 0, False)


@pytest.mark.parametrize("sends", [NEW, NewLevel])
@pytest.mark.parametrize("reads", [OLD, OldLevel])
def test_fields_that_the_reader_lacks_are_passed_over(
    node: Callable[..., rnet.Node], sends: Any, reads: Any
) -> None:
    publisher, subscriber = meet(node, sends, reads)
    publisher.send(NewLevel(24.5, 2) if sends is NewLevel else (24.5, 2, (1, 2, 3, 4)))
    level = subscriber.recv(timeout=LIMIT_S)
    assert (level.volt if reads is OldLevel else level["volt"]) == 24.5


def test_rows_of_types_that_grew(node: Callable[..., rnet.Node]) -> None:
    publisher, subscriber = meet(node, OLD, NEW)
    publisher.send_many(np.arange(5.0).view(OLD))
    # Filled before, so that written zeros are detected.
    out = np.full(8, -1, "f8").repeat(3).view(NEW)
    rows = subscriber.recv_many(8, timeout=LIMIT_S, out=out)
    assert rows["volt"].tolist() == [0, 1, 2, 3, 4]
    assert not rows["ampere"].any() and not rows["cells"].any()
    assert (out[5:]["ampere"] == -1).all()


def test_rows_of_types_that_were_shorter(node: Callable[..., rnet.Node]) -> None:
    publisher, subscriber = meet(node, NEW, OLD)
    sent = np.ones(3, NEW)
    sent["volt"] = [7, 8, 9]
    publisher.send_many(sent)
    assert subscriber.recv_many(8, timeout=LIMIT_S)["volt"].tolist() == [7, 8, 9]


def test_descriptions_are_what_rust_reads() -> None:
    for cls in (Image, PointCloud, Tensor):
        described = rnet.types.describe(cls)
        assert json.loads(rnet.codec.codec(cls).described) == described
        assert described["tail"] is True
