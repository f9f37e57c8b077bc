"""The built-in messages, each compiled when it is asked for."""

from __future__ import annotations

import sys
from typing import Any

from . import _rnet, pools

__all__ = ["FOXGLOVE", "OWN", "message", "named"]


def _in_folder(folder: str) -> dict[str, str]:
    """Import path by name of the messages in a folder: each file is named after its message."""
    inside = (path for path in _rnet.BUILTIN_FILES if path.startswith(folder))
    return {path[len(folder) :].removesuffix(".proto"): path for path in inside}


#: What `rnet.msgs` has of its own: name of the message to import path of its file.
OWN = _in_folder("rnet/msgs/")
#: The Foxglove messages.
FOXGLOVE = _in_folder("foxglove/")


def message(path: str, module: str) -> Any:
    """The class of the message that a file is named after."""
    text = f'syntax = "proto3"; import "{path}";'
    # Behind the files that are wanted stands the one that asks for them.
    files = pools.files_of(_rnet.compile_text(text, "", {}, []), module)[:-1]
    pool, _ = pools.place([files], module)
    cls: Any = pool.message(path.removesuffix(".proto").replace("/", "."))
    # What pickle imports it from. A class that the runtime made for a field says where that was.
    if getattr(sys.modules.get(cls.__module__), cls.__name__, None) is not cls:
        cls.__module__ = module
    return cls


def named(full_name: str) -> Any:
    """The built-in message of a full name; TypeError if there is none."""
    for package, messages in (("rnet.msgs", OWN), ("foxglove", FOXGLOVE)):
        prefix, _, name = full_name.rpartition(".")
        if prefix == package and name in messages:
            module = "rnet.msgs" if messages is OWN else "rnet.msgs.foxglove"
            return message(messages[name], module)
    raise TypeError(
        f"there is no built-in message {full_name!r}: rnet.msgs has those of rnet.msgs and "
        "foxglove; give the class of another one"
    )
