"""The built-in messages, each compiled when it is asked for."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from . import _rnet, pools

__all__ = ["FOXGLOVE", "OWN", "PLAIN", "message", "named"]


def _in_folder(folder: str) -> dict[str, str]:
    """Import path by name of the messages in a folder: each file is named after its message."""
    inside = (path for path in _rnet.BUILTIN_FILES if path.startswith(folder))
    return {path[len(folder) :].removesuffix(".proto"): path for path in inside}


#: The messages of `rnet.msgs` itself: name of the message to import path of its file.
OWN = _in_folder("rnet/msgs/")
#: The Foxglove messages.
FOXGLOVE = _in_folder("foxglove/")
#: The messages that are not protobuf, with their modules in `rnet.msgs`.
PLAIN = {"Image": ".image", "PointCloud": ".point_cloud", "Tensor": ".tensor"}


def message(path: str, module: str) -> Any:
    """The class of the message that a file is named after."""
    text = f'syntax = "proto3"; import "{path}";'
    # The last file is the text above, which imports the others.
    files = pools.files_of(_rnet.compile_text(text, "", {}, []), module)[:-1]
    pool, _ = pools.place([files], module, ours=True)
    cls: Any = pool.message(path.removesuffix(".proto").replace("/", "."))
    # The module that pickle imports the class from. For a nested message class the runtime has set another
    # one. Not by getattr: our own modules call this for names that they do not have yet.
    if vars(sys.modules.get(cls.__module__, object)).get(cls.__name__) is not cls:
        cls.__module__ = module
    return cls


def named(name: str) -> Any:
    """The built-in message with a name, as the command line accepts names; None if it does not exist.

    That is its full name, the path it is imported by, or the end of one, if no other ends so.
    Raises TypeError for an ambiguous name.
    """
    dotted = name.lstrip(".").replace("/", ".")
    known = {f"rnet.msgs.{own}": (OWN[own], "rnet.msgs") for own in OWN}
    for theirs in FOXGLOVE:
        known[f"foxglove.{theirs}"] = (FOXGLOVE[theirs], "rnet.msgs.foxglove")
    short = dotted.removeprefix("rnet.").removeprefix("msgs.")
    if dotted not in known and short in PLAIN:
        return getattr(importlib.import_module(PLAIN[short], "rnet.msgs"), short)
    meant = _rnet.find_types(name, list(known))
    if len(meant) > 1:
        several = ", ".join(sorted(meant))
        raise TypeError(f"{name} is ambiguous, {len(meant)} types match: {several}; use the full name of one")
    return message(*known[meant[0]]) if meant else None
