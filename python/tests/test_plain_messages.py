"""Images, point clouds, tensors: their bytes are those of docs/design/plain-messages.md. Bytes that
lie: test_plain_hostile.py; on topics: test_plain_topics.py.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rnet
from rnet.msgs._plain import PlainMessage
from rnet.msgs.image import Image
from rnet.msgs.point_cloud import PointCloud, PointField
from rnet.msgs.tensor import Tensor

PAGE = Path(__file__).parents[2] / "docs/design/plain-messages.md"
CLASSES: dict[str, type[PlainMessage]] = {
    "Image": Image,
    "PointCloud": PointCloud,
    "Tensor": Tensor,
}


def tables() -> dict[str, list[list[str]]]:
    """The rows of the page's tables, as cells, by the heading above them."""
    found: dict[str, list[list[str]]] = {}
    heading = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ").replace("`", "")
        elif line.startswith("| "):
            cells = [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
            found.setdefault(heading, []).append(cells)
    return found


def struct_rows(name: str) -> tuple[int, list[tuple[int, int, str, str]]]:
    """Size of a struct of the page, and offset, bytes, name and type of each row."""
    for heading, rows in tables().items():
        if match := re.fullmatch(rf"Struct {re.escape(name)}, (\d+) bytes", heading):
            body = [row for row in rows if row[0].isdigit()]
            return int(match[1]), [(int(r[0]), int(r[1]), r[2], r[3]) for r in body]
    raise AssertionError(f"the page has no struct {name}")


def type_words(described: Any) -> tuple[int, str]:
    """Bytes and name of a type in a description, in the notation of the page."""
    numbers = {"u8": 1, "u16": 2, "u32": 4, "i64": 8, "u64": 8, "f64": 8}
    if isinstance(described, str):
        return numbers[described], described
    if "struct" in described:
        return described["struct"]["size"], "fields"
    of, count = described["array"]["of"], described["array"]["len"]
    size, words = type_words(of)
    return size * count, "text" if words == "u8" else f"{count} {words}"


# -- The page --------------------------------------------------------------------------------------


def check_described(described: dict[str, Any], name: str) -> None:
    size, rows = struct_rows(name)
    fields = described["fields"]
    assert described["size"] == size
    assert [field["offset"] for field in fields] == [row[0] for row in rows]
    for field, (_, length, shown, words) in zip(fields, rows, strict=True):
        told, told_words = type_words(field["type"])
        assert told == length, field["name"]
        if shown == "–":
            # The only padding that is documented as zero.
            assert field["name"].startswith("_reserved")
        else:
            assert (field["name"], told_words) == (shown, words)


@pytest.mark.parametrize("name", CLASSES)
def test_descriptions_are_the_structs_of_the_page(name: str) -> None:
    described = CLASSES[name].__rnet_describe__()
    assert described["name"] == f"rnet.msgs.{name}"
    assert described["tail"] is True
    assert described["align"] == 8
    check_described(described, described["name"])


def test_the_field_of_a_point_is_the_struct_of_the_page() -> None:
    fields = PointCloud.__rnet_describe__()["fields"][-1]["type"]["array"]
    assert fields["len"] == 16
    check_described(fields["of"]["struct"], "Field")


def header_values(message: PlainMessage, name: str) -> dict[str, Any]:
    """The fields of a message's header, read at the page's offsets."""
    raw = bytes(message)
    size, rows = struct_rows(name)
    formats = {"i64": "q", "u64": "Q", "u32": "I", "u16": "H", "u8": "B", "f64": "d"}
    values: dict[str, Any] = {}
    for offset, length, shown, words in rows:
        part = raw[offset : offset + length]
        if shown == "–":
            assert part == bytes(length)
        elif words == "text":
            values[shown] = part.rstrip(b"\0").decode()
        elif "field" in words:
            values[shown] = part
        else:
            count, _, number = words.rpartition(" ")
            unpacked = struct.unpack(f"<{count or 1}{formats[number]}", part)
            values[shown] = unpacked if count else unpacked[0]
    assert values["data_offset"] == size
    assert values["data_offset"] + values["data_len"] == len(raw) == message.nbytes
    return values


def test_header_of_an_image() -> None:
    pixels = np.arange(5 * 7 * 3, dtype="u1").reshape(5, 7, 3)
    image = Image.from_array(pixels, "bgr8", frame_id="head/camera", timestamp_ns=-3)
    values = header_values(image, "rnet.msgs.Image")
    assert values["timestamp_ns"] == -3
    assert values["frame_id"] == "head/camera"
    assert (values["width"], values["height"], values["row_stride"]) == (7, 5, 21)
    assert values["encoding"] == "bgr8"
    assert bytes(image)[192:] == pixels.tobytes()


def test_header_of_a_point_cloud() -> None:
    dtype = np.dtype({"names": ["x", "ring"], "formats": ["<f8", "<u2"], "offsets": [0, 12]})
    points = np.zeros((2, 3), dtype)
    points["x"] = np.arange(6).reshape(2, 3)
    cloud = PointCloud.from_array(
        points, frame_id="lidar", position=(1, 2, 3), orientation=(0, 0, 0, 1), has_nan=True
    )
    values = header_values(cloud, "rnet.msgs.PointCloud")
    assert (values["width"], values["height"]) == (3, 2)
    assert (values["point_stride"], values["row_stride"]) == (14, 42)
    assert (values["field_count"], values["flags"]) == (2, 1)
    assert values["position"] == (1, 2, 3)
    assert values["orientation"] == (0, 0, 0, 1)
    _, rows = struct_rows("Field")
    (_, name_len, _, _), (offset_at, _, _, _), (type_at, _, _, _) = rows
    for number, (name, offset, kind) in enumerate([("x", 0, 8), ("ring", 12, 3)]):
        field = values["fields"][40 * number : 40 * (number + 1)]
        assert field[:name_len].rstrip(b"\0").decode() == name
        assert struct.unpack_from("<I", field, offset_at) == (offset,)
        assert struct.unpack_from("<I", field, type_at) == (kind,)
    assert values["fields"][80:] == bytes(640 - 80)
    assert bytes(cloud)[832:] == points.tobytes()


def test_header_of_a_tensor() -> None:
    tensor = Tensor.from_array(np.zeros((2, 3, 4), "f4"), timestamp_ns=1 << 62)
    values = header_values(tensor, "rnet.msgs.Tensor")
    assert values["timestamp_ns"] == 1 << 62
    assert (values["dtype_code"], values["dtype_bits"], values["dtype_lanes"]) == (2, 32, 1)
    assert values["ndim"] == 3
    assert values["shape"] == (2, 3, 4, 0, 0, 0, 0, 0)
    assert values["strides"] == (48, 16, 4, 0, 0, 0, 0, 0)


# -- Round trips -----------------------------------------------------------------------------------


def encodings() -> list[tuple[str, str, int]]:
    """Encoding, type of an element and channels, of the page."""
    numbers = {"u8": "u1", "u16": "u2", "f32": "f4"}
    return [
        (encoding, numbers[element], int(channels))
        for cells, element, channels in tables()["A view of an image"][1:]
        if element in numbers
        for encoding in cells.split(", ")
    ]


def received(message: Any) -> Any:
    """Created like by a subscriber, from read-only memory."""
    return type(message).from_bytes(memoryview(bytes(message)))


@pytest.mark.parametrize(("encoding", "element", "channels"), encodings())
def test_images_of_each_encoding(encoding: str, element: str, channels: int) -> None:
    shape = (5, 6) if channels == 1 else (5, 6, channels)
    pixels = np.random.default_rng(0).integers(0, 200, shape).astype(element)
    image = received(Image.from_array(pixels, encoding))
    assert image.array.dtype == element
    assert image.array.shape == shape
    assert np.array_equal(image.array, pixels)
    with pytest.raises(rnet.errors.BadValueError, match="shape"):
        Image.from_array(np.zeros((5, 6, 7), element), encoding)
    with pytest.raises(rnet.errors.BadValueError, match=r"complex64.*astype"):
        Image.from_array(pixels.astype("c8"), encoding)


def test_there_are_the_encodings_of_the_page() -> None:
    from rnet.msgs.image import ENCODINGS

    assert {name for name, _, _ in encodings()} == set(ENCODINGS)
    assert len(ENCODINGS) == 18


@pytest.mark.parametrize(
    "cut",
    [np.s_[:, ::-1], np.s_[::-1], np.s_[2:9, 3:11], np.s_[::2, ::3], np.s_[:, :, ::-1], np.s_[:0]],
)
def test_images_cut_out_of_others(cut: Any) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (12, 16, 3), dtype="u1")[cut]
    image = Image.from_array(pixels, "rgb8")
    assert np.array_equal(image.array, pixels)
    assert np.array_equal(received(image).array, pixels)
    assert bytes(image.data) == pixels.tobytes()


def test_row_strides_of_cameras_are_kept() -> None:
    raw = bytes(range(64))
    image = received(
        Image(width=3, height=2, encoding="rgb8", data=raw[: 32 + 9], row_stride=32)
    )
    assert image.array.strides == (32, 3, 1)
    assert image.array[1, 0].tolist() == [32, 33, 34]
    assert image.data == raw[: 32 + 9]


def test_one_channel_with_an_axis_of_its_own() -> None:
    pixels = np.arange(6, dtype="u2").reshape(2, 3, 1)
    assert received(Image.from_array(pixels, "mono16")).array.shape == (2, 3)


def test_an_unknown_encoding_is_rows_of_bytes() -> None:
    rows = np.arange(6 * 8, dtype="u1").reshape(6, 8)
    image = received(Image.from_array(rows, "nv12", width=8))
    assert (image.width, image.height, image.row_stride) == (8, 6, 8)
    assert np.array_equal(image.array, rows)
    assert np.array_equal(
        received(Image(width=4, height=2, encoding="p010", data=bytes(24), row_stride=12)).array,
        np.zeros((2, 12), "u1"),
    )
    with pytest.raises(rnet.errors.BadValueError, match="needs a row_stride"):
        Image(width=4, height=2, encoding="p010", data=bytes(24))


class Foreign:
    """An array of another library, through `__array_interface__`."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.kept = array
        self.__array_interface__ = array.__array_interface__


@pytest.mark.parametrize("wrap", [Foreign, memoryview, bytearray])
def test_arrays_of_other_libraries(wrap: Any) -> None:
    numbers = np.arange(10, dtype="u1")
    assert np.array_equal(received(Tensor.from_array(wrap(numbers))).array, numbers)


NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "?"]


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4), (1,) * 8])
def test_tensors_of_each_number(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    for given_array in (array, array.T):
        tensor = received(Tensor.from_array(given_array))
        assert tensor.dtype == str(np.dtype(dtype))
        assert tensor.array.dtype == np.dtype(dtype)
        assert tensor.array.shape == given_array.shape == tensor.shape
        assert np.array_equal(tensor.array, given_array)


def test_bfloats_are_shown_as_their_bits() -> None:
    bits = np.array([0x3F80, 0xC000], "u2")
    tensor = received(Tensor.from_array(bits, dtype="bfloat16"))
    assert (tensor.dtype_code, tensor.dtype) == (4, "bfloat16")
    assert np.array_equal(tensor.array, bits)
    with pytest.raises(rnet.errors.BadValueError, match="bfloat16"):
        Tensor.from_array(np.zeros(3, "f4"), dtype="bfloat16")


def test_strides_of_tensors_may_repeat_and_leap() -> None:
    data = np.arange(6, dtype="i4").tobytes()
    column = received(
        Tensor(dtype_code=0, dtype_bits=32, shape=(3, 2), strides=(8, 0), data=data)
    )
    assert column.array.tolist() == [[0, 0], [2, 2], [4, 4]]
    with pytest.raises(rnet.errors.BadValueError, match="data_len is 24"):
        Tensor(dtype_code=0, dtype_bits=32, shape=(3, 2), strides=(8, 5), data=data)
    with pytest.raises(rnet.errors.BadValueError, match=r"strides\[0\] is -4"):
        Tensor(dtype_code=0, dtype_bits=32, shape=(3,), strides=(-4,), data=data)


POINT = [("x", "f4"), ("y", "f4"), ("z", "f4"), ("intensity", "u2"), ("ring", "u1")]


def test_point_clouds() -> None:
    points = np.zeros(100, POINT)
    points["x"], points["ring"] = np.arange(100), np.arange(100)
    cloud = received(PointCloud.from_array(points, frame_id="lidar"))
    assert (cloud.width, cloud.height, cloud.has_nan) == (100, 1, False)
    assert cloud.points.shape == (1, 100)
    assert cloud.points.dtype == np.dtype(POINT)
    assert np.array_equal(cloud.points[0], points)
    assert cloud.fields[3] == PointField("intensity", 12, 3)
    assert cloud.xyz().shape == (100, 3)
    assert np.shares_memory(cloud.xyz(), cloud.points)
    assert cloud.xyz()[7].tolist() == [7, 0, 0]


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("cut", [np.s_[:], np.s_[::-1], np.s_[:, 1::2], np.s_[:, :0]])
def test_clouds_in_rows_and_cut_out_of_others(cut: Any, aligned: bool) -> None:
    grid = np.zeros((4, 6), np.dtype(POINT, align=aligned))
    for at, name in enumerate(grid.dtype.names or ()):
        grid[name] = np.arange(24).reshape(4, 6) + at
    cloud = received(PointCloud.from_array(grid[cut]))
    assert (cloud.height, cloud.width) == grid[cut].shape
    assert cloud.points.dtype == grid.dtype
    assert np.array_equal(cloud.points, grid[cut])
    assert np.array_equal(cloud.xyz(), np.stack([grid[cut][a].ravel() for a in "xyz"], axis=1))


def test_coordinates_that_are_not_evenly_spaced() -> None:
    points = np.array([(1, 2, 3), (4, 5, 6)], [("z", "f8"), ("x", "f4"), ("y", "f4")])
    cloud = received(PointCloud.from_array(points))
    assert cloud.xyz().tolist() == [[2, 3, 1], [5, 6, 4]]
    with pytest.raises(rnet.errors.BadValueError, match="no field z"):
        PointCloud.from_array(np.zeros(2, [("x", "f4"), ("y", "f4")])).xyz()


def test_rows_of_points_with_room_between_them() -> None:
    raw = np.arange(16, dtype="f4")
    fields = [PointField(name, 4 * at, 7) for at, name in enumerate("xyz")]
    cloud = received(
        PointCloud(
            fields=fields, point_stride=12, width=2, height=2, row_stride=40, data=raw.tobytes()
        )
    )
    assert cloud.points["x"].tolist() == [[0, 3], [10, 13]]
    assert cloud.xyz().tolist() == [[0, 1, 2], [3, 4, 5], [10, 11, 12], [13, 14, 15]]


def test_columns_make_a_cloud() -> None:
    xyz = np.array([[1, 2, 3], [np.nan, 5, 6]], "f4")
    cloud = received(PointCloud.from_xyz(xyz, intensity=np.array([7, 8], "u1")))
    assert cloud.has_nan
    assert cloud.points["intensity"].tolist() == [[7, 8]]
    assert cloud.xyz(skip_nan=True).tolist() == [[1, 2, 3]]
    with pytest.raises(rnet.errors.BadValueError, match="intensity has shape"):
        PointCloud.from_xyz(xyz, intensity=np.zeros(3, "u1"))
    with pytest.raises(rnet.errors.BadValueError, match="points, 3"):
        PointCloud.from_xyz(xyz[:, :2])


@pytest.mark.parametrize(
    ("dtype", "why"),
    [
        ("f4", "points are structs"),
        ([("x", "f2")], "field x is float16"),
        ([("x", "i8")], "field x is int64"),
        ([("at", "f4", 3)], "field at is"),
        ([("x", ">f4")], "big endian|field x"),
        ([(f"f{n}", "u1") for n in range(17)], "field_count is 17"),
    ],
)
def test_what_is_no_point(dtype: Any, why: str) -> None:
    with pytest.raises(rnet.errors.BadValueError, match=why):
        PointCloud.from_array(np.zeros(3, dtype))


@pytest.mark.parametrize(
    ("field", "why"),
    [
        ({"frame_id": "x" * 65}, "frame_id .* has 65 bytes of UTF-8, but only 64 fit"),
        ({"frame_id": "ü" * 33}, "has 66 bytes"),
        ({"frame_id": "a\0b"}, "contains a zero byte"),
        ({"timestamp_ns": 1 << 63}, "timestamp_ns is 9223372036854775808, which is not a valid i64"),
        ({"timestamp_ns": 1.5}, "timestamp_ns is 1.5, which is not a valid i64"),
        ({"encoding": "y" * 33, "row_stride": 1}, "encoding .* has 33 bytes"),
        ({"width": 1 << 32}, "width is 4294967296"),
        ({"width": -1}, "width is -1"),
        ({"row_stride": 4}, "data_len is 3"),
        ({"row_stride": 0}, "row_stride is 0, but "),
        ({"data": "text"}, "data must be a contiguous bytes-like object, not a str"),
    ],
)
def test_senders_are_told_what_does_not_fit(field: dict[str, Any], why: str) -> None:
    good: dict[str, Any] = {"width": 1, "height": 3, "encoding": "mono8", "data": b"123"}
    bytes(Image(**good))
    with pytest.raises(rnet.errors.BadValueError, match=why) as raised:
        bytes(Image(**{**good, **field}))
    assert raised.value.what == "rnet.msgs.Image"
    with pytest.raises(AttributeError):
        bytes(Image(**{**good, "frame_id": 5}))  # type: ignore[arg-type]


def test_texts_that_fill_their_fields() -> None:
    image = Image(width=0, height=0, encoding="e" * 32, row_stride=0, data=b"", frame_id="f" * 64)
    assert (received(image).encoding, received(image).frame_id) == ("e" * 32, "f" * 64)


# -- Foxglove --------------------------------------------------------------------------------------


def test_images_and_foxglove() -> None:
    raw = bytes(range(1, 42))
    image = Image(
        width=3, height=2, encoding="rgb8", data=raw, row_stride=32, timestamp_ns=-1, frame_id="c"
    )
    message = received(image).to_foxglove()
    assert message.DESCRIPTOR.full_name == "foxglove.RawImage"
    assert (message.timestamp.seconds, message.timestamp.nanos) == (-1, 999_999_999)
    assert (message.width, message.height, message.step) == (3, 2, 32)
    assert (message.encoding, message.frame_id) == ("rgb8", "c")
    assert message.data == raw.ljust(64, b"\0")
    back = Image.from_foxglove(type(message).FromString(message.SerializeToString()))
    assert np.array_equal(back.array, image.array)
    assert (back.timestamp_ns, back.frame_id, back.row_stride) == (-1, "c", 32)
    image.timestamp_ns = 0
    assert not image.to_foxglove().HasField("timestamp")
    assert Image.from_foxglove(image.to_foxglove()).timestamp_ns == 0
    message.step = 33
    with pytest.raises(rnet.errors.BadValueError, match="data_len is 64"):
        Image.from_foxglove(type(message)(**{**fields_of(message), "height": 3}))
    message.timestamp.seconds = 1 << 40
    with pytest.raises(rnet.errors.BadValueError, match="timestamp is"):
        Image.from_foxglove(message)


def fields_of(message: Any) -> dict[str, Any]:
    return {field.name: value for field, value in message.ListFields()}


def test_data_beyond_the_last_row_is_no_part_of_an_image() -> None:
    image = Image(width=1, height=2, encoding="mono8", data=b"abcdef")
    assert image.to_foxglove().data == b"ab"


def test_point_clouds_and_foxglove() -> None:
    fields = [PointField("x", 0, 7), PointField("ring", 4, 3)]
    raw = bytes(range(100))
    cloud = PointCloud(
        fields=fields,
        point_stride=8,
        width=2,
        height=3,
        row_stride=20,
        data=raw,
        frame_id="lidar",
        timestamp_ns=1_500_000_000,
        position=(1, 2, 3),
        orientation=(0.5, 0.5, 0.5, 0.5),
    )
    message = received(cloud).to_foxglove()
    assert message.DESCRIPTOR.full_name == "foxglove.PointCloud"
    assert message.data == raw[:16] + raw[20:36] + raw[40:56]
    assert (message.timestamp.seconds, message.timestamp.nanos) == (1, 500_000_000)
    assert [(f.name, f.offset, f.type) for f in message.fields] == [("x", 0, 7), ("ring", 4, 3)]
    assert (message.pose.position.y, message.pose.orientation.w) == (2, 0.5)
    back = PointCloud.from_foxglove(type(message).FromString(message.SerializeToString()))
    assert (back.width, back.height, back.row_stride) == (6, 1, 48)
    assert np.array_equal(back.points.ravel(), cloud.points.ravel())
    assert back.fields == cloud.fields
    assert (back.position, back.orientation) == (cloud.position, cloud.orientation)
    assert back.timestamp_ns == cloud.timestamp_ns
    # Without an orientation, it is not shifted either.
    cloud.orientation = (0, 0, 0, 0)
    pose = cloud.to_foxglove().pose
    assert (pose.position.x, pose.orientation.x, pose.orientation.w) == (0, 0, 1)
    message.data = message.data[:-1]
    with pytest.raises(rnet.errors.BadValueError, match="data has 47 bytes"):
        PointCloud.from_foxglove(message)


def test_rows_without_room_go_at_once() -> None:
    points = np.arange(6, dtype="f4").view([("x", "f4")]).reshape(2, 3)
    assert PointCloud.from_array(points).to_foxglove().data == points.tobytes()
    assert PointCloud.from_array(points[:, :0]).to_foxglove().data == b""
