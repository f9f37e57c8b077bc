"""Import of numpy on demand: the package works without it."""

from __future__ import annotations

from typing import Any

from .errors import MissingNumpyError

__all__ = ["numpy"]


def numpy(what: str) -> Any:
    """The module. Raises MissingNumpyError, which names the feature that needs it."""
    try:
        import numpy as module
    except ImportError:
        raise MissingNumpyError(
            f"{what} needs numpy, which is not installed: pip install numpy", what=what
        ) from None
    return module
