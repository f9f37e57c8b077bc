"""Python objects for state values other than a number or a text.

``node.state`` itself is compiled; this module chooses the class of a message. A message is stored
with the description of its type, so every process can read it, as an object of

- the class that this node has used for a type of that name, if that class can read it (the rules are
  those of topics, docs/design/types.md); else, for a protobuf message, of
- the class of :mod:`rnet.msgs`, or of loaded files, if their definition is the same, or else a class
  created from the description; and for a plain type of
- the class of :mod:`rnet.msgs` for its large messages, a numpy array or number for unnamed numpy
  types, or a ``ctypes.Structure`` created from the description.
"""

from __future__ import annotations

import ctypes
import enum
import importlib
import json
import math
import sys
from typing import Any, Final, Literal

from . import builtin, pools, protos
from .errors import BadValueError, MissingNumpyError

__all__ = ["DELETE", "message_class", "other_value", "plain_class", "plain_number", "protobuf_class"]

#: Deepest nesting of dicts and lists that can be written: readers in other languages have limits, too.
MAX_DEPTH = 100


class Delete(enum.Enum):
    """The type of :data:`rnet.state.DELETE`."""

    DELETE = "delete"

    def __repr__(self) -> str:
        return "rnet.state.DELETE"


#: In place of a value: deletes the key, as a last will or as the result of an update.
DELETE: Final[Literal[Delete.DELETE]] = Delete.DELETE


def message_class(value: Any) -> Any:
    """The type of a message, as ``Node.publisher`` accepts it; None for other objects."""
    cls = type(value)
    if pools.is_message_class(cls) or hasattr(cls, "__rnet_codec__"):
        return cls
    if isinstance(value, ctypes.Structure):
        return cls
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(value, numpy.ndarray):
            return numpy.dtype((value.dtype, value.shape))
        if isinstance(value, numpy.void):
            return value.dtype
    return None


def plain_number(value: Any) -> Any:
    """The Python number for a numpy scalar; None for other objects."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        number = value.item()
        if isinstance(number, (bool, int, float, str, bytes)):
            return number
    return None


def other_value(key: str, value: Any) -> tuple[str, Any]:
    """The kind of value of an object that is not a scalar: "json" with its text, "set" or "bytes" with itself, "message"
    with its type, or "number" with that. Raises TypeError or BadValueError for an object that cannot be stored at ``key``.
    """
    if value is None or isinstance(value, (dict, list, tuple)):
        try:
            return "json", json_text(value)
        except TypeError as error:
            raise TypeError(f"{key}: {error}") from None
        except ValueError as error:
            raise BadValueError(f"bad value for {key}: {error}", what=key, why=str(error)) from None
    if isinstance(value, (set, frozenset)):
        return "set", value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "bytes", value
    if (cls := message_class(value)) is not None:
        return "message", cls
    if (number := plain_number(value)) is not None:
        return "number", number
    raise TypeError(
        f"{key} cannot hold a {_name_of(value)}: a value must be a bool, int, float, str or bytes, JSON "
        "(dict, list, None), a set of these, a message (protobuf, ctypes.Structure) or a numpy array or "
        "number"
    )


def _name_of(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def json_text(value: Any) -> str:
    """The JSON of dicts with str keys, lists, tuples (which become lists), str, int, finite float, bool and None.

    Raises TypeError or ValueError, with the place, for a value that would be read back differently:
    ``json.dumps`` alone writes ``NaN``, and converts ``{1: 2}`` to ``{"1": 2}``.
    """
    _check(value, ())
    # Another thread may change the value meanwhile.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _check(value: Any, path: tuple[str | int, ...]) -> None:
    if value is None or isinstance(value, (bool, int)):
        return
    if isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{_place(path)} is {value}, which JSON cannot represent")
    elif not isinstance(value, (dict, list, tuple)):
        raise TypeError(
            f"{_place(path)} is a {_name_of(value)}, which JSON cannot represent: dicts and lists hold str, "
            "int, float, bool, None, dicts and lists"
        )
    elif len(path) >= MAX_DEPTH:
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep, or contains itself")
    elif isinstance(value, dict):
        for key, item in list(value.items()):
            if not isinstance(key, str):
                raise TypeError(f"{_place(path)} has the key {key!r}: keys of JSON objects must be str")
            _check_text(key, path)
            _check(item, (*path, key))
    else:
        for at, item in enumerate(list(value)):
            _check(item, (*path, at))


def _place(path: tuple[str | int, ...]) -> str:
    """A place in a value in Python notation: ["steps"][3]."""
    return "".join(f"[{json.dumps(step, ensure_ascii=False)}]" for step in path) or "the value"


def _check_text(text: str, path: tuple[str | int, ...]) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{_place(path)} is a str with a lone surrogate, which is not valid text") from None


def protobuf_class(descriptor_set: bytes, name: str) -> Any:
    """The class for the description of a protobuf message."""
    return protos.load_descriptor_set(descriptor_set)[name]


def plain_class(described: str) -> Any:
    """The class for the description of a plain type."""
    layout = json.loads(described)
    if layout["kind"] != "plain":
        return bytes
    own = layout["name"].removeprefix("rnet.msgs.")
    if layout.get("tail"):
        if own in builtin.PLAIN:
            return getattr(importlib.import_module(builtin.PLAIN[own], "rnet.msgs"), own)
        return bytes
    if layout["name"] in ("record", "value"):
        # The name that rnet.codec gives to a dtype without a name.
        return _dtype(layout)
    return _structure(layout)


def _dtype(layout: dict[str, Any]) -> Any:
    try:
        import numpy
    except ImportError:
        raise MissingNumpyError(
            "the value is a numpy array or record, but numpy is not installed: pip install numpy",
            what="the value",
        ) from None
    fields = layout["fields"]
    if layout["name"] == "value" and len(fields) == 1:
        return numpy.dtype(_numpy_type(fields[0]["type"]))
    return numpy.dtype(_numpy_struct(layout))


def _numpy_struct(layout: dict[str, Any]) -> Any:
    return {
        "names": [field["name"] for field in layout["fields"]],
        "formats": [_numpy_type(field["type"]) for field in layout["fields"]],
        "offsets": [field["offset"] for field in layout["fields"]],
        "itemsize": layout["size"],
        "aligned": layout["align"] > 1,
    }


def _numpy_type(of: Any) -> Any:
    if isinstance(of, str):
        return "?" if of == "bool" else f"<{of[0]}{int(of[1:]) // 8}"
    if "struct" in of:
        return _numpy_struct(of["struct"])
    return (_numpy_type(of["array"]["of"]), (of["array"]["len"],))


#: ctypes numbers by their names in descriptions.
_NUMBERS: dict[str, Any] = {
    "bool": ctypes.c_bool,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}


def _structure(layout: dict[str, Any]) -> type[ctypes.Structure]:
    """A structure of the same layout. Gaps are separate fields, so that offsets are those of the
    description and not those of a compiler. Written back, it has the original type.
    """
    fields: list[tuple[str, Any]] = []
    at = 0
    for field in sorted(layout["fields"], key=lambda field: int(field["offset"])):
        _fill(fields, at, field["offset"])
        made = _ctypes_type(field["type"])
        fields.append((field["name"], made))
        at = field["offset"] + ctypes.sizeof(made)
    _fill(fields, at, layout["size"])
    described = {"kind": "plain", **layout}
    body = {
        "__doc__": f"The plain type {layout['name']}, created from its published description.",
        "__rnet_describe__": staticmethod(lambda: described),
        "_pack_": 1,
        "_layout_": "ms",
        "_fields_": fields,
    }
    return type(layout["name"].rpartition(".")[2] or "Plain", (ctypes.Structure,), body)


def _fill(fields: list[tuple[str, Any]], at: int, until: int) -> None:
    if until > at:
        fields.append((f"_gap{at}", ctypes.c_uint8 * (until - at)))


def _ctypes_type(of: Any) -> Any:
    if isinstance(of, str):
        return _NUMBERS[of]
    if "struct" in of:
        return _structure(of["struct"])
    return _ctypes_type(of["array"]["of"]) * of["array"]["len"]
