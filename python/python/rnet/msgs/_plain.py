"""Common parts of the large plain messages: a header of a fixed layout, followed by bytes.

Layouts, rules and checks are those of docs/design/plain-messages.md. A header from another process is
untrusted: it is copied, then checked, and only the checked copy is used.
"""

from __future__ import annotations

import json
import struct
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

from .._numpy import numpy
from ..errors import BadValueError, ClosedError
from ..codec import Codec

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Buffer, Self

    from .. import Loan, Publisher

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

__all__ = ["Layout", "MessageLoan", "PlainMessage", "as_array", "numpy", "stamp_of", "stamp_to", "view"]

#: Data starts after a header at a multiple of this offset.
DATA_ALIGN_BYTES = 64

#: The codes of `struct` for the number types of descriptions.
_NUMBERS = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i64": "q", "f64": "d"}
_U32_MAX = (1 << 32) - 1
_I64_MAX = (1 << 63) - 1

#: A field of a layout: name, type and count. The type is a number, "text" or "reserved" (for both, the count
#: is in bytes), or another layout.
Part: TypeAlias = "tuple[str, str | Layout, int]"


class Layout:
    """A struct of a fixed layout, without gaps."""

    def __init__(self, name: str, *parts: Part) -> None:
        self.name = name
        #: Name, offset, type and count of each part.
        self._parts: list[tuple[str, int, str | Layout, int]] = []
        #: For each part that is not reserved: name, number of values in `struct` (None: one value and not a
        #: tuple), type and count.
        self._fields: list[tuple[str, int | None, str | Layout, int]] = []
        #: Size of the struct in bytes.
        self.size: int = 0
        formats = ["<"]
        for field, kind, count in parts:
            if isinstance(kind, Layout):
                format, values = f"{kind.size * count}s", None
            elif kind in ("text", "reserved"):
                format, values = f"{count}{'s' if kind == 'text' else 'x'}", None
            else:
                format, values = f"{count}{_NUMBERS[kind]}", None if count == 1 else count
            if kind != "reserved":
                self._fields.append((field, values, kind, count))
            self._parts.append((field, self.size, kind, count))
            formats.append(format)
            self.size += struct.calcsize("<" + format)
        self._struct = struct.Struct("".join(formats))

    def unpack(self, header: bytes) -> dict[str, Any]:
        """The fields by name; texts are still bytes, and so are nested structs."""
        flat = self._struct.unpack(header)
        values: dict[str, Any] = {}
        at = 0
        for name, count, _, _ in self._fields:
            if count is None:
                values[name] = flat[at]
                at += 1
            else:
                values[name] = flat[at : at + count]
                at += count
        return values

    def pack(self, values: dict[str, Any]) -> bytes:
        """The struct; raises BadValueError for numbers and texts that do not fit their fields."""
        flat: list[Any] = []
        for name, numbers, kind, count in self._fields:
            value = values[name]
            if kind == "text":
                flat.append(self._packed_text(name, value, count))
            elif numbers is None:
                flat.append(value)
            else:
                flat.extend(value)
        try:
            return self._struct.pack(*flat)
        except struct.error:
            raise self._bad_header(values) from None

    def _packed_text(self, name: str, text: str, room: int) -> bytes:
        encoded = text.encode()
        if len(encoded) > room:
            raise self.bad(f"{name} {text!r} has {len(encoded)} bytes of UTF-8, but only {room} fit")
        if b"\0" in encoded:
            raise self.bad(f"{name} {text!r} contains a zero byte, which would end the text")
        return encoded

    def _bad_header(self, values: dict[str, Any]) -> BadValueError:
        """Says which number does not fit; struct only says that one does not."""
        for name, _, kind, count in self._fields:
            if not isinstance(kind, str) or kind == "text":
                continue
            for value in values[name] if count > 1 else (values[name],):
                try:
                    struct.pack("<" + _NUMBERS[kind], value)
                except struct.error:
                    return self.bad(f"{name} is {value!r}, which is not a valid {kind}")
        return self.bad("it has a wrong number of values")

    def text(self, name: str, raw: bytes) -> str:
        """A text of a header."""
        text, _, behind = raw.partition(b"\0")
        if behind.strip(b"\0"):
            raise self.bad(f"{name} continues after a zero byte: {raw.rstrip(bytes(1))!r}")
        try:
            return text.decode()
        except UnicodeDecodeError:
            raise self.bad(f"{name} is not UTF-8: {raw.rstrip(bytes(1))!r}") from None

    def bad(self, why: str) -> BadValueError:
        """The error for an invalid message."""
        return BadValueError(f"{self.name}: {why}", what=self.name, why=why)

    def describe(self) -> dict[str, Any]:
        """The description, as :func:`rnet.types.describe` gives it."""
        fields = [
            {"name": name, "offset": offset, "type": _described(kind, count)}
            for name, offset, kind, count in self._parts
        ]
        return {"name": self.name, "size": self.size, "align": self._align(), "fields": fields}

    def _align(self) -> int:
        def align(kind: str | Layout) -> int:
            if isinstance(kind, Layout):
                return kind._align()
            return struct.calcsize("<" + _NUMBERS[kind]) if kind in _NUMBERS else 1

        return max(align(kind) for _, _, kind, _ in self._parts)


def _described(kind: str | Layout, count: int) -> Any:
    if isinstance(kind, Layout):
        return {"array": {"of": {"struct": kind.describe()}, "len": count}}
    if kind in ("text", "reserved"):
        return {"array": {"of": "u8", "len": count}}
    return kind if count == 1 else {"array": {"of": kind, "len": count}}


#: The first fields of every header.
COMMON: tuple[Part, ...] = (
    ("timestamp_ns", "i64", 1),
    ("data_offset", "u64", 1),
    ("data_len", "u64", 1),
    ("_reserved0", "reserved", 8),
    ("frame_id", "text", 64),
)


class PlainMessage:
    """A message with unencoded data: a header, followed by the bytes.

    A received message reads its data in place, in the sample that it keeps; a message to be sent
    refers to the caller's array until then. Its attributes are the fields of the header; they are
    checked when it is created from bytes, and when it is sent.
    """

    _layout: ClassVar[Layout]

    #: When it was so, in ns since 1970 UTC; 0: not known.
    timestamp_ns: int
    #: The frame in which it is given.
    frame_id: str
    #: The bytes after the header; None if `_array` has the data, or if their loan has ended.
    _data: memoryview | None
    #: The array to be sent, if its bytes are not contiguous.
    _array: Array | None

    @classmethod
    def from_bytes(cls, message: Buffer) -> Self:
        """Creates a message from its bytes, which are read in place and not copied.

        Raises BadValueError, with field and value, if they are not a valid message of this type.
        """
        layout = cls._layout
        memory = _bytes_of(message)
        if len(memory) < layout.size:
            raise layout.bad(f"the message has {len(memory)} bytes, and its header {layout.size}")
        # Copied first, so that the checked values are the ones used, even if the sender writes meanwhile.
        values = layout.unpack(bytes(memory[: layout.size]))
        offset, data_len = values["data_offset"], values["data_len"]
        if offset % DATA_ALIGN_BYTES or offset < layout.size:
            raise layout.bad(
                f"data_offset is {offset}, must be a multiple of {DATA_ALIGN_BYTES}, at least {layout.size}"
            )
        if offset + data_len != len(memory):
            raise layout.bad(
                f"data_offset + data_len is {offset} + {data_len}, "
                f"and the message has {len(memory)} bytes"
            )
        made = cls.__new__(cls)
        made.timestamp_ns = values["timestamp_ns"]
        made.frame_id = layout.text("frame_id", values["frame_id"])
        made._array = None
        made._data = memory[offset:]
        made._take(values)
        made._check(data_len)
        return made

    @abstractmethod
    def _take(self, values: dict[str, Any]) -> None:
        """Sets the attributes that not every header has; checks counts before they are used."""

    @abstractmethod
    def _put(self) -> dict[str, Any]:
        """The fields of the header that not every header has."""

    @abstractmethod
    def _check(self, data_len: int) -> None:
        """Raises BadValueError if the header is invalid, or refers beyond the data."""

    @property
    def data(self) -> memoryview:
        """The bytes behind the header, in place; a copy for a message to be sent whose array is not
        contiguous.
        """
        if self._array is not None:
            return memoryview(self._array.tobytes())
        return self._memory()

    @property
    def nbytes(self) -> int:
        """Length of the whole message."""
        return self._layout.size + self._data_len()

    def _memory(self) -> memoryview:
        if self._data is None:
            what = f"the loan of this {self._layout.name}"
            raise ClosedError(f"{what} is closed; make another", what=what)
        return self._data

    def _data_len(self) -> int:
        return len(self._memory()) if self._array is None else int(self._array.nbytes)

    def _header(self) -> bytes:
        data_len = self._data_len()
        self._check(data_len)
        return self._layout.pack(
            {
                "timestamp_ns": self.timestamp_ns,
                "data_offset": self._layout.size,
                "data_len": data_len,
                "frame_id": self.frame_id,
                **self._put(),
            }
        )

    def __bytes__(self) -> bytes:
        """The whole message, copied."""
        return b"".join((self._header(), self.data))

    def write_to(self, memory: memoryview) -> None:
        """Writes the message to memory of `nbytes` bytes; its data is copied only once."""
        header = self._header()
        memory[: len(header)] = header
        to = memory[len(header) :]
        if self._array is not None:
            flat = view(self._layout, to, self._array.shape, self._array.dtype)
            flat[...] = self._array
        elif "numpy" in sys.modules:
            # Other threads may run during this copy, unlike during a copy by memoryview.
            np = numpy("")
            np.frombuffer(to, np.uint8)[:] = np.frombuffer(self._memory(), np.uint8)
        else:
            to[:] = self._memory()

    @classmethod
    def __rnet_describe__(cls) -> dict[str, Any]:
        return {"kind": "plain", **cls._layout.describe(), "tail": True}

    @classmethod
    def __rnet_codec__(cls) -> Codec:
        described = json.dumps(cls.__rnet_describe__())
        return Codec(described, cls, None, cls.from_bytes, BadValueError, _send)


def _send(publisher: Publisher[Any], message: PlainMessage) -> None:
    with publisher.loan(message.nbytes) as memory:
        message.write_to(memory)


_Message = TypeVar("_Message", bound=PlainMessage)


class MessageLoan(Generic[_Message]):
    """A message filled in the memory from which it is sent, created by `loan` of its class.

    ``with`` returns the message, and sends it when the block ends, or discards it if the block raises.
    Do not keep a reference to its array: if one still exists, a copy is sent, which
    ``Publisher.copied_loan_count`` counts. The first copy of a publisher causes a RuntimeWarning.
    """

    def __init__(
        self, publisher: Publisher[_Message], make: Callable[[], _Message], data_len: int
    ) -> None:
        self._publisher = publisher
        self._message = make()
        self._data_len = data_len
        self._loan: Loan | None = None

    def __enter__(self) -> _Message:
        message = self._message
        if self._loan is not None:
            what = f"this loan of {self._publisher.topic}"
            raise ClosedError(f"{what} is closed; make another", what=what)
        message._check(self._data_len)
        header_len = message._layout.size
        self._loan = self._publisher.loan(header_len + self._data_len)
        message._data = self._loan.data[header_len:]
        return message

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        _exception: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None:
        assert self._loan is not None
        try:
            if exception_type is None:
                header = self._message._header()
                self._loan.data[: len(header)] = header
                # With a remaining view, the send would make a copy.
                self._message._data = None
                self._loan.send()
        finally:
            self._message._data = None
            self._loan.discard()


def _bytes_of(memory: Any) -> memoryview:
    """The bytes of an object, read-only."""
    flat = memoryview(memory)
    if flat.ndim != 1 or flat.format != "B":
        flat = flat.cast("B")
    return flat if flat.readonly else flat.toreadonly()


def bytes_of(layout: Layout, memory: Any) -> memoryview:
    """The bytes of an object that the caller gave."""
    try:
        return _bytes_of(memory)
    except (TypeError, ValueError) as error:
        raise layout.bad(
            f"data must be a contiguous bytes-like object, not a {type(memory).__name__}"
        ) from error


def as_array(layout: Layout, array: Any) -> Array:
    """An array of numpy for one of any library, without a copy where that can be."""
    np = numpy(f"{layout.name}.from_array")
    try:
        made: Array = np.asarray(array)
    except (TypeError, ValueError) as error:
        raise layout.bad(
            f"numpy cannot create an array from this {type(array).__name__}: {error}"
        ) from error
    if made.dtype.hasobject:
        raise layout.bad(
            f"this {type(array).__name__} holds Python objects; use an array of numbers"
        )
    if made.dtype.byteorder == ">":
        raise layout.bad(f"the array is big endian ({made.dtype}); messages are little endian")
    return made


def set_array(message: PlainMessage, array: Array) -> None:
    """Makes a message refer to an array until it is sent."""
    if array.flags.c_contiguous and array.size:
        # As bytes first: memoryview does not support structured or half-precision arrays.
        message._data = _bytes_of(array.reshape(-1).view("u1"))
        message._array = None
    else:
        message._data, message._array = None, array


def view(
    layout: Layout,
    memory: memoryview,
    shape: Iterable[int],
    dtype: Any,
    strides: Iterable[int] | None = None,
) -> Array:
    """An array over memory. The caller has checked the bounds; numpy checks them again."""
    np = numpy(layout.name)
    shape = tuple(shape)
    try:
        if 0 in shape:
            # No element is accessed, but numpy would still check lengths and strides.
            made: Array = np.empty(shape, dtype)
            made.flags.writeable = not memory.readonly
            return made
        # Through frombuffer, which locks the memory: for a memoryview, ndarray keeps only the object that
        # owns the memory, and a loan would not count the view.
        made = np.ndarray(shape, dtype, np.frombuffer(memory, np.uint8), strides=strides)
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise layout.bad(f"numpy cannot create an array of shape {shape} from it: {error}") from error
    return made


def check_u32(layout: Layout, **values: int) -> None:
    """Raises BadValueError for a value that is not a u32."""
    for name, value in values.items():
        if not 0 <= value <= _U32_MAX:
            raise layout.bad(f"{name} is {value}, and must be 0 to {_U32_MAX}")


def check_reach(layout: Layout, needed: int, data_len: int, why: str) -> None:
    """Raises BadValueError if elements reach beyond the data."""
    if needed > data_len:
        raise layout.bad(f"data_len is {data_len}, and {why} take {needed} bytes")


def check_rows(
    layout: Layout, height: int, row: int, row_stride: int, data_len: int, why: str
) -> None:
    """Raises BadValueError if rows of so many bytes overlap, or reach beyond the data."""
    if row > row_stride:
        raise layout.bad(f"row_stride is {row_stride}, but a row takes {row} bytes")
    needed = (height - 1) * row_stride + row if height else 0
    check_reach(layout, needed, data_len, f"{height} rows of {why} every {row_stride}")


def stamp_to(timestamp_ns: int, message: Any) -> None:
    """Sets the field `timestamp` of a Foxglove message; leaves it unset for 0."""
    if timestamp_ns:
        message.timestamp.seconds, message.timestamp.nanos = divmod(timestamp_ns, 10**9)


def stamp_of(layout: Layout, message: Any) -> int:
    """The field `timestamp` of a Foxglove message in ns; 0 if it is unset."""
    if not message.HasField("timestamp"):
        return 0
    stamp = int(message.timestamp.seconds) * 10**9 + int(message.timestamp.nanos)
    if not -_I64_MAX - 1 <= stamp <= _I64_MAX:
        raise layout.bad(f"timestamp is {message.timestamp.seconds} s, which does not fit into i64 ns")
    return stamp
