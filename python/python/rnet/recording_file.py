"""Reading recordings: messages with their types, and fields over time as numpy arrays.

Files are MCAP, from robot-net or other programs. Reading is done in Rust, without the interpreter lock, and decodes only
the requested fields: a field of a million messages takes a fraction of a second.
"""

from __future__ import annotations

import importlib
import json
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import _rnet, builtin, codec, protos
from ._numpy import numpy
from .errors import ClosedError, DamagedRecordingWarning, MalformedError, ReadFailedError

if TYPE_CHECKING:
    import numpy as np

    _Array = np.ndarray[Any, np.dtype[Any]]

__all__ = ["RecordedMessage", "RecordedTopic", "RecordingFile", "Series", "open_recording"]

#: The recorder's own metadata records have names with this prefix.
_RESERVED = "/_rnet/recording/"


def open_recording(path: str | os.PathLike[str]) -> RecordingFile:
    """Opens a recording: an MCAP file of ``rnet record``, or of another program.

    >>> with rnet.open_recording("run.mcap") as recording:
    ...     imu = recording["/imu"]
    ...     x, times = imu.array("linear_acceleration.x"), imu.times()
    ...     for message in imu:
    ...         print(message.seq, message.value.linear_acceleration.x)

    The file is opened through its index, so opening time does not depend on the length. A file without an index, because
    it is still being written or its recorder was killed, is read once to its end.

    Raises :class:`ReadFailedError`: it cannot be read, is not an MCAP file, or has a later format version.
    """
    return RecordingFile(path)


class RecordingFile:
    """A recording, opened with :func:`open_recording`: a mapping of topics, which iterates over their names."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._reader: _rnet.RecordingReader | None = _rnet.RecordingReader(self._path)
        self._channels = {described[0]: _Channel(*described) for described in self._reader.channels()}
        for channel in self._channels.values():
            if channel.message_encoding == "cdr":
                channel._reader = self._reader
        self._topics: dict[str, list[_Channel]] = {}
        for channel in self._channels.values():
            self._topics.setdefault(channel.topic, []).append(channel)

    @property
    def path(self) -> str:
        """Path with which it was opened."""
        return self._path

    @property
    def topics(self) -> list[str]:
        """Names of the topics, sorted, without the internal topics of the recorder, which can be accessed by name."""
        return sorted(topic for topic in self._topics if not topic.startswith(_RESERVED))

    @property
    def start_ns(self) -> int | None:
        """Time of the first message, in ns since 1970 UTC; None for an empty file."""
        times = self._open().times
        return None if times is None else times[0]

    @property
    def end_ns(self) -> int | None:
        """Time of the last message, in ns since 1970 UTC; None for an empty file."""
        times = self._open().times
        return None if times is None else times[1]

    @property
    def profile(self) -> str:
        """The profile in its header: ``"rnet"``, ``"ros2"``, or another value of its writer."""
        return self._open().profile

    @property
    def library(self) -> str:
        """The library that wrote it, from its header."""
        return self._open().library

    @property
    def metadata(self) -> dict[str, dict[str, str]]:
        """Its metadata records by name, such as ``rnet.recording``, ``rnet.losses``; the first one if a name repeats."""
        return dict(reversed(self._open().metadata))

    @property
    def problems(self) -> list[str]:
        """Problems found when opening it; empty for an undamaged file."""
        return self._open().problems

    def messages(
        self, *topics: str, start: float | None = None, end: float | None = None
    ) -> Iterator[RecordedMessage]:
        """The messages of these topics, or of all, in the order in which they were received.

        ``start`` and ``end`` are in s from the start of the recording. Unreadable parts are skipped, with a
        :class:`DamagedRecordingWarning` warning. Raises :class:`ReadFailedError` for a topic that the recording does not have.
        """
        for topic in topics:
            self._of(topic)
        found = self._open().messages(list(topics), self._ns(start), self._ns(end))
        return self._each(found)

    def _each(self, found: _rnet.RecordedMessages) -> Iterator[RecordedMessage]:
        for message in found:
            if isinstance(message, str):
                self._warn(message)
            else:
                channel, seq, received_ns, sent_ns, data = message
                yield RecordedMessage(self._channels[channel], seq, received_ns, sent_ns, data)

    def close(self) -> None:
        """Closes the file; messages and arrays that were read stay valid."""
        self._reader = None

    def __enter__(self) -> RecordingFile:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> RecordingFile:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __getitem__(self, topic: str) -> RecordedTopic:
        """A topic. Raises :class:`ReadFailedError` with the existing topics."""
        return RecordedTopic(self, topic, self._of(topic))

    def __contains__(self, topic: object) -> bool:
        return topic in self._topics

    def __iter__(self) -> Iterator[str]:
        return iter(self.topics)

    def __len__(self) -> int:
        return len(self.topics)

    def __repr__(self) -> str:
        return f"<rnet.recording.RecordingFile {self._path}: {len(self)} topics>"

    def _open(self) -> _rnet.RecordingReader:
        if self._reader is None:
            what = f"the recording {self._path}"
            raise ClosedError(f"{what} is closed; open it again", what=what)
        return self._reader

    def _of(self, topic: str) -> list[_Channel]:
        try:
            return self._topics[topic]
        except KeyError:
            there = ", ".join(self.topics) or "none"
            raise ReadFailedError(f"{self._path} has no topic {topic!r}; it has {there}") from None

    def _ns(self, seconds: float | None) -> int | None:
        start_ns = self.start_ns
        if seconds is None or start_ns is None:
            return None
        return max(0, start_ns + round(seconds * 1e9))

    def _warn(self, problem: str) -> None:
        # Attributed to the caller of the public method.
        warnings.warn(DamagedRecordingWarning(f"{self._path}: {problem}"), stacklevel=4)


@dataclass(frozen=True)
class Series:
    """Fields of a topic over time: a row for each message, in the order in which they were received."""

    #: When each message was received, as ``datetime64[ns]`` in UTC.
    times: _Array
    #: When each message was sent.
    sent: _Array
    #: Values by field. An array field has a row of its shape for each message.
    values: dict[str, _Array]
    #: By field, the rows of messages that lack the field; empty if all have it.
    absent: dict[str, _Array]

    def __getitem__(self, name: str) -> _Array:
        return self.values[name]

    def __len__(self) -> int:
        return len(self.times)


class RecordedTopic:
    """A topic of a recording: its messages, and their fields over time."""

    def __init__(self, file: RecordingFile, name: str, channels: list[_Channel]) -> None:
        self._file, self._name, self._channels = file, name, channels

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def types(self) -> list[str]:
        """Names of the types of its messages; usually one."""
        return sorted({channel.type_name for channel in self._channels})

    @property
    def nodes(self) -> list[str]:
        """Nodes that published it, if the file names them."""
        return sorted({channel.node for channel in self._channels if channel.node is not None})

    def __len__(self) -> int:
        """Number of its messages."""
        return sum(channel.count for channel in self._channels)

    def __bool__(self) -> bool:
        # The topic exists, with or without messages.
        return True

    def __iter__(self) -> Iterator[RecordedMessage]:
        return self._file.messages(self._name)

    def __repr__(self) -> str:
        return f"<rnet.recording.RecordedTopic {self._name}: {len(self)} messages, {', '.join(self.types)}>"

    def messages(self, *, start: float | None = None, end: float | None = None) -> Iterator[RecordedMessage]:
        """As :meth:`RecordingFile.messages`, of this topic."""
        return self._file.messages(self._name, start=start, end=end)

    def fields(self) -> list[str]:
        """The fields that :meth:`array` accepts: numbers, and arrays of a fixed length.

        Elements of lists are not included; name them like ``ranges[0]``.
        """
        reader = self._file._open()
        fields = (name for channel in self._channels for name in reader.number_fields(channel.id))
        return list(dict.fromkeys(fields))

    def times(self, *, start: float | None = None, end: float | None = None) -> _Array:
        """When its messages were received, as ``datetime64[ns]`` in UTC: the times of :meth:`array`."""
        return self.series(start=start, end=end).times

    def array(
        self, name: str, *, start: float | None = None, end: float | None = None, absent: float | bool | None = None
    ) -> _Array:
        """A field of all its messages, in the order in which they were received.

        ``name`` is the path of the field: ``"linear_acceleration.x"``, ``"ranges[0]"``, ``"by_name[\\"a\\"].x"``. It must
        be a number, a boolean, an enum (its number), or, in a plain message, an array, with a row for each message.
        ``start`` and ``end`` are in s from the start of the recording.

        For messages without the value (an optional field that is not set, or an element that does not exist) the array
        has ``absent``; the default for floats is NaN, other types have no default.

        Raises :class:`ReadFailedError`: the field does not exist, is not a number, or a message lacks it. Unreadable messages
        are skipped, with a :class:`DamagedRecordingWarning` warning.
        """
        series = self.series(name, start=start, end=end)
        values, rows = series.values[name], series.absent[name]
        if len(rows) and absent is not None:
            values[rows] = absent
        elif len(rows) and values.dtype.kind != "f":
            raise ReadFailedError(
                f"{len(rows)} of {len(values)} messages of {self._name} have no {name}, the first is number "
                f"{rows[0]}; pass a value for them, such as array({name!r}, absent=0)"
            )
        return values

    def series(self, *names: str, start: float | None = None, end: float | None = None) -> Series:
        """Several fields, with the times, in one pass over the file. As :meth:`array`, except that integers are 0 for
        messages without the value; ``absent`` of the series lists these.
        """
        np = numpy("a field over time")
        file = self._file
        log, sent, columns, problems = file._open().series(
            self._name, list(names), file._ns(start), file._ns(end)
        )
        for problem in problems:
            file._warn(problem)
        values, absent = {}, {}
        for name, (kind, shape, numbers, rows) in zip(names, columns, strict=True):
            array = np.frombuffer(numbers, np.dtype(_KINDS[kind])).reshape(-1, *shape)
            absent[name] = np.frombuffer(rows, "<u8")
            if array.dtype.kind == "f":
                array[absent[name]] = np.nan
            values[name] = array
        return Series(np.frombuffer(log, "<M8[ns]"), np.frombuffer(sent, "<M8[ns]"), values, absent)

    def frame(self, *names: str, start: float | None = None, end: float | None = None) -> Any:
        """Fields as a ``pandas.DataFrame``, indexed by the times at which messages were received (UTC).

        By default all of :meth:`fields` except byte arrays. Arrays become a column for each element (``q[0]``), and
        absent values are missing. Raises :class:`ReadFailedError`, and ImportError without pandas.
        """
        # Typed as Any: pandas has no type information.
        pandas: Any = importlib.import_module("pandas")

        series = self.series(*(names or self.fields()), start=start, end=end)
        columns: dict[str, Any] = {}
        for name, values in series.values.items():
            if not names and values.ndim > 1 and values.dtype.itemsize == 1:
                continue
            np = numpy("a frame")
            is_absent = np.zeros(len(series), bool)
            is_absent[series.absent[name]] = True
            for index in np.ndindex(values.shape[1:]):
                title = name + "".join(f"[{i}]" for i in index)
                columns[title] = _column(pandas, values[(slice(None), *index)], is_absent)
        return pandas.DataFrame(columns, index=pandas.DatetimeIndex(series.times, tz="UTC", name="time"))


def _column(pandas: Any, values: _Array, is_absent: _Array) -> Any:
    """A column of a frame. Integers and booleans with missing values get nullable pandas types."""
    if values.dtype.kind == "f" or not is_absent.any():
        return values
    made = pandas.arrays.BooleanArray if values.dtype.kind == "b" else pandas.arrays.IntegerArray
    return made(values, is_absent)


@dataclass(eq=False, repr=False)
class RecordedMessage:
    """A message of a recording."""

    _channel: _Channel
    #: Its sequence number at its publisher, the low 32 bits.
    seq: int
    #: When it was received by the recorder, in ns since 1970 UTC.
    received_ns: int
    #: When it was sent, in ns since 1970 UTC.
    sent_ns: int
    #: Its bytes.
    data: bytes

    @property
    def topic(self) -> str:
        """Its topic."""
        return self._channel.topic

    @property
    def node(self) -> str | None:
        """The node that published it, if the file names it."""
        return self._channel.node

    @property
    def type_name(self) -> str:
        """Name of its type, ``raw`` if it has none."""
        return self._channel.type_name

    @property
    def value(self) -> Any:
        """The message as an object of the type that the file describes, created on each access.

        For a protobuf message, an object of the official runtime; for a plain message, a numpy record (data behind the
        header stays in :attr:`data`), or an object of :mod:`rnet.msgs` if the type is known there; for JSON, the result
        of ``json.loads``; for a ROS 2 message, a protobuf object with the same fields; otherwise :attr:`data`. Raises
        :class:`MalformedError` if the bytes cannot be decoded, and :class:`ReadFailedError` if the type cannot be read.
        """
        return self._channel.decode(self.data)

    def __repr__(self) -> str:
        return f"<rnet.recording.RecordedMessage {self.topic} {self.seq}: {len(self.data)} bytes, {self.type_name}>"


@dataclass
class _Channel:
    """A channel of the file: the messages of one publisher."""

    id: int
    topic: str
    message_encoding: str
    type_name: str
    schema: tuple[str, str, bytes] | None
    metadata: dict[str, str]
    count: int
    _decode: Callable[[bytes], Any] | None = field(default=None, repr=False)
    #: The file, of a channel of ROS 2.
    _reader: _rnet.RecordingReader | None = field(default=None, repr=False)

    @property
    def node(self) -> str | None:
        return self.metadata.get("rnet.node")

    def decode(self, data: bytes) -> Any:
        if self._decode is None:
            self._decode = self._decoder()
        try:
            return self._decode(data)
        except ReadFailedError:
            raise
        except Exception as error:
            why = f"a message of {self.topic} cannot be decoded as {self.type_name}: {error}"
            raise MalformedError(why, topic=self.topic, why=str(error)) from error

    def _decoder(self) -> Callable[[bytes], Any]:
        match self.message_encoding, self.schema:
            case "protobuf", (name, "protobuf", described):
                try:
                    made: Callable[[bytes], Any] = protos.load_descriptor_set(described)[name].FromString
                except Exception as error:
                    raise ReadFailedError(f"the type {name} of {self.topic} cannot be read: {error}") from error
                return made
            case "rnet-plain", (_, "rnet-plain", described):
                return _plain(json.loads(described))
            case "json", _:
                return json.loads
            case "cdr", (_, "ros2msg", _) if self._reader is not None:
                reader = self._reader
                if (like := reader.described(self.id)) is not None:
                    cdr = protos.load_descriptor_set(like[1])[like[0]]
                    return lambda data: cdr.FromString(reader.content(self.id, data))
                return bytes
            case _:
                return bytes


def _plain(layout: dict[str, Any]) -> Callable[[bytes], Any]:
    known = builtin.named(layout["name"]) if layout["name"].startswith("rnet.msgs.") else None
    if known is not None and codec.describe(known) == layout:
        decode: Callable[[bytes], Any] | None = codec.codec(known).decode
        assert decode is not None
        return decode
    np = numpy("a plain message")
    dtype = np.dtype(_dtype(layout))
    is_longer = layout.get("tail", False)

    def record(data: bytes) -> Any:
        if len(data) != dtype.itemsize and not (is_longer and len(data) > dtype.itemsize):
            least = "at least " if is_longer else ""
            raise ValueError(f"it has {len(data)} bytes, but its type has {least}{dtype.itemsize}")
        return np.frombuffer(data, dtype, 1)[0]

    return record


#: The numbers of plain types, by their numpy names.
_KINDS = {
    **{f"{kind}{8 * size}": f"<{kind}{size}" for kind in "ui" for size in (1, 2, 4, 8)},
    **{"f32": "<f4", "f64": "<f8", "bool": "?"},
}


def _dtype(layout: dict[str, Any]) -> dict[str, Any]:
    """The dtype of a struct, as an argument of ``numpy.dtype``."""
    fields = [field for field in layout["fields"] if not field["name"].startswith("_")]
    return {
        "names": [field["name"] for field in fields],
        "formats": [_format(field["type"]) for field in fields],
        "offsets": [field["offset"] for field in fields],
        "itemsize": layout["size"],
    }


def _format(kind: Any) -> Any:
    if isinstance(kind, str):
        return _KINDS[kind]
    if "struct" in kind:
        return _dtype(kind["struct"])
    return (_format(kind["array"]["of"]), (kind["array"]["len"],))
