"""``rnet.msgs.Tensor``: an array of numbers of any shape, sent and read without encoding it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _plain

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

    from .. import Publisher
    from ._plain import Array

__all__ = ["Tensor"]

#: Kinds of numbers as in DLPack, by their letter in numpy.
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT = 4
#: Their numpy letters and bit widths. numpy lacks bfloat: its bits are shown as u16.
_NUMPY: dict[int, tuple[str, tuple[int, ...]]] = {
    0: ("i", (8, 16, 32, 64)),
    1: ("u", (8, 16, 32, 64)),
    2: ("f", (16, 32, 64)),
    _BFLOAT: ("u", (16,)),
    5: ("c", (64, 128)),
    6: ("b", (8,)),
}
_NAMES = {0: "int", 1: "uint", 2: "float", _BFLOAT: "bfloat", 5: "complex", 6: "bool"}
NDIM_MAX = 8
_I64_MAX = (1 << 63) - 1


class Tensor(_plain.PlainMessage):
    """An array of numbers: input or output of a neural network, a depth map, a cost grid.

    ``node.subscriber("/features", Tensor)`` returns tensors whose `array` reads the message in place;
    ``publisher.send(Tensor.from_array(array))`` copies the array once, to where it is read.
    """

    _layout = _plain.Layout(
        "rnet.msgs.Tensor",
        *_plain.COMMON,
        ("dtype_code", "u8", 1),
        ("dtype_bits", "u8", 1),
        ("dtype_lanes", "u16", 1),
        ("ndim", "u32", 1),
        ("shape", "i64", NDIM_MAX),
        ("strides", "i64", NDIM_MAX),
        ("_reserved1", "reserved", 24),
    )

    #: Kind of number as in DLPack: 0 signed, 1 unsigned, 2 float, 4 bfloat, 5 complex, 6 bool.
    dtype_code: int
    #: Bits of one number: 8, 16, 32, 64 or 128.
    dtype_bits: int
    #: Elements along each dimension.
    shape: tuple[int, ...]
    #: Bytes from one element to the next along each dimension.
    strides: tuple[int, ...]

    def __init__(
        self,
        *,
        dtype_code: int,
        dtype_bits: int,
        shape: Sequence[int],
        data: Buffer,
        strides: Sequence[int] | None = None,
        frame_id: str = "",
        timestamp_ns: int = 0,
    ) -> None:
        """A tensor of the bytes of its elements, which are copied when it is sent.

        Args:
            dtype_code: kind of number as in DLPack: 0 signed, 1 unsigned, 2 float, 4 bfloat, 5
                complex, 6 bool.
            dtype_bits: bits of one number: 8, 16, 32, 64 or 128.
            shape: elements along each dimension, at most 8 of these.
            data: the elements.
            strides: bytes from one element to the next along each dimension, 0 or more; without
                them the last dimension is that whose elements follow each other.
            frame_id: frame in which it is given; empty where that means nothing.
            timestamp_ns: when what it describes was so, in ns since 1970 UTC; 0: not known.

        Raises BadValueError if that does not fit together.
        """
        self.frame_id, self.timestamp_ns = frame_id, timestamp_ns
        self.dtype_code, self.dtype_bits, self.shape = dtype_code, dtype_bits, tuple(shape)
        self.strides = _packed(self.shape, dtype_bits // 8) if strides is None else tuple(strides)
        self._array = None
        self._data = _plain.bytes_of(self._layout, data)
        self._check(len(self._data))

    @classmethod
    def from_array(
        cls,
        array: Any,
        *,
        dtype: str | None = None,
        frame_id: str = "",
        timestamp_ns: int = 0,
    ) -> Self:
        """Creates a tensor from an array, which is copied when it is sent; do not change it until then.

        Args:
            array: of integers, floats, complex numbers or bools, with at most 8 dimensions. From
                numpy, or from any library whose arrays numpy can access (torch on the CPU, the
                buffer protocol). It may be a slice of another array, transposed or flipped.
            dtype: "bfloat16" if the array is u16 with the bits of bfloats, for which numpy has no
                type: ``Tensor.from_array(t.view(torch.uint16), dtype="bfloat16")``.
            frame_id, timestamp_ns: as in `Tensor`.

        Raises BadValueError for other arrays; MissingNumpyError.
        """
        numbers = _plain.as_array(cls._layout, array)
        if numbers.dtype.name == "bfloat16":
            # Other packages add this type to numpy.
            numbers, dtype = numbers.view("u2"), "bfloat16"
        made = cls._empty(numbers.dtype, dtype, numbers.shape, frame_id, timestamp_ns)
        _plain.set_array(made, numbers)
        made._check(made._data_len())
        return made

    @classmethod
    def loan(
        cls,
        publisher: Publisher[Tensor],
        shape: Sequence[int],
        dtype: Any,
        *,
        frame_id: str = "",
        timestamp_ns: int = 0,
    ) -> _plain.MessageLoan[Tensor]:
        """A tensor to be filled in the memory that subscribers read, without copying.

        ``with Tensor.loan(pub, (480, 640), "f4") as tensor: tensor.array[:] = ...`` sends it at the
        end of the block. Its initial bytes are those of an earlier message. The dtype is a
        numpy dtype, or "bfloat16", for which `array` is u16.

        Raises BadValueError; MissingNumpyError; errors of `Publisher.loan` when the block begins, and of
        `Publisher.send` when it ends.
        """
        bfloat = dtype if isinstance(dtype, str) and dtype == "bfloat16" else None
        number = _plain.numpy("Tensor.loan").dtype("u2" if bfloat else dtype)

        def make() -> Tensor:
            return cls._empty(number, bfloat, tuple(shape), frame_id, timestamp_ns)

        return _plain.MessageLoan(publisher, make, math.prod(shape) * int(number.itemsize))

    @classmethod
    def _empty(
        cls,
        number: Any,
        dtype: str | None,
        shape: tuple[int, ...],
        frame_id: str,
        timestamp_ns: int,
    ) -> Self:
        code = _CODES.get(number.kind)
        if code is None or 8 * number.itemsize not in _NUMPY[code][1] or number.byteorder == ">":
            raise cls._layout.bad(
                f"the array has elements of {number}: a tensor takes integers of 8 to 64 bits, floats of 16 "
                "to 64, complex numbers of 64 or 128, or bools, little endian"
            )
        if dtype is not None:
            if dtype != "bfloat16" or number != "u2":
                raise cls._layout.bad(
                    f"dtype is {dtype!r} for an array of {number}: pass it only for bfloat16 in an array of "
                    "uint16"
                )
            code = _BFLOAT
        made = cls.__new__(cls)
        made.frame_id, made.timestamp_ns = frame_id, timestamp_ns
        made.dtype_code, made.dtype_bits, made.shape = code, 8 * int(number.itemsize), shape
        made.strides = _packed(shape, int(number.itemsize))
        made._data = made._array = None
        return made

    @property
    def dtype(self) -> str:
        """The element type: "float32", "bfloat16", "bool"."""
        if (self.dtype_code, self.dtype_bits) == (6, 8):
            return "bool"
        return f"{_NAMES[self.dtype_code]}{self.dtype_bits}"

    @property
    def array(self) -> Array:
        """The elements as an array.

        For a received tensor it is a read-only view of the message, for a lent one a view to be filled;
        the memory stays valid as long as the array exists. For bfloats, which numpy does not have, it
        contains the bits as u16. Raises MissingNumpyError.
        """
        if self._array is not None:
            return self._array
        dtype = f"<{_NUMPY[self.dtype_code][0]}{self.dtype_bits // 8}"
        return _plain.view(self._layout, self._memory(), self.shape, dtype, self.strides)

    def _take(self, values: dict[str, Any]) -> None:
        layout, ndim, lanes = self._layout, values["ndim"], values["dtype_lanes"]
        if ndim > NDIM_MAX:
            raise layout.bad(f"ndim is {ndim}, and must be 0 to {NDIM_MAX}")
        if lanes != 1:
            raise layout.bad(f"dtype_lanes is {lanes}, and must be 1")
        self.dtype_code, self.dtype_bits = values["dtype_code"], values["dtype_bits"]
        self.shape, self.strides = values["shape"][:ndim], values["strides"][:ndim]

    def _put(self) -> dict[str, Any]:
        fill = (0,) * (NDIM_MAX - len(self.shape))
        return {
            "dtype_code": self.dtype_code,
            "dtype_bits": self.dtype_bits,
            "dtype_lanes": 1,
            "ndim": len(self.shape),
            "shape": (*self.shape, *fill),
            "strides": (*self.strides, *fill),
        }

    def _check(self, data_len: int) -> None:
        layout, shape, strides = self._layout, self.shape, self.strides
        if self.dtype_bits not in _NUMPY.get(self.dtype_code, ("", ()))[1]:
            raise layout.bad(
                f"dtype_code is {self.dtype_code} and dtype_bits {self.dtype_bits}: this number type does "
                "not exist"
            )
        if len(shape) > NDIM_MAX or len(strides) != len(shape):
            raise layout.bad(
                f"ndim is {len(shape)}, with {len(strides)} strides; at most {NDIM_MAX} of both"
            )
        for name, values in (("shape", shape), ("strides", strides)):
            for at, value in enumerate(values):
                if not 0 <= value <= _I64_MAX:
                    raise layout.bad(f"{name}[{at}] is {value}, and must be 0 to {_I64_MAX}")
        item = self.dtype_bits // 8
        counted = item * math.prod(max(1, length) for length in shape)
        if counted > _I64_MAX:
            raise layout.bad(f"shape is {shape}: the elements take more than {_I64_MAX} bytes")
        if 0 not in shape:
            reach = ((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
            why = f"elements of {item} bytes, of shape {shape} and strides {strides},"
            _plain.check_reach(layout, sum(reach) + item, data_len, why)

    def __repr__(self) -> str:
        return (
            f"<rnet.msgs.Tensor: {self.dtype} of shape {self.shape}, "
            f"frame_id {self.frame_id!r}, timestamp_ns {self.timestamp_ns}>"
        )


def _packed(shape: tuple[int, ...], item: int) -> tuple[int, ...]:
    """The strides of elements that follow each other, the last dimension first."""
    strides = []
    for length in reversed(shape):
        strides.append(item)
        item *= max(1, length)
    return tuple(reversed(strides))
