"""Objects that may be sent as a message of a numpy dtype.

Only objects of the type: an array or scalar of the dtype, a tuple or dict of its fields, or a buffer
of exactly its length. numpy itself converts nearly every object: ``"7"`` and ``b"12"`` to a number,
``None`` to a NaN, and one number fills every field.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

__all__ = ["EncodeError", "encoder"]

#: Characters of the argument that an error shows.
_SHOWN_LEN = 60


class EncodeError(TypeError):
    """The reason why an object is not a message of a dtype. The handler of the error adds the destination."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"cannot send {what}: {why}")
        self.what, self.why = what, why


def encoder(dtype: np.dtype[Any]) -> Callable[[Any], Any]:
    """The function that converts a sent object to an object with the buffer protocol."""
    import numpy

    base, shape = dtype.subdtype or (dtype, ())
    one_row = (1, *shape)
    # The Python scalars with exactly this number type; numpy would convert others.
    scalar = {"float64": float, "bool": bool}.get(base.name) if shape == () else None
    fields = _record(dtype, "") if dtype.names is not None else None

    def encode(value: Any) -> Any:
        if isinstance(value, (numpy.ndarray, numpy.generic)):
            if value.dtype == base:
                if value.shape == shape:
                    return value
                if value.shape == one_row:
                    return numpy.ascontiguousarray(value)
            raise EncodeError(
                f"{value.dtype} of shape {value.shape}", f"the messages are {_described(dtype)}"
            )
        if fields is not None and isinstance(value, (tuple, dict)):
            return numpy.array(fields(value), dtype)
        if scalar is not None and type(value) is scalar:
            return numpy.array(value, dtype)
        return _buffer(dtype, value)

    return encode


def _described(dtype: np.dtype[Any]) -> str:
    base, shape = dtype.subdtype or (dtype, ())
    return f"{base} of shape {shape}" if shape or dtype.names is None else str(dtype)


def _shown(value: Any) -> str:
    """The argument, shortened to one line."""
    text = repr(value)
    shown = text if len(text) <= _SHOWN_LEN else f"{text[:_SHOWN_LEN]}..."
    return f"{shown} (a {type(value).__name__})"


def _buffer(dtype: np.dtype[Any], value: Any) -> memoryview:
    """The bytes of a whole message, as ``tobytes()`` returns them."""
    try:
        view = memoryview(value)
    except (TypeError, ValueError, BufferError):
        fields = "a tuple or dict of its fields, " if dtype.names else ""
        raise EncodeError(
            _shown(value),
            f"the messages are {_described(dtype)}; send an array or scalar of that dtype, {fields}"
            f"or a buffer of its {dtype.itemsize} bytes",
        ) from None
    if view.nbytes != dtype.itemsize:
        raise EncodeError(
            f"a {type(value).__name__} of {view.nbytes} bytes",
            f"the messages are {_described(dtype)}, which has {dtype.itemsize} bytes",
        )
    return view


# -- tuples and dicts -------------------------------------------------------------------------------

#: Converts a value to an object that numpy accepts for a field; raises EncodeError for an invalid value.
_Field = Callable[[Any], Any]


def _record(dtype: np.dtype[Any], path: str) -> _Field:
    """Converts a tuple or dict to a tuple."""
    names = dtype.names or ()
    assert dtype.fields is not None
    checks = [_field(dtype.fields[name][0], f"{path}.{name}" if path else name) for name in names]
    owner = path or "a message"

    def check(value: Any) -> Any:
        if isinstance(value, dict):
            if value.keys() != set(names):
                raise EncodeError(_shown(value), f"{owner} has the fields {names}")
            value = tuple(value[name] for name in names)
        elif len(value) != len(names):
            raise EncodeError(_shown(value), f"{owner} has the {len(names)} fields {names}")
        return tuple(check(part) for check, part in zip(checks, value, strict=True))

    return check


def _field(dtype: np.dtype[Any], path: str) -> _Field:
    if dtype.subdtype is not None:
        return _array(dtype, path)
    if dtype.names is not None:
        return _nested(dtype, path)
    return _number(dtype, path)


def _nested(dtype: np.dtype[Any], path: str) -> _Field:
    import numpy

    record = _record(dtype, path)

    def check(value: Any) -> Any:
        if isinstance(value, (tuple, dict)):
            return record(value)
        if isinstance(value, (numpy.ndarray, numpy.void)) and value.shape == ():
            if value.dtype == dtype:
                return value
        raise _encode_error(path, dtype, value)

    return check


def _array(dtype: np.dtype[Any], path: str) -> _Field:
    import numpy

    assert dtype.subdtype is not None
    base, shape = dtype.subdtype
    inner = shape[1:]
    part = _field(numpy.dtype((base, inner)) if inner else base, f"{path}[]")

    def check(value: Any) -> Any:
        if isinstance(value, numpy.ndarray) and value.shape == shape:
            if _fits_dtype(base, value):
                return value
        elif isinstance(value, (list, tuple)) and len(value) == shape[0]:
            made: Sequence[Any] = [part(element) for element in value]
            return made
        raise _encode_error(path, dtype, value)

    return check


def _fits_dtype(dtype: np.dtype[Any], array: np.ndarray[Any, Any]) -> bool:
    """Whether numpy can copy an array into a field without changing its numbers."""
    import numpy

    if dtype.kind in "iu" and array.dtype.kind in "iu":
        limits = numpy.iinfo(dtype)
        return not array.size or bool(limits.min <= array.min() and array.max() <= limits.max)
    if dtype.kind == "f" and array.dtype.kind in "iuf":
        try:
            with numpy.errstate(over="raise"):
                array.astype(dtype)
        except FloatingPointError:
            return False
        return True
    return bool(array.dtype == dtype)


def _number(dtype: np.dtype[Any], path: str) -> _Field:
    import numpy

    if dtype.kind == "b":

        def check_bool(value: Any) -> Any:
            if isinstance(value, (bool, numpy.bool_)):
                return value
            raise _encode_error(path, dtype, value)

        return check_bool
    if dtype.kind in "iu":
        limits = numpy.iinfo(dtype)
        least, most = int(limits.min), int(limits.max)

        def check_int(value: Any) -> Any:
            try:
                number = operator.index(value)
            except TypeError:
                raise _encode_error(path, dtype, value) from None
            if least <= number <= most:
                return number
            raise _encode_error(path, dtype, value)

        return check_int
    most_float = float(numpy.finfo(dtype).max)

    def check_float(value: Any) -> Any:
        if isinstance(value, (float, int, numpy.floating, numpy.integer)):
            try:
                number = float(value)
            except OverflowError:
                raise _encode_error(path, dtype, value) from None
            # NaN and the infinities are valid numbers of the field, too.
            if not most_float < abs(number) < numpy.inf:
                return number
        raise _encode_error(path, dtype, value)

    return check_float


def _encode_error(path: str, dtype: np.dtype[Any], value: Any) -> EncodeError:
    return EncodeError("it", f"the field {path} is {_described(dtype)}, not {_shown(value)}")
