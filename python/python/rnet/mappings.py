"""The state as mappings: snapshots, hashes, and the methods of mappings that several classes of the extension share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, final

from . import _rnet
from .errors import ConflictError
from .event_loop import is_async

if TYPE_CHECKING:
    from ._rnet import Entry, RemoteState, Replica, State, Transaction

__all__ = ["Snapshot", "StateHash"]

_R = TypeVar("_R")

_ABSENT = object()


def _getitem(self: Any, key: str, /) -> Any:
    value = self.get(key, _ABSENT)
    if value is _ABSENT:
        raise KeyError(key)
    return value


def _delitem(self: Any, key: str, /) -> None:
    if not self.delete(key):
        raise KeyError(key)


def _contains(self: Any, key: object, /) -> bool:
    return isinstance(key, str) and self.entry(key) is not None


def _len(self: Any) -> int:
    return len(self.keys())


def _iter(self: Any) -> Iterator[str]:
    return iter(self.keys())


def _get(self: RemoteState | Replica | Snapshot, key: str, default: Any = None, /) -> Any:
    """The value of a key, or `default` if it is absent.

    Of a RemoteState: raises HomeAwayError if the host is away and the key was never read.
    """
    entry = self.entry(key)
    return default if entry is None else entry.value


@final
class Snapshot:
    """Many keys at one moment: an immutable mapping of keys to values.

    All values are those of one `revision`: it contains every earlier write and no later one.
    """

    __module__ = "rnet.state"

    def __init__(self, revision: int, entries: list[Entry]) -> None:
        #: The revision of the snapshot.
        self.revision = revision
        self._entries = {entry.key: entry for entry in entries}

    @property
    def entries(self) -> list[Entry]:
        """The entries, sorted by key."""
        return list(self._entries.values())

    def entry(self, key: str) -> Entry | None:
        """The entry of a key; None if it was absent."""
        if not isinstance(key, str):
            raise TypeError(f"a key must be a str, not a {type(key).__name__}")
        # As everywhere, the leading slash is optional.
        return self._entries.get(key if key.startswith("/") else f"/{key}")

    def keys(self) -> list[str]:
        """The keys, sorted."""
        return list(self._entries)

    def values(self) -> list[Any]:
        """The values, in the order of the keys."""
        return [entry.value for entry in self._entries.values()]

    def items(self) -> list[tuple[str, Any]]:
        """Pairs of key and value, in the order of the keys."""
        return [(key, entry.value) for key, entry in self._entries.items()]

    get = _get
    __getitem__ = _getitem
    __contains__ = _contains
    __len__ = _len
    __iter__ = _iter

    def __repr__(self) -> str:
        return f"<rnet.state.Snapshot of {len(self)} keys, revision {self.revision}>"


@final
class StateHash:
    """The keys under a prefix as the fields of a mapping, like a Redis hash. Created by `State.hash`.

    Each field is a separate key, `prefix/field`, with its own type, owner and revision; writers of
    different fields do not conflict. `all` and `set_many` read and write several fields at once.
    """

    __module__ = "rnet.state"

    def __init__(self, state: State, prefix: str) -> None:
        self._state = state
        #: The prefix.
        self.prefix = prefix.rstrip("/")
        # The state may be closed, and the prefix may be invalid.
        state.entry(self._key("x"))

    def _key(self, field: str) -> str:
        if not isinstance(field, str):
            raise TypeError(f"a field must be a str, not a {type(field).__name__}")
        return f"{self.prefix}/{field}"

    def get(self, field: str, default: Any = None, /) -> Any:
        """The value of a field, or `default` if it is absent."""
        return self._state.get(self._key(field), default)

    def delete(self, field: str) -> bool:
        """Deletes a field; False if it was absent."""
        return self._state.delete(self._key(field))

    def keys(self) -> list[str]:
        """The names of the fields, sorted."""
        return [field for field, _ in self._fields()]

    def _fields(self) -> list[tuple[str, Entry]]:
        below = self._key("")
        # After the prefix, including its leading slash, which is optional.
        at = len(below) + (not below.startswith("/"))
        return [(entry.key[at:], entry) for entry in self._state.list(below)]

    def all(self) -> dict[str, Any]:
        """The fields as a dict, at one moment."""
        return dict(self.items())

    def values(self) -> list[Any]:
        """The values, sorted by field name, at one moment."""
        return [value for _, value in self.items()]

    def items(self) -> list[tuple[str, Any]]:
        """Pairs of name and value, sorted by name, at one moment."""
        return [(field, entry.value) for field, entry in self._fields()]

    def set_many(self, fields: dict[str, Any]) -> int:
        """Sets several fields at once, all or none; returns the revision of the change."""
        with self._state.transaction() as transaction:
            for field, value in fields.items():
                transaction[self._key(field)] = value
            return transaction.commit()

    def __setitem__(self, field: str, value: Any, /) -> None:
        self._state[self._key(field)] = value

    def __contains__(self, field: object, /) -> bool:
        return isinstance(field, str) and self._key(field) in self._state

    __getitem__ = _getitem
    __delitem__ = _delitem
    __len__ = _len
    __iter__ = _iter

    def __repr__(self) -> str:
        return f"<rnet.state.StateHash {self.prefix}>"


def snapshot(self: State, prefix: str = "") -> Snapshot:
    """The keys under a prefix at one moment, as an immutable mapping. It contains all writes of a
    transaction, or none.
    """
    return Snapshot(*self._snapshot(prefix))


def values(self: State, prefix: str = "") -> list[Any]:
    """The values under a prefix, sorted by key, at one moment."""
    return self.snapshot(prefix).values()


def items(self: State, prefix: str = "") -> list[tuple[str, Any]]:
    """Pairs of key and value under a prefix, sorted by key, at one moment."""
    return self.snapshot(prefix).items()


def list_(self: State, prefix: str = "") -> list[Entry]:
    """The entries under a prefix, sorted by key, at one moment."""
    return self._snapshot(prefix)[1]


def hash_(self: State, prefix: str) -> StateHash:
    """The keys under a prefix as the fields of a mapping: `state.hash("/arm")["mode"]` is
    `state["/arm/mode"]`.
    """
    return StateHash(self, prefix)


def _retried(what: str, attempt: Callable[[], _R]) -> _R:
    """The result of the first attempt without a conflict."""
    for _ in range(_rnet.MAX_UPDATE_TRIES):
        try:
            return attempt()
        except ConflictError:
            # Another writer interfered.
            continue
    raise _rnet.too_many_conflicts(what)


def update(self: State, key: str, fn: Callable[[Any], Any], /) -> Any:
    """Changes a key by a function of its value, and returns the new value. The function gets None for an
    absent key; it may return rnet.state.DELETE. It is called again if another writer interfered, so that no
    change is lost.
    """
    for _ in range(_rnet.MAX_UPDATE_TRIES):
        # A ConflictError that the function raises propagates to the caller.
        if (written := self._rewrite(key, fn)) is not None:
            return written[0]
    raise _rnet.too_many_conflicts(f"update {key}")


def setdefault(self: State, key: str, value: Any) -> Any:
    """Sets a key if it is absent, and returns its value: the new or the existing one."""

    def attempt() -> Any:
        found = self.get(key, _ABSENT)
        if found is not _ABSENT:
            return found
        self.compare_and_set(key, 0, value)
        return value

    return _retried(f"set {key}", attempt)


def transact(self: State, body: Callable[[Transaction], Any], /) -> Any:
    """Runs `body(t)` in a transaction and commits it; retries if another writer interfered. Returns the
    result of `body`; for an `async def`, an awaitable.
    """
    what = "commit the transaction"
    if is_async(body):
        return _transact_async(self, body, what)

    def attempt() -> Any:
        transaction = self.transaction()
        # A key that is read twice may have changed in between; then the body gets a ConflictError at once.
        returned = body(transaction)
        transaction.commit()
        return returned

    return _retried(what, attempt)


async def _transact_async(state: State, body: Callable[[Transaction], Awaitable[_R]], what: str) -> _R:
    for _ in range(_rnet.MAX_UPDATE_TRIES):
        transaction = state.transaction()
        try:
            returned = await body(transaction)
            transaction.commit()
        except ConflictError:
            continue
        finally:
            transaction.discard()
        return returned
    raise _rnet.too_many_conflicts(what)


# Objects with keys(), items(), [] and so on are mappings for isinstance and match, too.
for _mapping in (_rnet.State, StateHash, Snapshot):
    Mapping.register(_mapping)

for _name, _method, _classes in (
    ("__getitem__", _getitem, (_rnet.Transaction, _rnet.RemoteState, _rnet.Replica)),
    ("__delitem__", _delitem, (_rnet.State, _rnet.Transaction, _rnet.RemoteState)),
    ("__contains__", _contains, (_rnet.RemoteState,)),
    ("__len__", _len, (_rnet.State,)),
    ("__iter__", _iter, (_rnet.State,)),
    ("get", _get, (_rnet.RemoteState, _rnet.Replica)),
    ("snapshot", snapshot, (_rnet.State,)),
    ("values", values, (_rnet.State,)),
    ("items", items, (_rnet.State,)),
    ("list", list_, (_rnet.State,)),
    ("hash", hash_, (_rnet.State,)),
    ("update", update, (_rnet.State,)),
    ("setdefault", setdefault, (_rnet.State,)),
    ("transact", transact, (_rnet.State,)),
):
    _method.__name__ = _name
    for _class in _classes:
        setattr(_class, _name, _method)
