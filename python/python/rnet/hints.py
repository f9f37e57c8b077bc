"""Error texts for common mistakes, above all for habits from ROS 2."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable
from types import ModuleType
from typing import Any

__all__ = ["did_you_mean", "explain", "is_from_import", "no_message", "no_name", "warn_of_copied_loan"]

#: ROS 2 messages whose content has another name here.
_ROS2 = {
    "Bool": "the numpy type \"?\"",
    "CameraInfo": "CameraCalibration",
    "DiagnosticArray": "Diagnostic",
    "DiagnosticStatus": "Diagnostic",
    "FluidPressure": "Pressure",
    "Float64": "the numpy type \"f8\"",
    "Header": "the fields timestamp and frame_id of each message",
    "Int32": "the numpy type \"i4\"",
    "Marker": "SceneEntity",
    "MarkerArray": "SceneUpdate",
    "NavSatFix": "LocationFix",
    "OccupancyGrid": "Grid",
    "Path": "PosesInFrame",
    "Point": "Vector3, or Point3 for drawings",
    "PointCloud2": "PointCloud",
    "PoseArray": "PosesInFrame",
    "PoseStamped": "PoseInFrame",
    "PoseWithCovarianceStamped": "PoseEstimate",
    "String": "the type bytes, with UTF-8 text",
    "TFMessage": "FrameTransforms",
    "Transform": "FrameTransform",
    "TransformStamped": "FrameTransform",
    "TwistStamped": "TwistInFrame",
    "WrenchStamped": "WrenchInFrame",
}


#: Names that the package does not have, and their replacements.
_RENAMED = {
    "ERROR_CODES": "rnet.errors.BY_CODE",
    "load": "rnet.load_proto",
    "load_text": "rnet.types.load_proto_text",
}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'linear'?"``, or an empty text if no name is similar."""
    by_lower = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), by_lower, 1)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""


def no_message(name: str, known: Iterable[str]) -> str:
    """The error text for a name that ``rnet.msgs`` lacks, with the name to use instead."""
    known = list(known)
    instead = _ROS2.get(name)
    if instead is not None:
        return f"rnet.msgs has no message {name!r}: use {instead} (docs/guide/messages.md lists the messages)"
    listed = "" if (close := did_you_mean(name, known)) else "; dir(rnet.msgs) lists them"
    return f"rnet.msgs has no message {name!r}{close}{listed}"


def no_name(name: str, modules: Iterable[ModuleType]) -> str:
    """The error text for an attribute that the package lacks, with the module that has it."""
    places = [f"{module.__name__}.{name}" for module in modules if name in module.__all__]
    instead = _RENAMED.get(name, places[0] if places else None)
    return f"module 'rnet' has no attribute {name!r}" + (f": use {instead}" if instead else "")


def is_from_import() -> bool:
    """Whether the caller of a module's ``__getattr__`` is ``from module import name``.

    Such a statement replaces the text of an AttributeError.
    """
    import opcode

    frame = sys._getframe(2)
    instruction = frame.f_code.co_code[frame.f_lasti]
    return opcode.opname[instruction] == "IMPORT_FROM"


def explain(cls: Any) -> None:
    """Makes the constructor of a protobuf message class explain its errors, with the existing names."""
    init = cls.__init__

    def __init__(self: Any, **fields: Any) -> None:
        try:
            init(self, **fields)
        except (TypeError, ValueError) as error:
            raise _explained(cls.DESCRIPTOR, fields, error) from None

    cls.__init__ = __init__


def _explained(message: Any, fields: dict[str, Any], error: Exception) -> Exception:
    """The error of a constructor with a helpful text, or unchanged if there is none."""
    for name, value in fields.items():
        known = message.fields_by_name.get(name)
        if known is None:
            close = did_you_mean(name, message.fields_by_name) or f"; it has {', '.join(message.fields_by_name)}"
            return ValueError(f"{message.full_name} has no field {name!r}{close}")
        of = known.message_type
        if of is None or known.is_repeated or isinstance(value, dict) or _is(value, of):
            continue
        wanted = of.full_name
        if of.full_name == "google.protobuf.Timestamp":
            wanted += (
                ": a datetime.datetime in UTC, or set it later: "
                f"message.{name}.FromNanoseconds(time.time_ns())"
            )
        elif of.full_name == "google.protobuf.Duration":
            wanted += f": a datetime.timedelta, or set it later: message.{name}.FromNanoseconds(ns)"
        else:
            wanted += ", or a dict of its fields"
        if f"{error}".startswith(("Fail to convert", "Parameter to initialize")):
            given = f"got {value!r} ({type(value).__name__})"
            return TypeError(f"{message.full_name}.{name} is {wanted}; {given}")
    return error


def _is(value: Any, message: Any) -> bool:
    return getattr(value, "DESCRIPTOR", None) is message


def warn_of_copied_loan(topic: str) -> None:
    """Warns at the line of the user whose loan was copied. Called by the native module."""
    level, frame = 1, sys._getframe()
    while frame.f_globals.get("__name__", "").startswith("rnet.") and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"{topic}: a loan was sent as a copy, because an array or view of its memory still exists. Delete "
        "the array before the block ends, or write image.array[:] = … without keeping the array. Further "
        "copies on this publisher are only counted (Publisher.copied_loan_count)",
        RuntimeWarning,
        level,
    )
