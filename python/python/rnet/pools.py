"""Descriptor pools of the official protobuf runtime, which contain the message classes.

A pool contains each file and each type once, and messages of two pools do not mix: a message of one
cannot be a field of a message of the other. So files go into the runtime's default pool, which also
contains the modules that protoc generates, if they agree with its contents. A file that only shares
its name with another one gets a new name: file names are not part of a type. Two versions of one type
need two pools in a process; the later version goes into a private pool with its imports.

A descriptor set of another program adds nothing to the default pool: its definition of
``foxglove.Pose`` may differ, and would apply to all later files. Such a set shares the classes of the
default pool if all of its files are already there; otherwise it gets a private pool. And files with
the same name as built-in ones are never added before them.

The runtime does not keep comments, so the files are kept here with their comments: these are sent with a
topic, and become the doc strings of the classes.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import threading
import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from . import _rnet, hints
from .errors import MissingProtobufError, SchemaError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FileDescriptor
    from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
    from google.protobuf.message import Message

__all__ = ["Pool", "descriptor_set", "files_of", "is_message_class", "place"]

_WELL_KNOWN = "google/protobuf/"
_BUILT_IN = ("foxglove", "rnet/msgs")

#: Pools that one process may have: the runtime never frees the memory of one.
MAX_POOLS = 1024

_lock = threading.Lock()
#: The default pool, then the pools of versions that were loaded from files.
_pools: list[Pool] = []
#: The pools of descriptor sets, by their content, with the names of the files there.
_of_sets: dict[bytes, tuple[Pool, list[dict[str, str]]]] = {}


def files_of(descriptor_set: bytes, what: str) -> list[FileDescriptorProto]:
    """The files of a descriptor set; ``what`` is the feature that needs them, for errors."""
    descriptor_pb2 = _runtime("descriptor_pb2", what)
    return list(descriptor_pb2.FileDescriptorSet.FromString(descriptor_set).file)


def place(
    sets: list[list[FileDescriptorProto]], what: str, *, foreign: bool = False, ours: bool = False
) -> tuple[Pool, list[dict[str, str]]]:
    """Adds files (imports first) to one pool; returns their names there, by their original names.

    ``foreign``: they come from others. ``ours``: they are the built-in ones.
    """
    with _lock:
        if not _pools:
            _pools.append(Pool(_runtime("descriptor_pool", what).Default()))
        if not ours:
            _reserve(_pools[0], sets, what)
        digest = _digest(sets) if foreign else b""
        if digest in _of_sets:
            return _of_sets[digest]
        for pool in _pools[:1] if foreign else _pools:
            with contextlib.suppress(_NameConflict):
                return pool, pool.take(sets, add=not foreign)
        found = len(_pools) + len(_of_sets) + 1
        if found > MAX_POOLS:
            raise SchemaError(
                f"{what}: this process already has {MAX_POOLS} sets of conflicting types, the limit "
                "(MAX_POOLS); loaded types stay until the process exits",
                reason="limit",
                limit_name="MAX_POOLS",
                limit=MAX_POOLS,
                found=found,
            )
        own = Pool(_runtime("descriptor_pool", what).DescriptorPool())
        try:
            names = own.take(sets)
        except _NameConflict as clash:
            raise SchemaError(f"{what}: {clash}", reason="invalid") from None
        if foreign:
            _of_sets[digest] = (own, names)
        else:
            _pools.append(own)
        return own, names


class _NameConflict(Exception):
    """Files cannot be added to a pool; the text states the reason."""


def _digest(sets: list[list[FileDescriptorProto]]) -> bytes:
    """A digest of the message definitions of the files."""
    hashed = hashlib.sha256()
    for files in sets:
        for file in files:
            said = _bare(file).SerializeToString(deterministic=True)
            hashed.update(len(said).to_bytes(8, "little") + said)
        hashed.update(bytes(8))
    return hashed.digest()


def _reserve(default: Pool, sets: list[list[FileDescriptorProto]], what: str) -> None:
    """Adds those built-in files to the default pool whose names or types the given files use."""
    wanted: set[str] = set()
    for file in (file for files in sets for file in files):
        wanted.add(file.name)
        folder = file.package.replace(".", "/")
        wanted.update(f"{folder}/{message.name}.proto" for message in file.message_type)
    ours = (path for path in _rnet.BUILTIN_FILES if path.rpartition("/")[0] in _BUILT_IN)
    for path in wanted.intersection(ours) - default.reserved:
        text = f'syntax = "proto3"; import "{path}";'
        files = files_of(_rnet.compile_text(text, "", {}, []), what)
        # The program itself may have imported a protoc module with another version of it.
        with contextlib.suppress(_NameConflict):
            default.take([files[:-1]])
        default.reserved.add(path)


def is_message_class(thing: Any) -> bool:
    """Whether it is a message class of the protobuf runtime, which is not imported for that."""
    if not isinstance(thing, type) or not hasattr(thing, "FromString"):
        return False
    # The base class of all messages has none.
    return getattr(thing, "DESCRIPTOR", None) is not None


def descriptor_set(cls: type[Message]) -> bytes:
    """A descriptor set of a message class, imports first, with the known comments."""
    descriptor_pb2 = _runtime("descriptor_pb2", "a message class")
    kept: dict[str, FileDescriptorProto] = {}
    with _lock:
        for pool in (*_pools, *(pool for pool, _ in _of_sets.values())):
            if pool.pool is cls.DESCRIPTOR.file.pool:
                kept = dict(pool.kept)
    files: dict[str, FileDescriptorProto] = {}

    def add(file: Any) -> None:
        if file.name not in files:
            for dependency in file.dependencies:
                add(dependency)
            files[file.name] = kept.get(file.name) or _proto(file)

    add(cls.DESCRIPTOR.file)
    made: bytes = descriptor_pb2.FileDescriptorSet(file=files.values()).SerializeToString()
    return made


class Pool:
    """A descriptor pool of the runtime, and the files with their comments."""

    def __init__(self, pool: Any) -> None:
        self.pool = pool
        #: By the name in this pool, with comments.
        self.kept: dict[str, FileDescriptorProto] = {}
        #: Comments by file name and the full name of the commented element.
        self._comments: dict[str, dict[str, str]] = {}
        #: Built-in files that are guaranteed to be loaded first.
        self.reserved: set[str] = set()

    def take(
        self, sets: Iterable[Iterable[FileDescriptorProto]], *, add: bool = True
    ) -> list[dict[str, str]]:
        """Adds the files, or only finds them without ``add``; returns their names here, by their original names.

        Raises _NameConflict if they do not fit.
        """
        new: dict[str, FileDescriptorProto] = {}
        # Symbols, with the name of their file as given.
        defined: dict[str, str] = {}
        commented: dict[str, FileDescriptorProto] = {}
        all_names: list[dict[str, str]] = []
        for files in sets:
            renamed: dict[str, str] = {}
            for original in files:
                file = _copy(original)
                for i, dependency in enumerate(file.dependency):
                    file.dependency[i] = renamed.get(dependency, dependency)
                bare = _bare(file)
                known = new.get(file.name) or self._find(file.name)
                if known is not None and file.name.startswith(_WELL_KNOWN):
                    # The runtime's own holds, which may be older or newer.
                    renamed[original.name] = file.name
                    if known == bare:
                        commented.setdefault(file.name, file)
                    continue
                if known is not None and known != bare:
                    digest = zlib.crc32(bare.SerializeToString())
                    file.name = bare.name = f"{file.name.removesuffix('.proto')}.{digest:08x}.proto"
                    known = new.get(file.name) or self._find(file.name)
                if known is None:
                    if not add:
                        raise _NameConflict(f"{original.name} is not loaded")
                    for symbol in _symbols(bare):
                        before = defined.get(symbol) or self._file_of(symbol)
                        if before is not None:
                            raise _NameConflict(
                                f"{symbol} is defined twice: in {before} and in {original.name}"
                            )
                    defined.update((symbol, original.name) for symbol in _symbols(bare))
                    new[file.name] = bare
                elif known != bare:
                    raise _NameConflict(f"{original.name} is already loaded with different content")
                renamed[original.name] = file.name
                commented.setdefault(file.name, file)
            all_names.append(renamed)
        try:
            for bare in new.values():
                self.pool.AddSerializedFile(bare.SerializeToString())
        except TypeError as error:
            # For example, a package with the name of a type.
            raise _NameConflict(f"the protobuf runtime refuses a file: {error}") from None
        self.kept = {**commented, **self.kept}
        return all_names

    def message(self, full_name: str) -> type[Message]:
        """The class of a message type, with a doc string."""
        factory = _runtime("message_factory", full_name)
        cls: type[Message] = factory.GetMessageClass(self.pool.FindMessageTypeByName(full_name))
        self._document(cls)
        return cls

    def enum(self, full_name: str) -> Any:
        """An enum, as protoc's modules have it: ``Mode.Name(1)``, ``Mode.Value("IDLE")``."""
        wrapper = _runtime("internal.enum_type_wrapper", full_name)
        return wrapper.EnumTypeWrapper(self.pool.FindEnumTypeByName(full_name))

    def file(self, name: str) -> FileDescriptor:
        """A file of the pool."""
        found: FileDescriptor = self.pool.FindFileByName(name)
        return found

    def _document(self, cls: Any) -> None:
        if cls.__doc__ is None:
            hints.explain(cls)
            name = cls.DESCRIPTOR.file.name
            if name not in self._comments:
                self._comments[name] = _comments(self.kept[name]) if name in self.kept else {}
            cls.__doc__ = _doc(cls.DESCRIPTOR, self._comments[name])
            for nested in cls.DESCRIPTOR.nested_types:
                if not nested.GetOptions().map_entry:
                    self._document(getattr(cls, nested.name))

    def _find(self, name: str) -> FileDescriptorProto | None:
        if name.startswith(_WELL_KNOWN):
            # The runtime provides them, and its modules could not be imported any more if another version of
            # them were already in the pool.
            module = name.removesuffix(".proto").replace("/", ".") + "_pb2"
            try:
                known: Any = importlib.import_module(module).DESCRIPTOR
            except ImportError:
                pass
            else:
                self._borrow(known)
        try:
            return _bare(_proto(self.pool.FindFileByName(name)))
        except KeyError:
            return None

    def _borrow(self, file: FileDescriptor) -> None:
        """Adds a file of the default pool, which must contain it."""
        if file.pool is not self.pool:
            for dependency in file.dependencies:
                self._borrow(dependency)
            self.pool.AddSerializedFile(file.serialized_pb)

    def _file_of(self, symbol: str) -> str | None:
        """The file that defines it."""
        try:
            return str(self.pool.FindFileContainingSymbol(symbol).name)
        except KeyError:
            return None


def _runtime(module: str, what: str) -> Any:
    try:
        return importlib.import_module(f"google.protobuf.{module}")
    except ImportError as error:
        if error.name not in ("google", "google.protobuf"):
            raise
        raise MissingProtobufError(
            f"{what} needs the protobuf runtime, which is not installed: pip install protobuf",
            what=what,
        ) from None


def _proto(file: FileDescriptor) -> FileDescriptorProto:
    made: FileDescriptorProto = _runtime("descriptor_pb2", file.name).FileDescriptorProto()
    file.CopyToProto(made)
    return made


def _copy(file: FileDescriptorProto) -> FileDescriptorProto:
    copy = type(file)()
    copy.CopyFrom(file)
    return copy


# -- comparing files ------------------------------------------------------------------------------


def _bare(file: FileDescriptorProto) -> FileDescriptorProto:
    """The message definitions of a file in a normal form: no comments, services, or options of tools."""
    bare = _copy(file)
    for part in ("source_code_info", "service", "extension", "options", "weak_dependency"):
        bare.ClearField(part)
    if bare.syntax == "proto2":
        bare.ClearField("syntax")
    for message in bare.message_type:
        _strip(message)
    for enum in bare.enum_type:
        _strip_enum(enum)
    return bare


def _strip(message: DescriptorProto) -> None:
    message.ClearField("extension")
    message.ClearField("extension_range")
    _keep_options(message, "map_entry", "message_set_wire_format")
    for field in message.field:
        if field.json_name == _json_name(field.name):
            field.ClearField("json_name")
        _keep_options(field, "packed")
    for oneof in message.oneof_decl:
        oneof.ClearField("options")
    for nested in message.nested_type:
        _strip(nested)
    for enum in message.enum_type:
        _strip_enum(enum)


def _strip_enum(enum: Any) -> None:
    _keep_options(enum, "allow_alias")
    for value in enum.value:
        value.ClearField("options")


def _keep_options(element: Any, *names: str) -> None:
    if not element.HasField("options"):
        return
    options = element.options
    kept = {name: getattr(options, name) for name in names if options.HasField(name)}
    element.ClearField("options")
    for name, value in kept.items():
        setattr(element.options, name, value)


def _json_name(name: str) -> str:
    """The default JSON name of a field."""
    parts = name.split("_")
    return parts[0] + "".join(part[:1].upper() + part[1:] for part in parts[1:])


def _symbols(file: FileDescriptorProto) -> Iterator[str]:
    """Full names of the top-level definitions of a file; values of an enum are in the scope of the enum."""
    scope = f"{file.package}." if file.package else ""
    for message in file.message_type:
        yield scope + message.name
    for enum in file.enum_type:
        yield scope + enum.name
        for value in enum.value:
            yield scope + value.name


# -- doc strings ----------------------------------------------------------------------------------


def _comments(file: FileDescriptorProto) -> dict[str, str]:
    """The comments of a file, by full name; the comments of an enum value are below the enum."""
    comments: dict[str, str] = {}
    for location in file.source_code_info.location:
        parts = (location.leading_comments, location.trailing_comments)
        lines = [line.strip() for part in parts if part for line in part.strip().splitlines()]
        # A path of odd length refers to a part of a definition: its name or its type.
        if not lines or len(location.path) % 2:
            continue
        element: Any = file
        names = [file.package] if file.package else []
        for number, index in zip(location.path[::2], location.path[1::2], strict=True):
            element = getattr(element, element.DESCRIPTOR.fields_by_number[number].name)[index]
            names.append(element.name)
        comments[".".join(names)] = "\n".join(lines)
    return comments


def _doc(descriptor: Descriptor, comments: dict[str, str]) -> str:
    """The doc string of a message class."""
    parts = [f"Protobuf message {descriptor.full_name}."]
    if descriptor.full_name in comments:
        parts.insert(0, comments[descriptor.full_name])
    if descriptor.fields:
        lines = ["Fields:"]
        for field in descriptor.fields:
            lines.append(f"  {field.name}: {_type_of(field)}")
            comment = comments.get(field.full_name, "")
            lines += [f"    {line}".rstrip() for line in comment.splitlines()]
        parts.append("\n".join(lines))
    parts += [_enum_doc(enum, comments) for enum in descriptor.enum_types]
    return "\n\n".join(parts)


def _enum_doc(enum: EnumDescriptor, comments: dict[str, str]) -> str:
    lines = [f"Enum {enum.name}: {comments.get(enum.full_name, '')}".rstrip(": ")]
    for value in enum.values:
        comment = " ".join(comments.get(f"{enum.full_name}.{value.name}", "").split())
        lines.append(f"  {value.name} = {value.number}  {comment}".rstrip())
    return "\n".join(lines)


_TYPES = (
    "double float int64 uint64 int32 fixed64 fixed32 bool string group message bytes uint32 enum "
    "sfixed32 sfixed64 sint32 sint64"
).split()


def _type_of(field: Any) -> str:
    """The type of a field, as a .proto file has it."""
    message: Descriptor | None = field.message_type
    if message is not None and message.GetOptions().map_entry:
        key, value = message.fields_by_name["key"], message.fields_by_name["value"]
        return f"map<{_type_of(key)}, {_type_of(value)}>"
    named = message or field.enum_type
    name = named.full_name if named is not None else _TYPES[field.type - 1]
    return f"repeated {name}" if field.is_repeated else name
