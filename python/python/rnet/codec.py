"""Message types: protobuf messages, ``ctypes.Structure`` classes and numpy dtypes, and their
descriptions.

A description contains the name, size and fields of a type. It is sent with the topic, and publisher
and subscriber compare their descriptions when they connect, in any language: a Rust struct with
``#[derive(rnet::Plain)]``, a ctypes structure and a numpy dtype of the same layout are one type.

- The name of a ctypes structure is that of its class, or its attribute ``_rnet_name_``.
- A numpy dtype has no name: :func:`named` gives it one.
- Fields are integers and floats of 8 to 64 bits (floats 32 and 64), bools, arrays of these, and
  nested structures; little endian. Use numbers for characters: ``c_uint8``, ``"u1"``.

A protobuf message class, from :mod:`rnet.msgs`, :func:`rnet.load_proto` or protoc, is described by its
descriptor set; for a built-in message the name is enough (``"foxglove.LaserScan"``). Fields that only
one side has are allowed; see docs/design/types.md.

With ``bytes`` the topic is raw, and each received message is a copy as ``bytes``, the fastest option
for short messages.

A received message is an object of the type. ctypes cannot access read-only memory, so a structure
is a copy of the message; with numpy it is a read-only view of the message in place.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import builtin, pools

if TYPE_CHECKING:
    import numpy as np

    from . import Sample

__all__ = ["Codec", "codec", "describe", "dtype_of", "name_of", "named_dtype"]

_METADATA_KEY = "rnet_name"


@dataclass(frozen=True)
class Codec:
    """Converts objects of one type to messages, and messages to objects."""

    #: The description: JSON, or for a protobuf message its descriptor set and its full name.
    described: str | tuple[bytes, str]
    #: The class that sent objects must have; None if ``encode`` checks them.
    cls: type | None
    #: Converts a sent object to an object with the buffer protocol; None if it already is one.
    encode: Callable[[Any], Any] | None
    #: Converts a sample, or the bytes of a protobuf message, to an object of the type. None if the bytes are
    #: the object.
    decode: Callable[[Any], Any] | None
    #: The exception that ``decode`` raises for malformed bytes.
    raises: type[Exception] | None = None
    #: Sends an object by writing it to a loan, for classes that support that.
    send: Callable[[Any, Any], None] | None = None


def codec(message_type: Any) -> Codec:
    """The codec of a message type; raises TypeError for other objects."""
    if message_type is bytes:
        return Codec('{"kind":"raw"}', None, None, None)
    if isinstance(message_type, str):
        message_type = _by_name(message_type)
    if pools.is_message_class(message_type):
        return _protobuf_codec(message_type)
    if hasattr(message_type, "__rnet_codec__"):
        # Large plain messages, of rnet.msgs.
        made: Codec = message_type.__rnet_codec__()
        return made
    description = json.dumps(describe(message_type))
    if isinstance(message_type, type) and issubclass(message_type, ctypes.Structure):
        return Codec(description, message_type, None, message_type.from_buffer_copy)
    return _numpy_codec(description, _numpy_dtype(message_type))


def _by_name(name: str) -> Any:
    """The built-in message with a name, or the name itself if it names a numpy type."""
    message = builtin.named(name)
    if message is not None:
        return message
    if "." not in name and "/" not in name:
        try:
            if _numpy_dtype(name) is not None:
                return name
        except TypeError:
            pass  # not a numpy type either
        except ImportError:
            return name  # the caller that needs numpy reports that
    raise TypeError(
        f"{name!r} is not a built-in message of rnet.msgs or foxglove; for any other type, pass its class"
    )


def describe(message_type: Any) -> dict[str, Any]:
    """The description of a message type, as the tools show it."""
    if hasattr(message_type, "__rnet_describe__"):
        described: dict[str, Any] = message_type.__rnet_describe__()
        return described
    if isinstance(message_type, type) and issubclass(message_type, ctypes.Structure):
        return {"kind": "plain", **_ctypes_struct(message_type, message_type.__name__)}
    dtype = _numpy_dtype(message_type)
    if dtype is None:
        raise TypeError(
            f"{_shown(message_type)} is not a message type: use a protobuf message class, a "
            "ctypes.Structure class, a numpy dtype, bytes, or None for raw bytes read in place"
        )
    if dtype.names is not None:
        return {"kind": "plain", **_numpy_struct(dtype, _dtype_name(dtype))}
    # A number or an array of numbers is a structure of one field.
    field = {"name": "value", "offset": 0, "type": _numpy_field(dtype, "value")}
    name = _metadata_name(dtype) or "value"
    size = dtype.itemsize
    return {"kind": "plain", "name": name, "size": size, "align": 1, "fields": [field]}


def named_dtype(name: str, dtype: Any) -> np.dtype[Any]:
    """A numpy dtype with a name: ``POSE = rnet.types.named_dtype("Pose", [("x", "f8"), ("n", "u4")])``.

    A list of fields gets the layout of C, Rust and ctypes, with alignment gaps; a ``numpy.dtype``
    keeps its layout, in which numpy has no gaps without ``align=True``. Use the result like any other
    dtype, also in the fields of another one. The default name of a structured dtype is "record".
    """
    import numpy

    # numpy's type stubs do not accept a dtype as the first argument together with metadata.
    make: Any = numpy.dtype
    plain = dtype if isinstance(dtype, numpy.dtype) else make(dtype, align=True)
    result: np.dtype[Any] = make(plain, align=plain.isalignedstruct, metadata={_METADATA_KEY: name})
    return result


def _shown(thing: Any) -> str:
    """A class unchanged; for other objects a description, because an empty message prints nothing."""
    return repr(thing) if isinstance(thing, type) else f"an object of {name_of(type(thing))}"


def name_of(message_class: type) -> str:
    """The name of a type in errors."""
    if pools.is_message_class(message_class):
        name: str = message_class.DESCRIPTOR.full_name  # type: ignore[attr-defined]
        return name
    return message_class.__name__


def _protobuf_codec(cls: Any) -> Codec:
    from google.protobuf.message import DecodeError

    described = (pools.descriptor_set(cls), cls.DESCRIPTOR.full_name)
    return Codec(described, cls, cls.SerializeToString, cls.FromString, DecodeError)


# -- ctypes ---------------------------------------------------------------------------------------

_NUMBERS: dict[type, str] = {
    ctypes.c_bool: "bool",
    ctypes.c_float: "f32",
    ctypes.c_double: "f64",
}
for _signed in (ctypes.c_byte, ctypes.c_short, ctypes.c_int, ctypes.c_long, ctypes.c_longlong):
    _NUMBERS[_signed] = f"i{8 * ctypes.sizeof(_signed)}"
for _unsigned in (
    ctypes.c_ubyte,
    ctypes.c_ushort,
    ctypes.c_uint,
    ctypes.c_ulong,
    ctypes.c_ulonglong,
):
    _NUMBERS[_unsigned] = f"u{8 * ctypes.sizeof(_unsigned)}"

_HINTS: dict[type, str] = {
    ctypes.c_char: "use c_uint8, or an array of them for text",
    ctypes.c_wchar: "use an array of c_uint8 with UTF-8 in it",
    ctypes.c_char_p: "a pointer is meaningless in another process",
    ctypes.c_wchar_p: "a pointer is meaningless in another process",
    ctypes.c_void_p: "a pointer is meaningless in another process",
    ctypes.c_longdouble: "its layout differs between machines; use c_double",
}


def _ctypes_struct(cls: type[ctypes.Structure], path: str) -> dict[str, Any]:
    if issubclass(cls, ctypes.BigEndianStructure) and sys.byteorder == "little":
        raise TypeError(f"{path}: it is big endian; messages are little endian")
    fields = []
    for name, field_type, *bits in _ctypes_fields(cls):
        where = f"{path}.{name}"
        if bits:
            raise TypeError(f"{where}: the layout of bit fields depends on the compiler; use numbers")
        offset = getattr(cls, name).offset
        fields.append({"name": name, "offset": offset, "type": _ctypes_field(field_type, where)})
    return {
        "name": str(getattr(cls, "_rnet_name_", cls.__name__)),
        "size": ctypes.sizeof(cls),
        "align": ctypes.alignment(cls),
        "fields": fields,
    }


def _ctypes_fields(cls: type[ctypes.Structure]) -> list[tuple[Any, ...]]:
    """The fields of a structure in memory order: those of its bases first."""
    fields: list[tuple[Any, ...]] = []
    for base in reversed(cls.__mro__):
        fields.extend(base.__dict__.get("_fields_", ()))
    return fields


def _ctypes_field(field_type: Any, where: str) -> Any:
    if field_type in _NUMBERS:
        return _NUMBERS[field_type]
    if isinstance(field_type, type):
        if issubclass(field_type, ctypes.Structure):
            return {"struct": _ctypes_struct(field_type, where)}
        if issubclass(field_type, ctypes.Array):
            of = _ctypes_field(field_type._type_, where)
            return {"array": {"of": of, "len": field_type._length_}}
        if issubclass(field_type, ctypes.Union):
            raise TypeError(f"{where}: a union does not tell which of its fields is valid; use a structure")
    name = getattr(field_type, "__name__", repr(field_type))
    hint = _HINTS.get(field_type, "use numbers, bools, arrays and structures of them")
    raise TypeError(f"{where}: {name} cannot be in a message: {hint}")


def dtype_of(message_type: Any) -> np.dtype[Any]:
    """The numpy dtype of a message type, with the layout of the type."""
    import numpy

    if isinstance(message_type, type) and issubclass(message_type, ctypes.Structure):
        made: np.dtype[Any] = numpy.dtype(_ctypes_dtype(message_type))
        return made
    dtype = _numpy_dtype(message_type)
    if dtype is None:
        raise TypeError(f"{message_type!r} has no numpy dtype")
    return dtype


def _ctypes_dtype(field_type: Any) -> Any:
    """The argument for numpy.dtype that results in the same layout; numpy itself ignores base classes."""
    if issubclass(field_type, ctypes.Structure):
        fields = _ctypes_fields(field_type)
        return {
            "names": [name for name, *_ in fields],
            "formats": [_ctypes_dtype(of) for _, of, *_ in fields],
            "offsets": [getattr(field_type, name).offset for name, *_ in fields],
            "itemsize": ctypes.sizeof(field_type),
        }
    if issubclass(field_type, ctypes.Array):
        return (_ctypes_dtype(field_type._type_), (field_type._length_,))
    return field_type


# -- numpy ----------------------------------------------------------------------------------------


def _numpy_dtype(message_type: Any) -> np.dtype[Any] | None:
    """The dtype for an argument, if numpy is installed and accepts it."""
    if "numpy" not in sys.modules and not isinstance(message_type, (str, list)):
        # Without an import of numpy, a dtype cannot exist; and rnet works without numpy.
        return None
    import numpy

    meant = isinstance(message_type, (numpy.dtype, str, list)) or (
        isinstance(message_type, type) and issubclass(message_type, numpy.generic)
    )
    if not meant:
        return None
    dtype: np.dtype[Any] = numpy.dtype(message_type)
    return dtype


def _metadata_name(dtype: np.dtype[Any]) -> str | None:
    metadata: Any = dtype.metadata or {}
    name = metadata.get(_METADATA_KEY)
    return None if name is None else str(name)


def _dtype_name(dtype: np.dtype[Any]) -> str:
    return _metadata_name(dtype) or "record"


def _numpy_struct(dtype: np.dtype[Any], path: str) -> dict[str, Any]:
    assert dtype.fields is not None and dtype.names is not None
    fields = []
    for name in dtype.names:
        field_type, offset = dtype.fields[name][:2]
        of = _numpy_field(field_type, f"{path}.{name}")
        fields.append({"name": name, "offset": offset, "type": of})
    align = dtype.alignment if dtype.isalignedstruct else 1
    return {"name": _dtype_name(dtype), "size": dtype.itemsize, "align": align, "fields": fields}


def _numpy_field(dtype: np.dtype[Any], where: str) -> Any:
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        of = _numpy_field(base, where)
        for length in reversed(shape):
            of = {"array": {"of": of, "len": length}}
        return of
    if dtype.names is not None:
        return {"struct": _numpy_struct(dtype, where)}
    if dtype.byteorder == ">" or (dtype.byteorder == "=" and sys.byteorder == "big"):
        raise TypeError(f"{where}: {dtype} is big endian; messages are little endian")
    if dtype.kind == "b":
        return "bool"
    bits = 8 * dtype.itemsize
    if (dtype.kind in "iu" and bits in (8, 16, 32, 64)) or (dtype.kind == "f" and bits in (32, 64)):
        return f"{dtype.kind}{bits}"
    raise TypeError(
        f"{where}: {dtype} cannot be in a message: use integers of 8 to 64 bits, floats of 32 or "
        "64 bits, bools, arrays and structures of them"
    )


def _numpy_codec(description: str, dtype: np.dtype[Any] | None) -> Codec:
    import numpy

    from .dtype_encoder import encoder

    assert dtype is not None  # or `describe` would have raised
    base, shape = dtype.subdtype or (dtype, ())
    is_struct = dtype.names is not None

    def decode(sample: Sample) -> Any:
        # numpy's type stubs list classes where numpy accepts the buffer protocol.
        memory: Any = sample
        view: Any = numpy.ndarray(shape, base, memory)
        # A record behaves like a named tuple; it is a view, like an array.
        return view[()] if is_struct or shape == () else view

    return Codec(description, None, encoder(dtype), decode)
