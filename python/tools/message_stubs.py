"""Writes the type stubs of the built-in messages: python/python/rnet/msgs/{__init__,foxglove}.pyi.

    python python/tools/message_stubs.py

A field of a message is one line; `python/tests/test_typing.py` sees to it that they are up to date.
"""

from __future__ import annotations

import keyword
import re
import textwrap
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as F
from rnet import msgs

FOLDER = Path(__file__).parents[1] / "python" / "rnet" / "msgs"
WIDTH = 100

SCALARS = {
    **dict.fromkeys((F.TYPE_DOUBLE, F.TYPE_FLOAT), "float"),
    F.TYPE_BOOL: "bool",
    F.TYPE_STRING: "str",
    F.TYPE_BYTES: "bytes",
}
#: Messages that the runtime takes another class of Python for.
WELL_KNOWN = {"google.protobuf.Timestamp": "Timestamp", "google.protobuf.Duration": "Duration"}

HEAD = '''"""{about}

Written by python/tools/message_stubs.py from the .proto files; do not edit.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, Literal, Never, TypeAlias, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.internal.containers import RepeatedCompositeFieldContainer as _Messages
from google.protobuf.internal.containers import RepeatedScalarFieldContainer as _Values
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
'''

#: Fields as the runtime has them: read, and changed in place.
FIELDS = '''
_T = TypeVar("_T")

_Given: TypeAlias = _T | Mapping[str, Any] | None
_Timestamp: TypeAlias = _Given[Timestamp | datetime]
_Duration: TypeAlias = _Given[Duration | timedelta]

class _Part(Generic[_T]):
    def __get__(self, message: object, cls: object = None, /) -> _T: ...
    def __set__(self, message: object, value: Never, /) -> None: ...

# Pyright takes both methods from one class, to see that what is read is not what was written.
class _Time(_Part[Timestamp]):
    def __get__(self, message: object, cls: object = None, /) -> Timestamp: ...
    def __set__(self, message: object, value: datetime, /) -> None: ...

class _Span(_Part[Duration]):
    def __get__(self, message: object, cls: object = None, /) -> Duration: ...
    def __set__(self, message: object, value: timedelta, /) -> None: ...
'''


def stubs() -> dict[Path, str]:
    """Path and text of each stub."""
    theirs = sorted(msgs.foxglove.__all__)
    ours = [name for name in sorted(msgs.__all__) if getattr(msgs, name).__module__ == "rnet.msgs"]
    # These are Python, with types of their own.
    plain = {"Image": "image", "PointCloud": "point_cloud", "Tensor": "tensor"}
    shown = [name for name in theirs if name not in ours and name not in plain]
    imports = "from . import foxglove as foxglove\n"
    imports += "\n".join(wrapped("from .foxglove import (", shown, ")")) + "\n"
    imports += "".join(f"from .{file} import {name} as {name}\n" for name, file in plain.items())
    fields = "from . import _Duration, _Given, _Part, _Span, _Time, _Timestamp\n"
    return {
        FOLDER / "__init__.pyi": stub(msgs, ours, [*ours, *shown, *plain], imports + FIELDS),
        FOLDER / "foxglove.pyi": stub(msgs.foxglove, theirs, theirs, fields),
    }


def stub(module: Any, names: list[str], exported: list[str], before: str) -> str:
    body = "\n\n".join("\n".join(lines_of(getattr(module, name), module)) for name in names)
    listed = "\n".join(wrapped("__all__ = [", [f'"{name}"' for name in sorted(exported)], "]"))
    head = HEAD.format(about=module.__doc__.splitlines()[0])
    return without_unused(f"{head}{before}\n{listed}\n\n{body}\n")


def without_unused(text: str) -> str:
    """The text without imports that nothing in it needs."""
    lines = []
    for line in text.splitlines():
        head, is_import, names = line.partition(" import ")
        known = " as " in names.replace(" as _", "") or names.startswith("(")
        if is_import and head.startswith("from ") and not known:
            bound = [name.split(" as ")[-1] for name in names.split(", ")]
            used = [n for n in bound if len(re.findall(rf"\b{n}\b", text)) > 1]
            kept = [n for n, b in zip(names.split(", "), bound, strict=True) if b in used]
            if not kept:
                continue
            line = f"{head} import {', '.join(kept)}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def lines_of(cls: Any, module: Any) -> list[str]:
    """A message class."""
    descriptor = cls.DESCRIPTOR
    about = re.split(r"(?<=\.)\s", " ".join(cls.__doc__.split()))[0]
    has_comment = not about.startswith("Protobuf message ")
    lines = textwrap.wrap(f'"""{about}"""', WIDTH - 8) if has_comment else []
    for enum in descriptor.enum_types:
        lines.append(f"{enum.name}: ClassVar[EnumTypeWrapper]")
        values = [f"{value.name}: ClassVar[int];" for value in enum.values]
        lines += [line.removesuffix(";") for line in filled(values, " ", indent="")]
    for nested in descriptor.nested_types:
        lines += lines_of(getattr(cls, nested.name), module)
    for field in descriptor.fields:
        assert not keyword.iskeyword(field.name) and field.name not in SCALARS.values(), field.name
        lines.append(f"{field.name}: {attribute(field, module)}")
    given = [f"{field.name}: {argument(field, module)} = ..." for field in descriptor.fields]
    if given:
        lines += wrapped("def __init__(self, *, ", given, ") -> None: ...")
    present = [f'"{field.name}"' for field in descriptor.fields if field.has_presence]
    if present:
        lines += wrapped("def HasField(self, field_name: Literal[", present, "]) -> bool: ...")
    # Of a real one there would have to be WhichOneof; none is there yet.
    assert all(oneof.name.startswith("_") for oneof in descriptor.oneofs), descriptor.full_name
    return [f"class {descriptor.name}(Message):", *(f"    {line}" for line in lines or ["..."])]


def attribute(field: Any, module: Any) -> str:
    """The type of a field as an attribute."""
    one = single(field, module)
    if field.is_repeated:
        return f"_Values[{one}]" if field.message_type is None else f"_Messages[{one}]"
    return {"Timestamp": "_Time", "Duration": "_Span"}.get(
        one, one if field.message_type is None else f"_Part[{one}]"
    )


def argument(field: Any, module: Any) -> str:
    """The type of a field as it is given to the constructor."""
    one = single(field, module)
    if field.message_type is not None:
        is_known = field.message_type.full_name in WELL_KNOWN
        one = f"_{one}" if is_known else f"_Given[{one}]"
    return f"Iterable[{one}]" if field.is_repeated else one


def single(field: Any, module: Any) -> str:
    """The type of one element of a field."""
    message = field.message_type
    if message is None:
        return SCALARS.get(field.type, "int")
    assert not message.GetOptions().map_entry, f"{field.full_name}: maps are not written yet"
    if message.full_name in WELL_KNOWN:
        return WELL_KNOWN[message.full_name]
    package = message.file.package
    name = message.full_name.removeprefix(f"{package}.")
    return f"foxglove.{name}" if module is msgs and package == "foxglove" else name


def wrapped(head: str, parts: list[str], tail: str) -> list[str]:
    """The parts between head and tail, in as few lines as they need."""
    whole = [head.replace(" ", "\0") + parts[0], *parts[1:-1], parts[-1] + tail.replace(" ", "\0")]
    return filled(whole if len(parts) > 1 else [whole[0] + tail], ", ")


def filled(parts: list[str], between: str, indent: str = "    ") -> list[str]:
    """Lines of parts, each of which stays whole."""
    # Blanks within parts are hidden from the filling; nested classes are indented.
    text = between.join(part.replace(" ", "\0") for part in parts)
    lines = textwrap.wrap(
        text, WIDTH - 8, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return [line.replace("\0", " ") for line in lines]


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text)
