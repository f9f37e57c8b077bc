"""What a reliable publisher does when a subscriber is behind."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Detach", "Wait"]


@dataclass(frozen=True)
class Wait:
    """Wait up to this many seconds, then raise FullError."""

    seconds: float


@dataclass(frozen=True)
class Detach:
    """Detach a subscriber that has not read for longer than ``stall`` seconds; it gets DetachedError."""

    stall: float
