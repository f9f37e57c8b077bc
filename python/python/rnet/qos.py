"""What a reliable publisher does when a subscriber is behind."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wait:
    """Wait up to this many seconds, then raise Full."""

    seconds: float


@dataclass(frozen=True)
class Detach:
    """Go on without a subscriber that stood still for longer; it gets Detached."""

    stall_s: float
