"""The exceptions of robot-net, one for each error code.

All are subclasses of :class:`RnetError`, and also of the corresponding built-in exception if one
exists: ``except TimeoutError`` catches :class:`WaitTimeoutError`.
"""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "BadNameError",
    "BadQosError",
    "BadValueError",
    "CallCancelledError",
    "CallFailedError",
    "CallLostError",
    "ClosedError",
    "ConflictError",
    "CorruptError",
    "DamagedRecordingWarning",
    "DetachedError",
    "FullError",
    "HomeAwayError",
    "IncompatiblePublishersWarning",
    "IncompatibleQosError",
    "IncompatibleTypeError",
    "IoError",
    "LaunchFailedError",
    "LayoutVersionError",
    "LimitReachedError",
    "MalformedError",
    "MessageTooLargeError",
    "MissingNumpyError",
    "MissingProtobufError",
    "NameTakenError",
    "NoPermissionError",
    "NotInForceError",
    "OutOfMemoryError",
    "ParamRefusedWarning",
    "PeerLostError",
    "ReadFailedError",
    "ReceiverExistsError",
    "RecordFailedError",
    "RefusedError",
    "RnetError",
    "SchemaError",
    "ServerLostError",
    "StateTypeError",
    "StorageError",
    "TooManyPinsError",
    "WaitInterruptedError",
    "WaitTimeoutError",
]


class RnetError(Exception):
    """Base class of all errors of robot-net. The text states what failed, where, and what to do.

    ``code`` is the same in every language. ``topic`` is the topic of the error. ``node`` is the node
    that caused it: the peer, the node of the publisher if publisher and subscriber are incompatible,
    or the node whose name is invalid or taken. Subclasses have further fields, given by their
    annotations.

    >>> try:
    ...     node.publisher("/scan data")
    ... except rnet.RnetError as error:
    ...     print(error.code)
    bad_name
    """

    code: ClassVar[str] = "error"
    topic: str | None = None
    node: str | None = None

    def __init__(self, message: str = "", **fields: Any) -> None:
        super().__init__(message)
        self.__dict__.update(fields)


class BadNameError(RnetError, ValueError):
    """A topic, node or domain name is invalid."""

    code = "bad_name"
    what: str
    name: str
    why: str


class MessageTooLargeError(RnetError, ValueError):
    """A message exceeds the length limit; nothing was sent."""

    code = "message_too_large"
    len: int
    limit: int


class IncompatibleTypeError(RnetError, TypeError):
    """Publisher and subscriber have incompatible types for a topic; both get this error.

    ``field_path`` is the first field that differs, empty if the types as a whole differ;
    ``publisher`` and ``subscriber`` are what each side has there. For a service or an action,
    ``topic`` is its name, and the publisher is the sending side: the client for requests and goals,
    the server for replies, results and feedback.
    """

    code = "incompatible_type"
    publisher_node: str
    subscriber_node: str
    field_path: str
    publisher: str
    subscriber: str


class IncompatibleQosError(RnetError):
    """The subscriber requests a QoS that the publisher does not offer; both get this error."""

    code = "incompatible_qos"
    publisher_node: str
    subscriber_node: str
    why: str


class FullError(RnetError):
    """The log is full because a reliable subscriber in ``reader_node`` is behind; the message was not sent."""

    code = "full"
    reader_node: str


class WaitTimeoutError(RnetError, TimeoutError):
    """The awaited event did not happen in time."""

    code = "timeout"
    what: str
    #: Seconds.
    after: float


class DetachedError(RnetError):
    """A reliable publisher detached this subscriber because it had not read for too long."""

    code = "detached"
    publisher_node: str
    #: Seconds.
    stall: float


class PeerLostError(RnetError, ConnectionError):
    """The process of ``node`` died without leaving the domain; ``topic`` continues without it."""

    code = "peer_lost"


class OutOfMemoryError(RnetError, MemoryError):
    """Shared memory for a message cannot be allocated; nothing already sent is lost."""

    code = "out_of_memory"
    needed_bytes: int
    limit_bytes: int
    why: str


class LimitReachedError(RnetError):
    """A named limit is reached."""

    code = "limit_reached"
    what: str
    limit: int
    hint: str


class TooManyPinsError(RnetError):
    """The subscriber holds the maximum number of large samples."""

    code = "too_many_pins"
    limit: int


class NameTakenError(RnetError):
    """Another running node of the domain has this name."""

    code = "name_taken"
    pid: int | None


class NoPermissionError(RnetError, PermissionError):
    """This user may not access a file or directory of the domain."""

    code = "no_permission"
    path: str
    why: str


class LayoutVersionError(RnetError):
    """Shared memory has the layout of another version of rnet."""

    code = "layout_version"
    path: str
    found: int
    ours: int


class CorruptError(RnetError):
    """The memory of a publisher is corrupt; its channel is closed."""

    code = "corrupt"
    publisher_node: str
    what: str


class MalformedError(RnetError, ValueError):
    """One message could not be decoded; it is counted and skipped.

    ``why`` states what is wrong, and where; ``seq`` is its sequence number, per publisher, from 0.
    """

    code = "malformed"
    publisher_node: str
    why: str
    seq: int | None = None


class ClosedError(RnetError):
    """The node, publisher, subscriber or loan is already closed."""

    code = "closed"
    what: str


class WaitInterruptedError(RnetError, InterruptedError):
    """A wait was interrupted."""

    code = "interrupted"


class BadQosError(RnetError, ValueError):
    """Contradictory or invalid quality-of-service settings."""

    code = "bad_qos"
    why: str


class BadValueError(RnetError, ValueError):
    """A value does not fit its type or its range."""

    code = "bad_value"
    what: str
    why: str


class IoError(RnetError, OSError):
    """A call to the operating system failed."""

    code = "io"
    doing: str
    path: str
    errno: int | None = None


class ConflictError(RnetError):
    """A key of a conditional write or a transaction was changed meanwhile; nothing was written.

    ``expected`` is the requested revision and ``found`` the actual one; 0 means that the key is absent.
    Read the key again and retry, as ``state.update`` and ``state.transact`` do.
    """

    code = "conflict"
    key: str
    expected: int
    found: int


class StateTypeError(RnetError, TypeError):
    """A key holds a value of another type than the one written or requested.

    ``state.set(key, value, change_type=True)`` writes it with the new type.
    """

    code = "state_type"
    key: str
    holds: str
    given: str


class StorageError(RnetError, OSError):
    """A durable value cannot be kept on disk; in memory it is unchanged."""

    code = "storage"
    path: str
    why: str


class ServerLostError(RnetError, ConnectionError):
    """The server of a call was lost before it answered; the request may or may not have been executed."""

    code = "server_lost"
    host: str


class HomeAwayError(RnetError, ConnectionError):
    """The home host of a state key does not answer.

    ``may_hold`` is true if the write may have taken effect there.
    """

    code = "home_away"
    key: str
    host: str
    why: str
    may_hold: bool


class CallFailedError(RnetError):
    """The handler of a service failed: ``kind`` is the type of its error, ``text`` its message."""

    code = "call_failed"
    kind: str
    text: str


class RefusedError(RnetError):
    """The backlogs of all servers of a service are full, or an action has a running goal; the call did not start.

    ``running`` is the node whose goal runs; None for a service.
    """

    code = "refused"
    backlog: int
    running: str | None


class NotInForceError(RnetError):
    """A driver has no authority over a command: it was refused, or its authority has ended."""

    code = "not_in_force"
    why: str


class ReceiverExistsError(RnetError):
    """A command topic already has a receiver."""

    code = "receiver_exists"


class CallCancelledError(RnetError):
    """A call was cancelled, for the reason in ``reason``.

    It is "caller", "caller_gone", "timed_out", "preempted", "server_closing" or "operator".
    """

    code = "cancelled"
    reason: str


class CallLostError(RnetError, ConnectionError):
    """``lost`` answers of a server were lost in transit; the answer to this call may be one of them."""

    code = "call_lost"
    lost: int


class MissingNumpyError(RnetError, ImportError):
    """The called function needs numpy, which is not installed.

    Only in this package; it is not one of robot-net's error codes.
    """

    code = "missing_numpy"
    what: str


class MissingProtobufError(RnetError, ImportError):
    """The called function needs the protobuf runtime, which is not installed.

    Only in this package, as MissingNumpyError.
    """

    code = "missing_protobuf"
    what: str


class SchemaError(RnetError, ValueError):
    """A ``.proto`` file, a descriptor set or a message class is invalid.

    ``reason`` is "proto" (does not parse, or uses undefined names), "read", "missing_import"
    (with ``looked_in``), "cyclic_import" (``cycle``), "unknown_type" (``known``), "limit"
    (``limit_name``, ``limit``, ``found``), "malformed" or "invalid". ``file``, ``line`` and
    ``column``, from 1, are the position in a ``.proto`` file, if known.

    Only in this package.
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


class LaunchFailedError(RnetError):
    """A robot could not be launched, or one of its nodes was given up; the text states why."""

    code = "launch_failed"


class RecordFailedError(RnetError):
    """The recording could not start, or the recorder failed; the text states why."""

    code = "record_failed"


class ReadFailedError(RnetError):
    """A recording cannot be read, or does not have a topic or field; the text states why, and what exists."""

    code = "read_failed"


class DamagedRecordingWarning(UserWarning):
    """A part of a recording cannot be read and is skipped."""


class IncompatiblePublishersWarning(UserWarning):
    """No publisher is received: at least one is incompatible, and no compatible one exists.

    A loop over a subscriber warns once and continues: a compatible publisher may join later. ``recv``
    raises IncompatibleTypeError or IncompatibleQosError instead, for each incompatible publisher.
    """


class ParamRefusedWarning(UserWarning):
    """The existing value of a parameter was not allowed when its node declared it.

    The parameter has its default; ``Param.refused`` and ``rnet param list`` show the refused value.
    """


#: The class of each code.
BY_CODE: dict[str, type[RnetError]] = {cls.code: cls for cls in RnetError.__subclasses__()}
