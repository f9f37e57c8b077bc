"""Images, point clouds, tensors from arbitrary bytes: rejected, or read only within the message."""

from __future__ import annotations

import gc
import struct
from typing import Any

import numpy as np
import pytest
import rnet
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rnet.msgs._plain import PlainMessage
from rnet.msgs.image import Image
from rnet.msgs.point_cloud import PointCloud
from rnet.msgs.tensor import Tensor

CLASSES: dict[str, type[PlainMessage]] = {
    "Image": Image,
    "PointCloud": PointCloud,
    "Tensor": Tensor,
}
POINT = [("x", "f4"), ("y", "f4"), ("z", "f4"), ("intensity", "u2"), ("ring", "u1")]


def small(name: str) -> bytes:
    """A message of each class, every field in use."""
    if name == "Image":
        pixels = np.zeros((3, 4, 3), "u1")
        return bytes(Image.from_array(pixels, "rgb8", frame_id="camera", timestamp_ns=7))
    if name == "PointCloud":
        return bytes(PointCloud.from_array(np.zeros((2, 5), POINT), frame_id="lidar"))
    return bytes(Tensor.from_array(np.zeros((2, 3, 4), "f4"), frame_id="net"))


def patched(message: bytes, offset: int, format: str, *values: Any) -> bytes:
    made = bytearray(message)
    struct.pack_into("<" + format, made, offset, *values)
    return bytes(made)


HOSTILE: list[tuple[str, int, str, tuple[Any, ...], str]] = [
    ("Image", 8, "Q", (191,), "data_offset is 191"),
    ("Image", 8, "Q", (128,), "data_offset is 128"),
    ("Image", 8, "Q", (256,), "data_offset \\+ data_len is 256 \\+ 36"),
    ("Image", 8, "QQ", (1 << 63, 1 << 63), "data_offset \\+ data_len"),
    ("Image", 8, "QQ", (192, (1 << 64) - 192), "data_offset \\+ data_len"),
    ("Image", 16, "Q", (35,), "data_offset \\+ data_len is 192 \\+ 35, and .* 228"),
    ("Image", 32, "2s", (b"\xff\xfe",), "frame_id is not UTF-8"),
    ("Image", 112, "2s", (b"\xc3(",), "encoding is not UTF-8"),
    ("Image", 96, "I", (5,), "row_stride is 12, but a row takes 15"),
    ("Image", 100, "I", (4,), "data_len is 36, and 4 rows of 4 pixels of rgb8 every 12"),
    ("Image", 100, "I", ((1 << 32) - 1,), "height 4294967295 times"),
    ("Image", 96, "III", ((1 << 32) - 1,) * 3, "height 4294967295 times"),
    ("Image", 104, "I", (14,), "data_len is 36"),
    ("Image", 112, "6s", (b"mono16",), None),
    ("Image", 112, "5s", (b"rgba8",), "row_stride is 12, but a row takes 16"),
    ("Image", 112, "6s", (b"r\0b8",), "encoding continues after a zero byte"),
    ("PointCloud", 96, "I", (4,), None),
    ("PointCloud", 96, "I", (6,), "row_stride is 75, but a row takes 90"),
    ("PointCloud", 100, "I", (3,), "data_len is 150, and 3 rows of 5 points of 15 bytes every 75"),
    ("PointCloud", 104, "I", (14,), "field 'ring' lies at 14 to 15, but a point has 14"),
    ("PointCloud", 112, "I", (0,), "field_count is 0"),
    ("PointCloud", 112, "I", (17,), "field_count is 17"),
    ("PointCloud", 112, "I", ((1 << 32) - 1,), "field_count is 4294967295"),
    ("PointCloud", 112, "I", (6,), "type of field '' is 0"),
    ("PointCloud", 192 + 32, "I", ((1 << 32) - 1,), "field 'x' lies at 4294967295"),
    ("PointCloud", 192 + 36, "I", (9,), "type of field 'x' is 9"),
    ("PointCloud", 192 + 40, "1s", (b"x",), "named 'x', but field names must be unique"),
    ("PointCloud", 192, "1s", (b"\xff",), "name of field 0 is not UTF-8"),
    ("Tensor", 96, "B", (7,), "dtype_code is 7"),
    ("Tensor", 97, "B", (0,), "dtype_bits 0"),
    ("Tensor", 97, "B", (24,), "dtype_bits 24: this number type does not exist"),
    ("Tensor", 96, "BB", (6, 16), "dtype_code is 6 and dtype_bits 16"),
    ("Tensor", 98, "H", (2,), "dtype_lanes is 2"),
    ("Tensor", 100, "I", (9,), "ndim is 9"),
    ("Tensor", 104, "q", (3,), "data_len is 96"),
    ("Tensor", 104, "q", (-1,), "shape\\[0\\] is -1"),
    ("Tensor", 104, "q", ((1 << 63) - 1,), "take more than"),
    ("Tensor", 168, "q", (-48,), "strides\\[0\\] is -48"),
    ("Tensor", 168, "q", ((1 << 63) - 1,), "data_len is 96"),
    ("Tensor", 104, "q", (0,), None),
    ("Tensor", 168, "qqq", (0, 0, 0), None),
]


@pytest.mark.parametrize(("name", "offset", "format", "values", "why"), HOSTILE)
def test_headers_that_lie(
    name: str, offset: int, format: str, values: tuple[Any, ...], why: str | None
) -> None:
    message = patched(small(name), offset, format, *values)
    if why is None:
        CLASSES[name].from_bytes(message)
        return
    with pytest.raises(rnet.errors.BadValueError, match=why):
        CLASSES[name].from_bytes(message)


@pytest.mark.parametrize("name", CLASSES)
def test_messages_that_end_early(name: str) -> None:
    message = small(name)
    for length in range(len(message)):
        with pytest.raises(rnet.errors.BadValueError):
            CLASSES[name].from_bytes(message[:length])


def test_a_longer_header_of_a_later_version_is_passed_over() -> None:
    message = small("Image")
    grown = patched(message[:192] + b"later".ljust(128, b"!") + message[192:], 8, "Q", 320)
    assert np.array_equal(Image.from_bytes(grown).array, Image.from_bytes(message).array)


def look_at_everything(message: Any, raw: bytes) -> None:
    """Reads all fields of a message; numpy reports the bounds of each view."""
    repr(message)
    bytes(message.data)
    memory = np.frombuffer(raw, np.uint8)
    begin = memory.__array_interface__["data"][0]
    views = [message.array] if not isinstance(message, PointCloud) else [message.points]
    if isinstance(message, PointCloud):
        views += [message.points[field.name] for field in message.fields]
        if {"x", "y", "z"} <= {field.name for field in message.fields}:
            views.append(message.xyz())
    for view in views:
        if view.size == 0 or not np.may_share_memory(view, memory):
            continue
        low, high = np.lib.array_utils.byte_bounds(view)
        # The view is within the data: not in the header, not beyond the message.
        assert begin + message._layout.size <= low <= high <= begin + len(raw)
        if view.size < 1 << 16:
            view.copy()


@pytest.mark.parametrize("name", CLASSES)
@given(data=st.data())
@settings(max_examples=400, deadline=None)
def test_any_header(name: str, data: st.DataObject) -> None:
    raw = bytearray(small(name))
    size = CLASSES[name]._layout.size
    edits = st.tuples(
        st.one_of(
            st.integers(0, size - 1), st.sampled_from(range(96, 128, 4)), st.just(8), st.just(16)
        ),
        st.one_of(
            st.binary(min_size=1, max_size=8),
            st.sampled_from([0, 1, 2, 3, 4, 255, 256, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]).map(
                lambda number: struct.pack("<I", number)
            ),
            st.sampled_from([0, 192, 256, 1 << 31, (1 << 63) - 1, 1 << 63, (1 << 64) - 64]).map(
                lambda number: struct.pack("<Q", number)
            ),
        ),
    )
    for at, part in data.draw(st.lists(edits, min_size=1, max_size=6)):
        raw[at : at + len(part)] = part
    raw = raw[: data.draw(st.one_of(st.just(len(raw)), st.integers(0, len(raw))))]
    frozen = bytes(raw)
    try:
        message = CLASSES[name].from_bytes(frozen)
    except rnet.errors.BadValueError as error:
        assert error.what == f"rnet.msgs.{name}" and error.why
        return
    look_at_everything(message, frozen)


def test_a_point_that_is_too_long_for_numpy_is_refused() -> None:
    for stride, fits in [((1 << 31) - 1, True), (1 << 31, False)]:
        raw = bytearray(small("PointCloud"))
        # Without points, no other check rejects the stride.
        values = {"width": 0, "height": 0, "row_stride": 0, "point_stride": stride}
        for name, at, *_ in PointCloud._layout._parts:
            if name in values:
                raw[at : at + 4] = struct.pack("<I", values[name])
        if fits:
            assert PointCloud.from_bytes(bytes(raw)).points.size == 0
            continue
        with pytest.raises(rnet.errors.BadValueError, match=f"point_stride is {stride}, and must be 0 to"):
            PointCloud.from_bytes(bytes(raw))


@given(
    width=st.integers(0, 40),
    height=st.integers(0, 40),
    stride=st.integers(0, 200),
    length=st.integers(0, 2000),
    encoding=st.sampled_from(["mono8", "rgb8", "mono16", "32FC1", "nv12", ""]),
)
@example(width=1, height=2, stride=1, length=3, encoding="mono16")
@example(width=0, height=1, stride=200, length=0, encoding="mono8")
@settings(max_examples=300, deadline=None)
def test_images_reach_as_far_as_they_say(
    width: int, height: int, stride: int, length: int, encoding: str
) -> None:
    pixel = {"mono8": 1, "rgb8": 3, "mono16": 2, "32FC1": 4}.get(encoding)
    row = stride if pixel is None else width * pixel
    # The last byte of the last pixel, by brute force.
    reached = max((y * stride + row for y in range(height)), default=0)
    make = lambda: Image(  # noqa: E731
        width=width, height=height, encoding=encoding, row_stride=stride, data=bytes(length)
    )
    # A single row must be complete, too.
    if max(reached, stride if height else 0) > length or row > stride:
        with pytest.raises(rnet.errors.BadValueError, match="data_len|row_stride"):
            make()
    else:
        raw = bytes(make())
        look_at_everything(Image.from_bytes(raw), raw)


def test_what_is_checked_is_what_is_used() -> None:
    memory = bytearray(small("Image"))
    image = Image.from_bytes(memory)
    struct.pack_into("<III", memory, 96, (1 << 32) - 1, (1 << 32) - 1, (1 << 32) - 1)
    assert image.array.shape == (3, 4, 3)


@pytest.mark.parametrize("name", CLASSES)
def test_views_are_read_only_and_keep_the_memory(name: str) -> None:
    memory = bytearray(small(name))
    message: Any = CLASSES[name].from_bytes(memory)
    array = message.points if name == "PointCloud" else message.array
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 0
    del message
    gc.collect()
    # The view locks the memory.
    with pytest.raises(BufferError):
        memory.clear()
    memory[-1] = 9
    assert array.tobytes()[-1] == 9


def test_what_is_sent_is_not_copied_before() -> None:
    pixels = np.zeros((4, 4, 3), "u1")
    for given_array in (pixels, pixels[:, ::-1]):
        image = Image.from_array(given_array, "rgb8")
        assert np.shares_memory(image.array, pixels)
        pixels[...] = 7
        memory = bytearray(image.nbytes)
        image.write_to(memoryview(memory))
        assert set(memory[192:]) == {7}
        pixels[...] = 0
