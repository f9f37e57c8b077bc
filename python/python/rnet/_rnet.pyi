"""The compiled part of the package; the doc strings are those of the objects themselves."""

import ctypes
import os
from asyncio import Future
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, Literal, TypeAlias, TypeVar, final, overload

import numpy as np
from google.protobuf.message import Message
from typing_extensions import Buffer, Self

from .compare import PublishedType
from .errors import Error
from .events import MatchEvent, NodeEvent, PublisherStats
from .msgs._plain import PlainMessage
from .qos import Detach, Wait

_T_contra = TypeVar("_T_contra", contravariant=True)
_T_co = TypeVar("_T_co", covariant=True)
_Structure = TypeVar("_Structure", bound=ctypes.Structure)
_Message = TypeVar("_Message", bound=Message | PlainMessage)

# What numpy.dtype() takes for a structured type: a dtype, "f8", [("x", "f8")], numpy.float64.
_DType: TypeAlias = np.dtype[Any] | str | list[Any] | type[np.generic]
_Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
_OnFull: TypeAlias = Wait | Detach | Literal["refuse"]
_Lane: TypeAlias = Literal["urgent", "bulk"]
_Wait: TypeAlias = Literal["adaptive", "spin", "block"]

__all__ = [
    "BUILTIN_FILES",
    "ERROR_CODES",
    "LAYOUT_VERSION",
    "MAX_SCHEMA_LEN_BYTES",
    "VERSION",
    "Loan",
    "Merge",
    "Node",
    "Publisher",
    "Sample",
    "Samples",
    "Subscriber",
    "compare_types",
    "compile_file",
    "compile_text",
    "now_ns",
    "read_descriptor_set",
]

BUILTIN_FILES: list[str]
ERROR_CODES: list[str]
LAYOUT_VERSION: int
MAX_SCHEMA_LEN_BYTES: int
VERSION: str

def now_ns() -> int: ...
def compare_types(
    publisher: str | tuple[bytes, str], subscriber: str | tuple[bytes, str]
) -> list[tuple[str, bool, str, str, str]]: ...
def compile_file(path: str | os.PathLike[str], include: list[str]) -> bytes: ...
def compile_text(text: str, name: str, imports: dict[str, str], include: list[str]) -> bytes: ...
def read_descriptor_set(bytes: bytes) -> bytes: ...
@final
class Node:
    def __new__(
        cls,
        name: str,
        *,
        domain: str | None = None,
        dir: str | os.PathLike[str] | None = None,
        group: str | None = None,
    ) -> Self: ...
    @overload
    def publisher(
        self,
        topic: str,
        type: type[bytes] | None = None,
        *,
        reliable: bool = False,
        on_full: _OnFull | None = None,
        transient_local: int = 0,
        urgent: bool = False,
        log_len_bytes: int | None = None,
        pool_limit_bytes: int | None = None,
        large_depth: int | None = None,
    ) -> Publisher[Buffer]: ...
    @overload
    def publisher(
        self,
        topic: str,
        type: type[_Structure],
        *,
        reliable: bool = False,
        on_full: _OnFull | None = None,
        transient_local: int = 0,
        urgent: bool = False,
        log_len_bytes: int | None = None,
        pool_limit_bytes: int | None = None,
        large_depth: int | None = None,
    ) -> Publisher[_Structure]: ...
    @overload
    def publisher(
        self,
        topic: str,
        type: _DType,
        *,
        reliable: bool = False,
        on_full: _OnFull | None = None,
        transient_local: int = 0,
        urgent: bool = False,
        log_len_bytes: int | None = None,
        pool_limit_bytes: int | None = None,
        large_depth: int | None = None,
    ) -> Publisher[Any]: ...
    @overload
    def publisher(
        self,
        topic: str,
        type: type[_Message],
        *,
        reliable: bool = False,
        on_full: _OnFull | None = None,
        transient_local: int = 0,
        urgent: bool = False,
        log_len_bytes: int | None = None,
        pool_limit_bytes: int | None = None,
        large_depth: int | None = None,
    ) -> Publisher[_Message]: ...
    @overload
    def subscribe(
        self,
        topic: str,
        type: None = None,
        *,
        on: Callable[[Sample], object] | None = None,
        on_error: Callable[[Error], object] | None = None,
        reliable: bool = False,
        transient_local: bool = False,
        lane: _Lane | None = None,
        keep_last: int | None = None,
        wait: _Wait = "adaptive",
    ) -> Subscriber[Sample]: ...
    @overload
    def subscribe(
        self,
        topic: str,
        type: type[bytes],
        *,
        on: Callable[[bytes], object] | None = None,
        on_error: Callable[[Error], object] | None = None,
        reliable: bool = False,
        transient_local: bool = False,
        lane: _Lane | None = None,
        keep_last: int | None = None,
        wait: _Wait = "adaptive",
    ) -> Subscriber[bytes]: ...
    @overload
    def subscribe(
        self,
        topic: str,
        type: type[_Structure],
        *,
        on: Callable[[_Structure], object] | None = None,
        on_error: Callable[[Error], object] | None = None,
        reliable: bool = False,
        transient_local: bool = False,
        lane: _Lane | None = None,
        keep_last: int | None = None,
        wait: _Wait = "adaptive",
    ) -> Subscriber[_Structure]: ...
    @overload
    def subscribe(
        self,
        topic: str,
        type: _DType,
        *,
        on: Callable[[Any], object] | None = None,
        on_error: Callable[[Error], object] | None = None,
        reliable: bool = False,
        transient_local: bool = False,
        lane: _Lane | None = None,
        keep_last: int | None = None,
        wait: _Wait = "adaptive",
    ) -> Subscriber[Any]: ...
    @overload
    def subscribe(
        self,
        topic: str,
        type: type[_Message],
        *,
        on: Callable[[_Message], object] | None = None,
        on_error: Callable[[Error], object] | None = None,
        reliable: bool = False,
        transient_local: bool = False,
        lane: _Lane | None = None,
        keep_last: int | None = None,
        wait: _Wait = "adaptive",
    ) -> Subscriber[_Message]: ...
    def on_node(self, callback: Callable[[NodeEvent], object], /) -> None: ...
    def published_types(self, topic: str) -> list[PublishedType]: ...
    @property
    def name(self) -> str: ...
    @property
    def domain(self) -> str: ...
    @property
    def domain_path(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class Publisher(Generic[_T_contra]):
    def send(self, message: _T_contra, /) -> None: ...
    def send_many(self, messages: Buffer | _Array, /) -> int: ...
    def loan(self, len: int | None = None) -> Loan: ...
    def wait_for_subscribers(self, n: int = 1, timeout: float | None = None) -> None: ...
    def on_match(self, callback: Callable[[MatchEvent], object], /) -> None: ...
    @property
    def subscriber_count(self) -> int: ...
    @property
    def sent(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def incompatible(self) -> list[Error]: ...
    @property
    def copied_loans(self) -> int: ...
    @property
    def topic(self) -> str: ...
    @property
    def id(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...
    @classmethod
    def __class_getitem__(cls, _item: Any) -> type[Self]: ...

@final
class Loan:
    @property
    def data(self) -> memoryview: ...
    def send(self) -> None: ...
    def discard(self) -> None: ...
    def __enter__(self) -> memoryview: ...
    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        _exception: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...
    def __len__(self) -> int: ...

@final
class Subscriber(Generic[_T_co]):
    def recv(self, timeout: float | None = None) -> _T_co: ...
    def recv_sample(self, timeout: float | None = None) -> Sample: ...
    def try_recv(self) -> _T_co | None: ...
    def try_recv_sample(self) -> Sample | None: ...
    def latest(self, timeout: float | None = None) -> _T_co: ...
    def latest_sample(self, timeout: float | None = None) -> Sample: ...
    @overload
    def recv_many(
        self,
        max: int | None = None,
        timeout: float | None = None,
        *,
        out: _Array | None = None,
        dtype: _DType | None = None,
        stamps: Literal[False] = False,
    ) -> _Array: ...
    @overload
    def recv_many(
        self,
        max: int | None = None,
        timeout: float | None = None,
        *,
        out: _Array | None = None,
        dtype: _DType | None = None,
        stamps: Literal[True],
    ) -> tuple[_Array, np.ndarray[Any, np.dtype[np.int64]]]: ...
    @overload
    def recv_many(
        self,
        max: int | None = None,
        timeout: float | None = None,
        *,
        out: _Array | None = None,
        dtype: _DType | None = None,
        stamps: bool = False,
    ) -> _Array | tuple[_Array, np.ndarray[Any, np.dtype[np.int64]]]: ...
    def samples(self) -> Samples: ...
    def recv_async(self) -> Future[_T_co]: ...
    def recv_sample_async(self) -> Future[Sample]: ...
    def on(
        self,
        callback: Callable[[_T_co], object],
        /,
        *,
        on_error: Callable[[Error], object] | None = None,
    ) -> None: ...
    def wait_for_publishers(self, n: int = 1, timeout: float | None = None) -> None: ...
    def on_match(self, callback: Callable[[MatchEvent], object], /) -> None: ...
    @property
    def publisher_count(self) -> int: ...
    @property
    def lost(self) -> dict[str, int]: ...
    def stats(self) -> list[PublisherStats]: ...
    @property
    def topic(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> _T_co: ...
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Future[_T_co]: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...
    @classmethod
    def __class_getitem__(cls, _item: Any) -> type[Self]: ...

@final
class Samples:
    def __iter__(self) -> Self: ...
    def __next__(self) -> Sample: ...
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Future[Sample]: ...

@final
class Merge:
    def __new__(cls, *subscribers: Subscriber[Any]) -> Self: ...
    def recv(self, timeout: float | None = None) -> tuple[Subscriber[Any], Any]: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[Subscriber[Any], Any]: ...
    @property
    def subscribers(self) -> tuple[Subscriber[Any], ...]: ...

@final
class Sample(Buffer):
    @property
    def data(self) -> memoryview: ...
    @property
    def value(self) -> Any: ...
    @property
    def seq(self) -> int: ...
    @property
    def sent_ns(self) -> int: ...
    @property
    def taken_ns(self) -> int: ...
    @property
    def latency_ns(self) -> int: ...
    @property
    def publisher(self) -> int: ...
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
