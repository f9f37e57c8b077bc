"""Arrays whose rows are messages, for ``Subscriber.recv_many`` and ``Publisher.send_many``."""

from __future__ import annotations

import ctypes
import math
import re
from typing import TYPE_CHECKING, Any

from ._numpy import numpy
from .errors import BadValueError
from .codec import dtype_of

if TYPE_CHECKING:
    from types import ModuleType

    import numpy as np

__all__ = ["Rows"]

#: Codes of a buffer format that stand for Python objects or ctypes pointers. ``Zf``, ``Zd`` and ``Zg`` are
#: numpy's complex numbers.
_ADDRESS = re.compile("[OPz&X]|Z(?![fdg])")

#: Without ``max``, an array holds this many bytes of messages, or one message. It is less than the size (128
#: KiB) from which malloc gets memory from the kernel for each call, which costs 10 µs.
DEFAULT_ARRAY_LEN_BYTES = 64 << 10


class Rows:
    """The form of the arrays of one topic."""

    def __init__(self, message_type: Any, topic: str) -> None:
        #: None for raw bytes.
        self._type = None if message_type is bytes else message_type
        self._topic = topic
        #: The last dtype requested on a topic of raw bytes, and the row made from it.
        self._cached_row: tuple[Any, _Row] | None = None

    def prepare_receive(
        self, max: int | None, out: Any, dtype: Any, stamps: bool
    ) -> tuple[np.ndarray[Any, Any], int, int, bool, np.ndarray[Any, Any] | None]:
        """An array to be filled, rows to fill at most, bytes of a row, whether messages of another
        length fit (those of a type that grew), an array for stamps.
        """
        np = numpy("recv_many")
        if max is not None and max < 1:
            raise _bad(f"max is {max}, and must be 1 or more")
        row = self._row(np, dtype, out)
        if out is None:
            rows = max or row.default_rows
            array = np.empty((rows, *row.shape), row.base)
        else:
            array = _checked(np, out, row)
            rows = len(out) if max is None else max
            if not 0 < rows <= len(out):
                raise _bad(f"out has {len(out)} rows, and max is {max}")
        times = np.empty(rows, np.int64) if stamps else None
        return array, rows, row.len_bytes, self._type is not None, times

    def finish_receive(self, array: Any, count: int, out: Any, stamps: Any) -> Any:
        """The arrays that the user gets, after the first rows were filled."""
        if out is not None:
            array = array[:count]
        elif len(array) > count:
            # The array is not shared yet, so it can shrink in place: the memory is returned.
            array.resize((count, *array.shape[1:]), refcheck=False)
        if stamps is None:
            return array
        if len(stamps) > count:
            stamps.resize(count, refcheck=False)
        return array, stamps

    def prepare_send(self, messages: Any) -> tuple[Any, int, int]:
        """An object with the buffer protocol, its rows, and the bytes of a row."""
        if isinstance(messages, ctypes.Array):
            return self._prepare_ctypes(messages)
        if self._type is None:
            return self._prepare_raw(messages)
        np = numpy("send_many")
        row = self._row(np, None, None)
        if not isinstance(messages, np.ndarray):
            raise TypeError(
                f"send_many on {self._topic} takes a numpy array of {row.base}, not a "
                f"{type(messages).__name__}; send() takes one message"
            )
        if messages.dtype != row.base or messages.shape[1:] != row.shape or messages.ndim == 0:
            raise TypeError(
                f"cannot send {messages.dtype} of shape {messages.shape} with send_many: the messages of "
                f"{self._topic} are {row.base} of shape {row.shape}"
            )
        return messages, len(messages), row.len_bytes

    def _prepare_ctypes(self, messages: ctypes.Array[Any]) -> tuple[Any, int, int]:
        if self._type is not None and messages._type_ is not self._type:
            raise TypeError(
                f"cannot send an array of {messages._type_.__name__} here: "
                f"the messages of {self._topic} are {self._type!r}"
            )
        _refuse_addresses(memoryview(messages).format)
        return messages, len(messages), ctypes.sizeof(messages._type_)

    def _prepare_raw(self, messages: Any) -> tuple[Any, int, int]:
        if isinstance(messages, (bytes, bytearray, str)):
            raise TypeError(
                f"send_many takes an array whose rows are messages, not one {type(messages).__name__}: use "
                "send(), or an array of two dimensions"
            )
        try:
            view = memoryview(messages)
        except TypeError:
            raise TypeError(
                f"send_many takes an array whose rows are messages (numpy, memoryview, ctypes), "
                f"not a {type(messages).__name__}"
            ) from None
        except ValueError as error:  # raised by numpy for a dtype that the buffer protocol lacks
            raise TypeError(f"cannot send this {type(messages).__name__}: {error}") from None
        if view.ndim == 0 or view.shape is None:
            raise TypeError("send_many takes an array of one dimension or more: its rows are sent")
        _refuse_addresses(view.format)
        return messages, view.shape[0], view.itemsize * math.prod(view.shape[1:])

    def _row(self, np: ModuleType, dtype: Any, out: Any) -> _Row:
        if self._type is not None:
            if self._cached_row is None:
                self._cached_row = (None, _Row(np, dtype_of(self._type)))
            row = self._cached_row[1]
            if dtype is not None and np.dtype(dtype) != row.dtype:
                raise TypeError(
                    f"the messages of {self._topic} are {row.dtype}, not {np.dtype(dtype)}: omit dtype, "
                    "which is for raw topics"
                )
            return row
        if dtype is None and isinstance(out, np.ndarray):
            dtype = np.dtype((out.dtype, out.shape[1:]))
        if dtype is None:
            raise TypeError(
                f"{self._topic} is subscribed as raw bytes: pass their dtype, recv_many(dtype=...), or "
                "subscribe with a type"
            )
        # The argument may be a list, which the caller can change.
        dtype = np.dtype(dtype)
        if self._cached_row is None or self._cached_row[0] != dtype:
            self._cached_row = (dtype, _Row(np, dtype))
        return self._cached_row[1]


class _Row:
    """One message in an array."""

    def __init__(self, np: ModuleType, dtype: np.dtype[Any]) -> None:
        base, shape = dtype.subdtype or (dtype, ())
        self.dtype, self.base, self.shape = dtype, base, shape
        self.len_bytes = dtype.itemsize
        if dtype.hasobject:
            raise TypeError(f"{dtype} contains Python objects, which messages cannot carry")
        if self.len_bytes == 0:
            raise TypeError(f"{dtype} has a size of 0 bytes, so messages cannot have it")
        try:
            memoryview(np.empty((1, *shape), base))
        except (ValueError, BufferError, NotImplementedError) as error:
            raise TypeError(
                f"{dtype} cannot be filled from outside numpy ({error}): use integers, and convert the "
                "result with view()"
            ) from None
        self.default_rows = max(1, DEFAULT_ARRAY_LEN_BYTES // self.len_bytes)


def _bad(why: str) -> BadValueError:
    return BadValueError(f"bad value for recv_many: {why}", what="recv_many", why=why)


def _refuse_addresses(format: str) -> None:
    """Raises TypeError for addresses. Formats of unions and packed structures contain only their size."""
    # For a structure, the format contains the field names between colons.
    if _ADDRESS.search(re.sub(":[^:]*:", ":", format)):
        raise TypeError(
            "cannot send Python objects or pointers: addresses are meaningless in another process"
        )


def _checked(np: ModuleType, out: Any, row: _Row) -> Any:
    """`out`, if it can be filled."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be a numpy array, not a {type(out).__name__}")
    if out.ndim == 0 or out.dtype != row.base or out.shape[1:] != row.shape:
        raise TypeError(
            f"out is {out.dtype} of shape {out.shape}, but the messages are {row.base} of shape "
            f"{row.shape}: use numpy.empty(n, {row.dtype})"
        )
    if not (out.flags.c_contiguous and out.flags.writeable):
        raise TypeError("out must be C-contiguous and writeable")
    return out
