"""Changes of state keys, and values of other hosts with their age."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from .errors import RnetError

if TYPE_CHECKING:
    from ._rnet import Entry

__all__ = ["Change", "WithAge"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Change:
    """A change reported by a watch, or an initial value."""

    #: The key.
    key: str
    #: The new entry; None if the key was deleted.
    entry: Entry | None
    #: Whether it was deleted because its ``ttl`` expired; None if the reason is unknown because the watch was very
    #: late.
    expired: bool | None
    #: Revision of the change.
    revision: int
    #: Number of values of this key that this watch missed; the newest is always reported. None if unknown, because the
    #: watch was very late and the key may have been deleted and created again meanwhile.
    skipped: int | None
    #: Whether it is an initial value: it existed before the watch began.
    initial: bool

    @property
    def value(self) -> Any:
        """The new value; None if the key was deleted, or if the value is JSON null (check `deleted`)."""
        return None if self.entry is None else self.entry.value

    @property
    def deleted(self) -> bool:
        """Whether the key was deleted."""
        return self.entry is None

    def __repr__(self) -> str:
        if self.entry is None:
            what = {True: "expired", False: "deleted", None: "gone"}[self.expired]
        else:
            try:
                what = f"= {self.entry.value!r}"
            except RnetError:
                what = f"= {self.entry.type_text}"
        return f"<rnet.state.Change {self.key} {what}, revision {self.revision}>"


@final
@dataclass(frozen=True, eq=False, repr=False)
class WithAge:
    """A value of another host, and its age."""

    #: The value with its metadata, as an Entry; None if the key is absent.
    entry: Entry | None
    #: Seconds since it was last known to be current on its home host, including time suspended.
    age: float
    #: Whether its home host is away, so that the value may be outdated.
    is_stale: bool

    @property
    def value(self) -> Any:
        """The value; None if the key is absent."""
        return None if self.entry is None else self.entry.value

    def __repr__(self) -> str:
        value = "absent" if self.entry is None else repr(self.entry.value)
        away = ", its home host is away" if self.is_stale else ""
        return f"<rnet.state.WithAge {value}, {self.age:.3f} s old{away}>"
