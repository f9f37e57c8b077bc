"""numpy, for what needs it: the package works without."""

from __future__ import annotations

from typing import Any

from .errors import MissingNumpyError

__all__ = ["numpy"]


def numpy(what: str) -> Any:
    """The module. Raises MissingNumpyError, which names what asked for it."""
    try:
        import numpy as module
    except ImportError:
        raise MissingNumpyError(
            f"{what} needs numpy, which is not installed: pip install numpy", what=what
        ) from None
    return module
