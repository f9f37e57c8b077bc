"""What is told of keys of the state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from .errors import RnetError

if TYPE_CHECKING:
    from ._rnet import Entry

__all__ = ["Aged", "Change"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Change:
    """A change that a watch tells, or what stood there when it began."""

    #: The key.
    key: str
    #: What stands there now; None if it was deleted.
    entry: Entry | None
    #: Whether it was deleted because its time (``ttl``) was over; None if it is gone and nobody can tell why, because
    #: the watch was very late.
    expired: bool | None
    #: Revision of the change.
    revision: int
    #: How many values of this key came and went before this watch looked; the newest always comes. None if that is not
    #: known, because the watch was very late and the key may have been deleted and made anew meanwhile.
    skipped: int | None
    #: Whether it is no change, but what stood there when the watch began.
    initial: bool

    @property
    def value(self) -> Any:
        """The value that stands there now; None if it was deleted (or is a null of JSON: `deleted` says)."""
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
        return f"<rnet.Change {self.key} {what}, revision {self.revision}>"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Aged:
    """A value of another host, and how old what is known of it is."""

    #: The value with all that is known of it, as an Entry; None if the key is absent.
    entry: Entry | None
    #: How long ago it was known to be so at its home, in seconds; the time for which this machine was suspended counts.
    age: float
    #: Whether its home is away, so that it may be otherwise there by now.
    away: bool

    @property
    def value(self) -> Any:
        """The value; None if the key is absent."""
        return None if self.entry is None else self.entry.value

    def __repr__(self) -> str:
        value = "absent" if self.entry is None else repr(self.entry.value)
        away = ", its home host is away" if self.away else ""
        return f"<rnet.Aged {value}, {self.age:.3f} s old{away}>"
