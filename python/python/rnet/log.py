"""What connects Python's ``logging`` with the log of a node."""

from __future__ import annotations

import logging

from ._rnet import Node
from .errors import Closed


class LogHandler(logging.Handler):
    """Publishes the records of Python's ``logging`` on ``/log``, as lines of a node.

    It formats them as its formatter says; without one, as the message and the traceback. Where nodes log often,
    the limits of :class:`Logger` hold. Records that come after the node was closed are dropped.

    >>> import logging
    >>> arm = rnet.Node("arm")
    >>> handler = rnet.LogHandler(arm)
    >>> logging.getLogger("arm.motor").addHandler(handler)
    >>> logging.getLogger("arm.motor").error("joint %d does not move", 3)
    >>> logging.getLogger("arm.motor").removeHandler(handler)
    >>> arm.close()
    """

    def __init__(self, node: Node, level: int | str = logging.NOTSET) -> None:
        super().__init__(level)
        self._log = node.log

    def emit(self, record: logging.LogRecord) -> None:
        """Publishes a record."""
        try:
            self._log.publish(_name(record.levelno), self.format(record), record.pathname, record.lineno)
        except Closed:
            pass
        except Exception:
            self.handleError(record)


def _name(level: int) -> str:
    """The level of a number of ``logging``, between whose levels there may be others."""
    for number, name in (
        (logging.CRITICAL, "fatal"),
        (logging.ERROR, "error"),
        (logging.WARNING, "warning"),
        (logging.INFO, "info"),
    ):
        if level >= number:
            return name
    return "debug"
