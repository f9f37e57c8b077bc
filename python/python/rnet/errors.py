"""The exceptions of robot-net, one for each error code.

All are :class:`RnetError`. Where Python has an exception of its own for the matter, the class is
that one too: ``except TimeoutError`` catches :class:`Timeout`.
"""

from __future__ import annotations

from typing import Any, ClassVar


class RnetError(Exception):
    """Any error of robot-net. The text says what failed, where, and what to do.

    ``code`` is the same word in every language. ``topic`` is the topic that the error is about, and
    ``node`` the node: the peer that did what it tells of, the publisher's where publisher and
    subscriber do not fit, or the one whose name is bad or taken. A class has more fields than these
    where its annotations name them.

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


class BadName(RnetError, ValueError):
    """A topic, node or domain name breaks the rules."""

    code = "bad_name"
    what: str
    name: str
    why: str


class MessageTooLarge(RnetError, ValueError):
    """A message is longer than allowed; nothing was sent."""

    code = "message_too_large"
    len: int
    limit: int


class IncompatibleType(RnetError, TypeError):
    """Publisher and subscriber describe the messages of a topic differently; both get this.

    ``field_path`` is the first field that differs, empty if the types as a whole do;
    ``publisher`` and ``subscriber`` say what each has there. Of a service or an action, ``topic`` is its name, and the
    publisher is the side that sends: the client of requests and goals, the server of replies, results and feedback.
    """

    code = "incompatible_type"
    publisher_node: str
    subscriber_node: str
    field_path: str
    publisher: str
    subscriber: str


class IncompatibleQos(RnetError):
    """The subscriber asks for more than the publisher offers; both get this."""

    code = "incompatible_qos"
    publisher_node: str
    subscriber_node: str
    why: str


class Full(RnetError):
    """A reliable subscriber in ``reader_node`` holds ``topic`` back; the message was not sent."""

    code = "full"
    reader_node: str


class Timeout(RnetError, TimeoutError):
    """The awaited event did not happen in time."""

    code = "timeout"
    what: str
    after_ms: int


class Detached(RnetError):
    """A reliable publisher went on without this subscriber, which had not read for too long."""

    code = "detached"
    publisher_node: str
    stall_ms: int


class PeerLost(RnetError, ConnectionError):
    """The process of ``node`` ended without leaving the domain; ``topic`` goes on without it."""

    code = "peer_lost"


class OutOfMemory(RnetError, MemoryError):
    """Shared memory for a message cannot be allocated; nothing already sent is lost."""

    code = "out_of_memory"
    needed_bytes: int
    limit_bytes: int
    why: str


class LimitReached(RnetError):
    """A named limit is reached."""

    code = "limit_reached"
    what: str
    limit: int
    hint: str


class TooManyPins(RnetError):
    """The subscriber holds as many large samples as it may."""

    code = "too_many_pins"
    limit: int


class NameTaken(RnetError):
    """Another living node of the domain has this name."""

    code = "name_taken"
    pid: int | None


class NoPermission(RnetError, PermissionError):
    """A file or directory of the domain may not be used by this user."""

    code = "no_permission"
    path: str
    why: str


class LayoutVersion(RnetError):
    """Shared memory was laid out by another version."""

    code = "layout_version"
    path: str
    found: int
    ours: int


class Corrupt(RnetError):
    """A publisher's memory holds what no correct peer writes; its channel is closed."""

    code = "corrupt"
    publisher_node: str
    what: str


class Malformed(RnetError, ValueError):
    """One message could not be decoded; it is counted and skipped.

    ``why`` says what is wrong, and where; ``seq`` is its number, counted per publisher from 0.
    """

    code = "malformed"
    publisher_node: str
    why: str
    seq: int | None = None


class Closed(RnetError):
    """The node, publisher, subscriber or loan was closed before."""

    code = "closed"
    what: str


class Interrupted(RnetError, InterruptedError):
    """A wait was ended from outside."""

    code = "interrupted"


class BadQos(RnetError, ValueError):
    """Contradictory or invalid quality-of-service settings."""

    code = "bad_qos"
    why: str


class BadValue(RnetError, ValueError):
    """A value does not fit its type or its range."""

    code = "bad_value"
    what: str
    why: str


class Io(RnetError, OSError):
    """A call to the operating system failed."""

    code = "io"
    doing: str
    path: str
    errno: int | None = None


class Conflict(RnetError):
    """The key of a conditional write, or of a transaction, was written meanwhile; nothing was changed.

    ``expected`` is the revision that was asked for and ``found`` the one that is there; 0 stands for a
    key that is absent. Read it again and decide anew: ``state.update`` and ``state.transact`` do.
    """

    code = "conflict"
    key: str
    expected: int
    found: int


class StateType(RnetError, TypeError):
    """A key holds a value of one type, and another one was written or asked for.

    ``state.set(key, value, change_type=True)`` writes it all the same.
    """

    code = "state_type"
    key: str
    holds: str
    given: str


class Storage(RnetError, OSError):
    """A durable value cannot be kept on disk; in memory it is what it was."""

    code = "storage"
    path: str
    why: str


class ServerLost(RnetError, ConnectionError):
    """The server of a call is gone before it answered; what was asked may have been done or not."""

    code = "server_lost"
    host: str


class HomeAway(RnetError, ConnectionError):
    """The host at which a key of the state is at home does not answer.

    ``may_hold`` is true of a write that may have reached it.
    """

    code = "home_away"
    key: str
    host: str
    why: str
    may_hold: bool


class CallFailed(RnetError):
    """The handler of a service failed: ``kind`` is the type of its error, ``text`` what it says."""

    code = "call_failed"
    kind: str
    text: str


class Refused(RnetError):
    """The backlogs of all servers of a service are full, or an action has a goal; the call was not begun.

    ``running`` is the node whose goal runs, None where it is no action.
    """

    code = "refused"
    backlog: int
    running: str | None


class NotInForce(RnetError):
    """A driver has no authority over a command: it was refused, or has ended."""

    code = "not_in_force"
    why: str


class ReceiverExists(RnetError):
    """A command topic has a receiver already."""

    code = "receiver_exists"


class Cancelled(RnetError):
    """A call was cancelled: ``reason`` says why.

    It is "caller", "caller_gone", "timed_out", "preempted", "server_closing" or "operator".
    """

    code = "cancelled"
    reason: str


class CallLost(RnetError, ConnectionError):
    """Answers of a server were lost on their way, ``lost`` of them, and this call may have been one of theirs."""

    code = "call_lost"
    lost: int


class MissingNumpy(RnetError, ImportError):
    """What was called needs numpy, which is not installed.

    Of this package alone: no code of robot-net's stands for it.
    """

    code = "missing_numpy"
    what: str


class MissingProtobuf(RnetError, ImportError):
    """What was called needs the protobuf runtime, which is not installed.

    Of this package alone, as MissingNumpy.
    """

    code = "missing_protobuf"
    what: str


class SchemaError(RnetError, ValueError):
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


class LaunchFailed(RnetError):
    """A robot could not be launched, or one of its nodes was given up; the text says why."""

    code = "launch_failed"


class RecordFailed(RnetError):
    """Nothing could be recorded, or the recorder did not end well; the text says why."""

    code = "record_failed"


class ReadFailed(RnetError):
    """A recording cannot be read, or has no such topic or field; the text says why, and what there is."""

    code = "read_failed"


class DamagedRecording(UserWarning):
    """A part of a recording cannot be read, and is left out of what is read."""


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
BY_CODE: dict[str, type[RnetError]] = {cls.code: cls for cls in RnetError.__subclasses__()}
