"""Protobuf types from ``.proto`` files, without protoc and without a build step."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from . import _rnet, pools
from .errors import SchemaError

__all__ = ["Package", "Protos", "load_descriptor_set", "load_proto", "load_proto_text"]

_Path: TypeAlias = str | os.PathLike[str]


def load_proto(*paths: _Path, include: _Path | Iterable[_Path] = ()) -> Protos:
    """Compiles ``.proto`` files and creates their message classes::

        robot = rnet.load_proto("robot.proto", include=["protos"])
        plan = robot.Plan(speed=0.5)

    Imports are searched next to the file, in the folders of ``include`` in order, and among the
    built-in files (``rnet/msgs/Imu.proto``, ``foxglove/Pose.proto``, ``google/protobuf/…``). The
    classes are those of the official protobuf runtime; files that were loaded or imported before have
    the same classes again. A file that does not end in ``.proto`` is a descriptor set, as written by
    ``protoc --include_imports --descriptor_set_out=robot.bin``; it has its own classes, unless all of
    its types were loaded before.

    Modules that protoc generated from the same files have the same classes; import them first.

    One process may contain two versions of a type. Messages of the later version then accept only
    their own classes as fields: use those loaded with it, ``new.foxglove.Pose``.

    Raises SchemaError, with file, line and column; MissingProtobufError.
    """
    if not paths:
        raise TypeError("load_proto takes at least one file")
    folders = _folders(include)
    return Protos._of([_read(os.fspath(path), folders) for path in paths], "rnet.load_proto")


def load_proto_text(
    text: str,
    *,
    name: str = "text.proto",
    imports: Mapping[str, str] | None = None,
    include: _Path | Iterable[_Path] = (),
) -> Protos:
    """As :func:`load_proto`, from the text of a ``.proto`` file.

    ``name`` is its name in errors. ``imports`` are texts that it may import, by name, in addition to
    ``include`` and the built-in files.
    """
    made = _rnet.compile_text(text, name, dict(imports or {}), _folders(include))
    return Protos._of([(made, False)], "rnet.types.load_proto_text")


def load_descriptor_set(descriptor_set: bytes) -> Protos:
    """As :func:`load_proto`, from a descriptor set in memory.

    Recordings contain descriptor sets, and ``Node.published_types`` returns that of a topic. The rest
    of the program is not affected: types that are not loaded yet get their own classes, and the same
    set returns the same classes again.
    """
    return Protos._of([(_rnet.read_descriptor_set(descriptor_set), True)], "rnet.types.load_descriptor_set")


def _folders(include: _Path | Iterable[_Path]) -> list[str]:
    if isinstance(include, (str, os.PathLike)):
        return [os.fspath(include)]
    return [os.fspath(folder) for folder in include]


def _read(path: str, folders: list[str]) -> tuple[bytes, bool]:
    """The descriptor set of a file, and whether the file already was a descriptor set."""
    if path.endswith(".proto"):
        return _rnet.compile_file(path, folders), False
    try:
        with open(path, "rb") as file:
            # One byte more than the limit is enough to detect a longer file.
            made = file.read(_rnet.MAX_SCHEMA_LEN_BYTES + 1)
    except OSError as error:
        why = f"{error.strerror or error}; correct the path or the file"
        raise SchemaError(f"cannot read {path}: {why}", reason="read", file=path) from None
    return _rnet.read_descriptor_set(made), True


class Package:
    """A package of loaded files; its types and subpackages are attributes."""

    def __init__(self, pool: pools.Pool, types: dict[str, str], prefix: str) -> None:
        self._pool = pool
        #: Top-level definitions of the files and their imports: full name to "message" or "enum".
        self._types = types
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        full_name = self._prefix + name
        if name.startswith("_"):
            # copy and pickle look up such names before `__init__`; types with such names are found by [].
            raise AttributeError(name)
        if full_name in self._types:
            return self._made(full_name)
        if any(known.startswith(full_name + ".") for known in self._types):
            return Package(self._pool, self._types, full_name + ".")
        raise AttributeError(
            f"{self!r} has no {name!r}: it has {', '.join(self._names()) or 'nothing'}",
            name=name,
            obj=self,
        )

    def _made(self, full_name: str) -> Any:
        kind = self._types[full_name]
        return self._pool.message(full_name) if kind == "message" else self._pool.enum(full_name)

    def _names(self) -> list[str]:
        inside = (name for name in self._types if name.startswith(self._prefix))
        return sorted({name[len(self._prefix) :].split(".")[0] for name in inside})

    def __dir__(self) -> list[str]:
        return self._names()

    def __iter__(self) -> Iterator[str]:
        """Full names of the types in it."""
        inside = (name for name in self._types if name.startswith(self._prefix))
        return (name for name in inside if "." not in name[len(self._prefix) :])

    def __repr__(self) -> str:
        return f"<rnet package {self._prefix[:-1]}>"


class Protos(Package):
    """The result of :func:`load_proto`: message classes and enums.

    Types of the loaded files are attributes (``robot.Plan``). These and the types of the imports are
    also found under their packages (``robot.foxglove.Pose``) and by full name
    (``robot["foxglove.Pose"]``, ``robot["my.Plan.Step"]``). Iteration returns the full names of the
    top-level types of the loaded files.
    """

    _own: list[str]
    _files: list[str]

    @classmethod
    def _of(cls, sets: list[tuple[bytes, bool]], what: str) -> Protos:
        foreign = any(is_descriptor_set for _, is_descriptor_set in sets)
        files_of = [pools.files_of(made, what) for made, _ in sets]
        pool, names = pools.place(files_of, what, foreign=foreign)
        files = {there: pool.file(there) for of_set in names for there in of_set.values()}
        own: dict[str, str] = {}
        for of_set, (_, is_descriptor_set) in zip(names, sets, strict=True):
            # In a descriptor set, the files that no other file imports are wanted; otherwise the file itself.
            needed = {d.name for there in of_set.values() for d in files[there].dependencies}
            last = list(of_set.values())[-1:]
            meant = [n for n in of_set.values() if n not in needed] if is_descriptor_set else last
            own.update((there, given) for given, there in of_set.items() if there in meant)
        protos = cls(pool, {}, "")
        for file in files.values():
            messages, enums = file.message_types_by_name, file.enum_types_by_name
            protos._types.update((found.full_name, "message") for found in messages.values())
            protos._types.update((found.full_name, "enum") for found in enums.values())
        protos._files = list(own.values())
        protos._own = [
            found.full_name
            for there in own
            for kind in ("message_types_by_name", "enum_types_by_name")
            for found in getattr(files[there], kind).values()
        ]
        return protos

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        meant = [full_name for full_name in self._own if full_name.rpartition(".")[2] == name]
        if len(meant) > 1:
            why = f"{name!r} is in several packages: write {self._spelled(meant)}"
            raise AttributeError(why, name=name, obj=self)
        return self._made(meant[0]) if meant else super().__getattr__(name)

    @staticmethod
    def _spelled(full_names: list[str]) -> str:
        return " or ".join(f"[{name!r}]" for name in full_names)

    def __getitem__(self, full_name: str) -> Any:
        """A message class or an enum by full name; nested ones too."""
        outer = full_name
        while outer not in self._types:
            outer = outer.rpartition(".")[0]
            if not outer:
                raise KeyError(full_name)
        for find in (self._pool.message, self._pool.enum):
            try:
                return find(full_name)
            except KeyError:
                continue
        raise KeyError(full_name)

    def __contains__(self, full_name: object) -> bool:
        try:
            return isinstance(full_name, str) and self[full_name] is not None
        except KeyError:
            return False

    def __iter__(self) -> Iterator[str]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)

    def _names(self) -> list[str]:
        return sorted({name.rpartition(".")[2] for name in self._own} | set(super()._names()))

    def __repr__(self) -> str:
        return f"<rnet.types.Protos of {', '.join(self._files)}: {', '.join(self._own) or 'nothing'}>"
