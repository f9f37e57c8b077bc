"""The Foxglove messages, as used by viewers: ``from rnet.msgs.foxglove import JointStates``."""

from __future__ import annotations

from typing import Any

from .. import builtin as _builtin

__all__ = sorted(_builtin.FOXGLOVE)


def __getattr__(name: str) -> Any:
    if name not in _builtin.FOXGLOVE:
        raise AttributeError(f"rnet.msgs.foxglove has no message {name!r}", name=name)
    globals()[name] = made = _builtin.message(_builtin.FOXGLOVE[name], __name__)
    return made


def __dir__() -> list[str]:
    return list(__all__)
