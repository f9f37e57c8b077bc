"""The exceptions of robot-net, one for each error code.

All are :class:`Error`. Where Python has an exception of its own for the matter, the class is that
one too: ``except TimeoutError`` catches :class:`Timeout`. The fields of an error, such as the
topic, the node or the limit, are attributes; ``code`` is the same word in every language.
"""

from __future__ import annotations

from typing import Any, ClassVar


class Error(Exception):
    """Any error of robot-net. The text says what failed, where, and what to do."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str = "", **fields: Any) -> None:
        super().__init__(message)
        self.__dict__.update(fields)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.args, dict(self.__dict__)))


def _rebuild(cls: type[Error], args: tuple[Any, ...], fields: dict[str, Any]) -> Error:
    return cls(*args, **fields)


class BadName(Error, ValueError):
    """A topic, node or domain name breaks the rules. Fields: ``what``, ``name``, ``why``."""

    code = "bad_name"
    what: str
    name: str
    why: str


class MessageTooLarge(Error, ValueError):
    """A message is longer than allowed; nothing was sent. Fields: ``topic``, ``len``, ``limit``."""

    code = "message_too_large"
    topic: str
    len: int
    limit: int


class IncompatibleType(Error, TypeError):
    """Publisher and subscriber describe the messages of a topic differently; both get this.

    ``field_path`` is the first field that differs, empty if the types as a whole do;
    ``publisher`` and ``subscriber`` say what each has there.
    """

    code = "incompatible_type"
    topic: str
    publisher_node: str
    subscriber_node: str
    field_path: str
    publisher: str
    subscriber: str


class IncompatibleQos(Error):
    """The subscriber asks for more than the publisher offers; both get this."""

    code = "incompatible_qos"
    topic: str
    publisher_node: str
    subscriber_node: str
    why: str


class Full(Error):
    """A reliable subscriber in ``reader_node`` holds ``topic`` back; the message was not sent."""

    code = "full"
    topic: str
    reader_node: str


class Timeout(Error, TimeoutError):
    """The awaited event did not happen in time. Fields: ``what``, ``after_ms``."""

    code = "timeout"
    what: str
    after_ms: int


class Detached(Error):
    """A reliable publisher went on without this subscriber, which had not read for too long."""

    code = "detached"
    topic: str
    publisher_node: str
    stall_ms: int


class PeerLost(Error, ConnectionError):
    """The process of ``node`` ended without leaving the domain; ``topic`` goes on without it."""

    code = "peer_lost"
    topic: str
    node: str


class OutOfMemory(Error, MemoryError):
    """Shared memory for a message cannot be allocated; nothing already sent is lost."""

    code = "out_of_memory"
    topic: str
    needed_bytes: int
    limit_bytes: int
    why: str


class LimitReached(Error):
    """A named limit is reached. Fields: ``what``, ``limit``, ``hint``."""

    code = "limit_reached"
    what: str
    limit: int
    hint: str


class TooManyPins(Error):
    """The subscriber holds as many large samples as it may. Fields: ``topic``, ``limit``."""

    code = "too_many_pins"
    topic: str
    limit: int


class NameTaken(Error):
    """Another living node of the domain has this name. Fields: ``node``, ``pid``."""

    code = "name_taken"
    node: str
    pid: int | None


class NoPermission(Error, PermissionError):
    """A file or directory of the domain may not be used by this user. Fields: ``path``, ``why``."""

    code = "no_permission"
    path: str
    why: str


class LayoutVersion(Error):
    """Shared memory was laid out by another version. Fields: ``path``, ``found``, ``ours``."""

    code = "layout_version"
    path: str
    found: int
    ours: int


class Corrupt(Error):
    """A publisher's memory holds what no correct peer writes; its channel is closed."""

    code = "corrupt"
    topic: str
    publisher_node: str
    what: str


class Malformed(Error, ValueError):
    """One message could not be decoded; it is counted and skipped.

    ``why`` says what is wrong, and where; ``seq`` is its number, counted per publisher from 0.
    """

    code = "malformed"
    topic: str
    publisher_node: str
    why: str
    seq: int | None = None


class Closed(Error):
    """The node, publisher, subscriber or loan was closed before. Field: ``what``."""

    code = "closed"
    what: str


class Interrupted(Error, InterruptedError):
    """A wait was ended from outside."""

    code = "interrupted"


class BadQos(Error, ValueError):
    """Contradictory or invalid quality-of-service settings. Fields: ``topic``, ``why``."""

    code = "bad_qos"
    topic: str
    why: str


class BadValue(Error, ValueError):
    """A value does not fit its type or its range. Fields: ``what``, ``why``."""

    code = "bad_value"
    what: str
    why: str


class Io(Error, OSError):
    """A call to the operating system failed. Fields: ``doing``, ``path``, ``errno``."""

    code = "io"
    doing: str
    path: str


class Conflict(Error):
    """The key of a conditional write, or of a transaction, was written meanwhile; nothing was changed.

    ``expected`` is the revision that was asked for and ``found`` the one that is there; 0 stands for a
    key that is absent. Read it again and decide anew: ``state.update`` and ``state.transact`` do.
    """

    code = "conflict"
    key: str
    expected: int
    found: int


class StateType(Error, TypeError):
    """A key holds a value of one type, and another one was written or asked for.

    Fields: ``key``, ``holds``, ``given``. ``state.set(key, value, change_type=True)`` writes it all
    the same.
    """

    code = "state_type"
    key: str
    holds: str
    given: str


class Storage(Error, OSError):
    """A durable value cannot be kept on disk; in memory it is what it was. Fields: ``path``, ``why``."""

    code = "storage"
    path: str
    why: str


class MissingNumpy(Error, ImportError):
    """What was called needs numpy, which is not installed. Field: ``what``.

    Of this package alone: no code of robot-net's stands for it.
    """

    code = "missing_numpy"
    what: str


class MissingProtobuf(Error, ImportError):
    """What was called needs the protobuf runtime, which is not installed. Field: ``what``.

    Of this package alone, as MissingNumpy.
    """

    code = "missing_protobuf"
    what: str


class SchemaError(Error, ValueError):
    """A ``.proto`` file, a descriptor set or a message class is no schema.

    ``reason`` is "proto" (does not parse, or uses what is not defined), "read", "missing_import"
    (then there is ``looked_in``), "cyclic_import" (``cycle``), "unknown_type" (``known``), "limit"
    (``limit_name``, ``limit``, ``found``), "malformed" or "invalid". ``file``, ``line`` and
    ``column``, from 1, are the place in a ``.proto`` file, where there is one.

    Of this package alone.
    """

    code = "schema"
    reason: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    name: str | None = None
    looked_in: list[str] | None = None
    cycle: list[str] | None = None
    known: list[str] | None = None
    limit_name: str | None = None
    limit: int | None = None
    found: int | None = None


class NotHeard(UserWarning):
    """No publisher is received: at least one is incompatible, and no compatible one exists.

    A loop over a subscriber warns once and goes on: a compatible publisher may come later. ``recv``
    raises IncompatibleType or IncompatibleQos instead, as soon as there is one that does not fit.
    """


class ParamRefused(UserWarning):
    """A value was set for a parameter that its node, when it declared it, could not take.

    The parameter is its default; ``Param.refused`` and ``rnet param list`` show the refused value.
    """


#: The class of each code.
BY_CODE: dict[str, type[Error]] = {
    cls.code: cls
    for cls in (
        BadName,
        MessageTooLarge,
        IncompatibleType,
        IncompatibleQos,
        Full,
        Timeout,
        Detached,
        PeerLost,
        OutOfMemory,
        LimitReached,
        TooManyPins,
        NameTaken,
        NoPermission,
        LayoutVersion,
        Corrupt,
        Malformed,
        Closed,
        Interrupted,
        BadQos,
        BadValue,
        Io,
        Conflict,
        StateType,
        Storage,
    )
}
