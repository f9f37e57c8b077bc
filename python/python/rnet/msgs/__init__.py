"""The built-in messages: ``from rnet.msgs import JointState, LaserScan``.

They are the messages of the packages ``rnet.msgs`` and ``foxglove``, listed in docs/guide/messages.md;
if both have a name (JointState, Event), it is that of ``rnet.msgs``. :mod:`rnet.msgs.foxglove` has all
Foxglove messages. They are classes of the official protobuf runtime, created on first use.
``help(JointState)`` shows fields, units and frames.

Image, PointCloud and Tensor are plain messages, not protobuf, for large data that is read and written
in place; see docs/guide/images.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .. import builtin as _builtin, hints as _hints
from . import foxglove as foxglove

__all__ = sorted({*_builtin.OWN, *_builtin.FOXGLOVE, *_builtin.PLAIN})


def __getattr__(name: str) -> Any:
    if name in _builtin.PLAIN:
        made = getattr(import_module(_builtin.PLAIN[name], __name__), name)
    elif name in _builtin.OWN:
        made = _builtin.message(_builtin.OWN[name], __name__)
    elif name in _builtin.FOXGLOVE:
        made = getattr(foxglove, name)
    else:
        why = _hints.no_message(name, __all__)
        if _hints.is_from_import():
            raise ImportError(why, name=__name__)
        raise AttributeError(why, name=name)
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    return [*__all__, "foxglove"]
