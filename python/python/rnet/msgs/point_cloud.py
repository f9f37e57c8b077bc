"""``rnet.msgs.PointCloud``: points, sent and read without encoding them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _plain

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

    from .. import Publisher
    from ._plain import Array

__all__ = ["PointCloud", "PointField"]

#: Numbers of foxglove.PackedElementField.NumericType, and their numpy names.
NUMERIC_TYPES: dict[int, str] = {
    1: "u1",
    2: "i1",
    3: "<u2",
    4: "<i2",
    5: "<u4",
    6: "<i4",
    7: "<f4",
    8: "<f8",
}
_NUMBER_OF = {name.lstrip("<"): number for number, name in NUMERIC_TYPES.items()}

FIELDS_MAX = 16
# Longest point that a numpy type can have. A message with one longer point would exceed the maximum length.
_POINT_LEN_MAX = (1 << 31) - 1
_HAS_NAN = 1

_FIELD = _plain.Layout("Field", ("name", "text", 32), ("offset", "u32", 1), ("type", "u32", 1))


@dataclass(frozen=True)
class PointField:
    """One value of each point."""

    #: `x`, `y`, `z`, `intensity`, `red`, `green`, `blue`, `alpha`, or another.
    name: str
    #: Where it starts within a point, in bytes.
    offset: int
    #: Number of foxglove.PackedElementField.NumericType, 1 to 8.
    type: int

    @property
    def dtype(self) -> str:
        """Its numpy type: "<f4"."""
        return NUMERIC_TYPES[self.type]


class PointCloud(_plain.PlainMessage):
    """Points of a laser scanner or a depth camera: structs of numbers, one after the other.

    ``node.subscriber("/lidar", PointCloud)`` returns clouds whose `points` read the message in place;
    ``publisher.send(PointCloud.from_array(points))`` copies them once, to where they are read.
    """

    _layout = _plain.Layout(
        "rnet.msgs.PointCloud",
        *_plain.COMMON,
        ("width", "u32", 1),
        ("height", "u32", 1),
        ("point_stride", "u32", 1),
        ("row_stride", "u32", 1),
        ("field_count", "u32", 1),
        ("flags", "u32", 1),
        ("_reserved1", "reserved", 8),
        ("position", "f64", 3),
        ("orientation", "f64", 4),
        ("_reserved2", "reserved", 8),
        ("fields", _FIELD, FIELDS_MAX),
    )

    #: Points in a row; of a cloud without order, all.
    width: int
    #: Rows; of a cloud without order, 1.
    height: int
    #: Bytes from a point to the next.
    point_stride: int
    #: Bytes from the start of a row to that of the next.
    row_stride: int
    #: What a point has: 1 to 16.
    fields: tuple[PointField, ...]
    #: Where the points' origin lies in the frame, x y z in m.
    position: tuple[float, ...]
    #: How it is turned, x y z w; all zeros: not shifted and not turned.
    orientation: tuple[float, ...]
    #: Whether some points are NaN.
    has_nan: bool

    def __init__(
        self,
        *,
        fields: Sequence[PointField],
        point_stride: int,
        data: Buffer,
        width: int,
        height: int = 1,
        row_stride: int | None = None,
        frame_id: str = "",
        timestamp_ns: int = 0,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        orientation: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
        has_nan: bool = False,
    ) -> None:
        """A cloud of the bytes of its points, as drivers give them; they are copied when it is sent.

        Args:
            fields: what a point has, and where; 1 to 16.
            point_stride: bytes from a point to the next.
            data: the points, row by row.
            width, height: points in a row, and rows; of a cloud without order all, and 1.
            row_stride: bytes from the start of a row to that of the next; without it, as many as
                its points take.
            frame_id: frame in which the points are given.
            timestamp_ns: when the cloud was taken, of a sweep its start, in ns since 1970 UTC; 0:
                not known.
            position, orientation: where the points' origin lies in the frame, x y z in m, and how
                it is turned, x y z w.
            has_nan: whether some points are NaN.

        Raises BadValueError if that does not fit together.
        """
        self.frame_id, self.timestamp_ns = frame_id, timestamp_ns
        self.fields, self.point_stride = tuple(fields), point_stride
        self.width, self.height = width, height
        self.row_stride = width * point_stride if row_stride is None else row_stride
        self.position, self.orientation = tuple(position), tuple(orientation)
        self.has_nan = has_nan
        self._array = None
        self._data = _plain.bytes_of(self._layout, data)
        self._check(len(self._data))

    @classmethod
    def from_array(
        cls,
        array: Any,
        *,
        frame_id: str = "",
        timestamp_ns: int = 0,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        orientation: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
        has_nan: bool | None = None,
    ) -> Self:
        """Creates a cloud from a structured array, which is copied when it is sent; do not change it until then.

        Args:
            array: of shape (points,) or (height, width); its dtype has 1 to 16 fields, each a
                number of 8 to 32 bits, f4 or f8: ``[("x", "f4"), ("y", "f4"), ("z", "f4")]``.
            has_nan: whether some points are NaN; determined from the data by default.
            frame_id, timestamp_ns, position, orientation: as in `PointCloud`.

        Raises BadValueError if the array does not contain points; MissingNumpyError.
        """
        points = _plain.as_array(cls._layout, array)
        if points.ndim not in (1, 2):
            raise cls._layout.bad(
                f"the array has shape {points.shape}, but must have (points,) or (height, width)"
            )
        if points.ndim == 1:
            points = points.reshape(1, -1)
        made = cls._empty(points.dtype, points.shape, frame_id, timestamp_ns, position, orientation)
        made.has_nan = _some_nan(points) if has_nan is None else has_nan
        # Gaps between fields are copied too; with a struct dtype numpy would skip them.
        _plain.set_array(made, points.view(f"V{points.dtype.itemsize}"))
        made._check(made._data_len())
        return made

    @classmethod
    def from_xyz(
        cls,
        xyz: Any,
        *,
        frame_id: str = "",
        timestamp_ns: int = 0,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        orientation: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
        has_nan: bool | None = None,
        **columns: Any,
    ) -> Self:
        """Creates a cloud from coordinates and further columns: ``from_xyz(xyz, intensity=i)``.

        The columns are combined at once, which is one copy more than with `from_array`.

        Args:
            xyz: of shape (points, 3), f4 or f8.
            columns: further fields by name, each of shape (points,).
            has_nan, frame_id, timestamp_ns, position, orientation: as in `from_array`.

        Raises BadValueError if the shapes do not match; MissingNumpyError.
        """
        np = _plain.numpy("PointCloud.from_xyz")
        at = _plain.as_array(cls._layout, xyz)
        if at.ndim != 2 or at.shape[1] != 3:
            raise cls._layout.bad(f"xyz has shape {at.shape}, but must have (points, 3)")
        arrays = {name: _plain.as_array(cls._layout, column) for name, column in columns.items()}
        for name, column in arrays.items():
            if column.shape != at.shape[:1]:
                raise cls._layout.bad(f"{name} has shape {column.shape}, not {at.shape[:1]}")
        arrays = {**{axis: at[:, i] for i, axis in enumerate("xyz")}, **arrays}
        points = np.empty(len(at), [(name, column.dtype) for name, column in arrays.items()])
        for name, column in arrays.items():
            points[name] = column
        return cls.from_array(
            points,
            frame_id=frame_id,
            timestamp_ns=timestamp_ns,
            position=position,
            orientation=orientation,
            has_nan=has_nan,
        )

    @classmethod
    def loan(
        cls,
        publisher: Publisher[PointCloud],
        dtype: Any,
        width: int,
        height: int = 1,
        *,
        frame_id: str = "",
        timestamp_ns: int = 0,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        orientation: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
        has_nan: bool = False,
    ) -> _plain.MessageLoan[PointCloud]:
        """A cloud to be filled in the memory that subscribers read, without copying.

        ``with PointCloud.loan(pub, [("x", "f4"), ("y", "f4")], 1000) as cloud:
        cloud.points["x"] = ...`` sends it at the end of the block. Its initial bytes are
        those of an earlier message; `timestamp_ns`, `has_nan` and other fields may be set until the
        block ends.

        Raises BadValueError; MissingNumpyError; errors of `Publisher.loan` when the block begins, and of
        `Publisher.send` when it ends.
        """
        point = _plain.numpy("PointCloud.loan").dtype(dtype)

        def make() -> PointCloud:
            shape = (height, width)
            made = cls._empty(point, shape, frame_id, timestamp_ns, position, orientation)
            made.has_nan = has_nan
            return made

        return _plain.MessageLoan(publisher, make, height * width * int(point.itemsize))

    @classmethod
    def _empty(
        cls,
        dtype: Any,
        shape: tuple[int, ...],
        frame_id: str,
        timestamp_ns: int,
        position: Sequence[float],
        orientation: Sequence[float],
    ) -> Self:
        made = cls.__new__(cls)
        made.frame_id, made.timestamp_ns = frame_id, timestamp_ns
        made.fields, made.point_stride = _fields_of(dtype), int(dtype.itemsize)
        made.height, made.width = shape
        made.row_stride = made.width * made.point_stride
        made.position, made.orientation = tuple(position), tuple(orientation)
        made._data = made._array = None
        return made

    @property
    def dtype(self) -> Any:
        """The numpy dtype of a point. Raises MissingNumpyError."""
        np = _plain.numpy("PointCloud.dtype")
        return np.dtype(
            {
                "names": [field.name for field in self.fields],
                "formats": [field.dtype for field in self.fields],
                "offsets": [field.offset for field in self.fields],
                "itemsize": self.point_stride,
            }
        )

    @property
    def points(self) -> Array:
        """The points as a structured array of shape (height, width): ``cloud.points["x"]``.

        For a received cloud it is a read-only view of the message, for a lent one a view to be filled;
        the memory stays valid as long as the array exists. Raises MissingNumpyError.
        """
        if self._array is not None:
            return self._array.view(self.dtype)
        shape, strides = (self.height, self.width), (self.row_stride, self.point_stride)
        return _plain.view(self._layout, self._memory(), shape, self.dtype, strides)

    def xyz(self, *, skip_nan: bool = False) -> Array:
        """The coordinates of all points, row by row, as an array of shape (points, 3).

        A view of the message if x, y and z have one type and are evenly spaced, as with most drivers;
        otherwise a copy. With `skip_nan` it is a copy without points that have a NaN coordinate. Raises
        BadValueError if the points lack one of x, y, z; MissingNumpyError.
        """
        np = _plain.numpy("PointCloud.xyz")
        by_name = {field.name: field for field in self.fields}
        missing = [axis for axis in "xyz" if axis not in by_name]
        if missing:
            raise self._layout.bad(f"its points have no field {missing[0]}; they have {list(by_name)}")
        x, y, z = (by_name[axis] for axis in "xyz")
        step, points = y.offset - x.offset, self.points
        if len({x.type, y.type, z.type}) == 1 and z.offset - y.offset == step > 0:
            # Three consecutive numbers of a point, starting at x.
            first = points["x"]
            grid = np.lib.stride_tricks.as_strided(
                first, (*first.shape, 3), (*first.strides, step), writeable=first.flags.writeable
            )
            # A view if the rows are contiguous, like the points.
            made: Array = grid.reshape(-1, 3)
        else:
            made = np.stack([points[axis].reshape(-1) for axis in "xyz"], axis=1)
        if skip_nan:
            made = made[~np.isnan(made).any(axis=1)]
        return made

    def to_foxglove(self) -> Any:
        """The cloud as a `foxglove.PointCloud`, a copy without the order in rows."""
        from .foxglove import PackedElementField, PointCloud

        self._check(self._data_len())
        row, memory = self.width * self.point_stride, self.data
        if self.row_stride == row:
            data = bytes(memory[: self.height * row])
        else:
            starts = (number * self.row_stride for number in range(self.height))
            data = b"".join(memory[start : start + row] for start in starts)
        message = PointCloud(
            frame_id=self.frame_id,
            point_stride=self.point_stride,
            fields=[
                PackedElementField(name=field.name, offset=field.offset, type=field.type)
                for field in self.fields
            ],
            data=data,
        )
        turned = any(self.orientation)
        at, to = message.pose.position, message.pose.orientation
        at.x, at.y, at.z = self.position if turned else (0.0, 0.0, 0.0)
        to.x, to.y, to.z, to.w = self.orientation if turned else (0.0, 0.0, 0.0, 1.0)
        _plain.stamp_to(self.timestamp_ns, message)
        return message

    @classmethod
    def from_foxglove(cls, message: Any) -> Self:
        """Creates a cloud of one row from a `foxglove.PointCloud`; raises BadValueError if it is inconsistent."""
        stride, length = message.point_stride, len(message.data)
        if stride == 0 or length % stride:
            raise cls._layout.bad(f"data has {length} bytes, and points take {stride} each")
        at, to = message.pose.position, message.pose.orientation
        return cls(
            fields=[PointField(field.name, field.offset, field.type) for field in message.fields],
            point_stride=stride,
            data=message.data,
            width=length // stride,
            frame_id=message.frame_id,
            timestamp_ns=_plain.stamp_of(cls._layout, message),
            position=(at.x, at.y, at.z),
            orientation=(to.x, to.y, to.z, to.w),
        )

    def _take(self, values: dict[str, Any]) -> None:
        layout, count = self._layout, values["field_count"]
        self._check_count(count)
        self.width, self.height = values["width"], values["height"]
        self.point_stride, self.row_stride = values["point_stride"], values["row_stride"]
        self.position, self.orientation = values["position"], values["orientation"]
        self.has_nan = bool(values["flags"] & _HAS_NAN)
        fields = []
        for at in range(count):
            field = _FIELD.unpack(values["fields"][at * _FIELD.size : (at + 1) * _FIELD.size])
            name = layout.text(f"name of field {at}", field["name"])
            fields.append(PointField(name, field["offset"], field["type"]))
        self.fields = tuple(fields)

    def _put(self) -> dict[str, Any]:
        fields = (
            {"name": field.name, "offset": field.offset, "type": field.type}
            for field in self.fields
        )
        return {
            "width": self.width,
            "height": self.height,
            "point_stride": self.point_stride,
            "row_stride": self.row_stride,
            "field_count": len(self.fields),
            "flags": _HAS_NAN if self.has_nan else 0,
            "position": self.position,
            "orientation": self.orientation,
            "fields": b"".join(_FIELD.pack(field) for field in fields),
        }

    def _check_count(self, count: int) -> None:
        if not 1 <= count <= FIELDS_MAX:
            raise self._layout.bad(f"field_count is {count}, and must be 1 to {FIELDS_MAX}")

    def _check(self, data_len: int) -> None:
        layout, width, height = self._layout, self.width, self.height
        _plain.check_u32(
            layout,
            width=width,
            height=height,
            point_stride=self.point_stride,
            row_stride=self.row_stride,
        )
        if self.point_stride > _POINT_LEN_MAX:
            raise layout.bad(f"point_stride is {self.point_stride}, and must be 0 to {_POINT_LEN_MAX}")
        self._check_count(len(self.fields))
        names = set()
        for field in self.fields:
            kind = NUMERIC_TYPES.get(field.type)
            if kind is None:
                raise layout.bad(f"type of field {field.name!r} is {field.type}, not 1 to 8")
            if not field.name or field.name in names:
                why = "field names must be unique" if field.name else "fields need names"
                raise layout.bad(f"a field is named {field.name!r}, but {why}")
            names.add(field.name)
            end = field.offset + int(kind[-1])
            if field.offset < 0 or end > self.point_stride:
                raise layout.bad(
                    f"field {field.name!r} lies at {field.offset} to {end}, but a point has "
                    f"{self.point_stride} bytes"
                )
        row = width * self.point_stride
        why = f"{width} points of {self.point_stride} bytes"
        _plain.check_rows(layout, height, row, self.row_stride, data_len, why)

    def __repr__(self) -> str:
        return (
            f"<rnet.msgs.PointCloud: {self.width} x {self.height} points of "
            f"{', '.join(field.name for field in self.fields)}, "
            f"frame_id {self.frame_id!r}, timestamp_ns {self.timestamp_ns}>"
        )


def _fields_of(dtype: Any) -> tuple[PointField, ...]:
    layout = PointCloud._layout
    if dtype.names is None:
        raise layout.bad(
            f'points are structs, but the array has dtype {dtype}: use a dtype with fields, [("x", "f4"), '
            '...], or use from_xyz'
        )
    fields = []
    for name in dtype.names:
        of, offset = dtype.fields[name][:2]
        number = None if of.byteorder == ">" else _NUMBER_OF.get(of.str[1:])
        if number is None or of.subdtype is not None:
            raise layout.bad(
                f"field {name} is {of}: a point has integers of 8 to 32 bits, f4 and f8"
            )
        fields.append(PointField(name, int(offset), number))
    return tuple(fields)


def _some_nan(points: Array) -> bool:
    np = _plain.numpy("PointCloud")
    names = points.dtype.names or ()
    floats = (points[name] for name in names if points.dtype[name].kind == "f")
    return any(bool(np.isnan(column).any()) for column in floats)
