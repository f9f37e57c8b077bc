"""Lines of a node's log, and the handler that connects Python's ``logging`` to it."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable
from typing import Any

from ._rnet import Logger, Node
from .errors import ClosedError

__all__ = ["LogHandler", "Logger"]


def _method(name: str, level: str, doc: str) -> Callable[..., None]:
    def log(self: Logger, text: object, /, *args: object) -> None:
        try:
            if self._is_enabled(level):
                here = sys._getframe()
                # If robot-net calls this method as a callback, Python code does not call it.
                caller = here.f_back or here
                self._log_from(level, _formatted(text, args), caller.f_code.co_filename, caller.f_lineno)
        except ClosedError:
            print(f"[{level.upper()}] [{self._node}]: {_formatted(text, args)}", file=sys.stderr)

    log.__name__, log.__qualname__, log.__doc__ = name, f"Logger.{name}", doc
    return log


def _formatted(text: Any, args: tuple[object, ...]) -> str:
    """The formatted line. If formatting fails, the line contains the reason: logging does not raise."""
    try:
        line = str(text) % args if args else str(text)
    except Exception as error:
        why = "".join(traceback.format_exception_only(error)).strip()
        line = f"{_shown(text)} % {_shown(args)} ({why})" if args else f"text that cannot be shown ({why})"
    # A lone surrogate is not valid text.
    return line.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _shown(value: object) -> str:
    try:
        return repr(value)
    except Exception:
        return "?"


for _name, _level, _doc in (
    ("debug", "debug", "Logs a line for debugging."),
    ("info", "info", "Logs a line about normal operation."),
    ("warning", "warning", "Logs a line about something unexpected that does not stop the work."),
    ("warn", "warning", "Same as :meth:`warning`; the name in rclpy."),
    ("error", "error", "Logs a line about something that failed."),
    ("fatal", "fatal", "Logs a line about why the program exits; it does not exit the program."),
):
    setattr(Logger, _name, _method(_name, _level, _doc))


class LogHandler(logging.Handler):
    """Publishes the records of Python's ``logging`` on ``/log``, as lines of a node.

    It formats them as its formatter says; without one, as the message and the traceback. Where nodes log often,
    the limits of :class:`Logger` hold. Records that come after the node was closed are dropped.

    >>> import logging
    >>> arm = rnet.Node("arm")
    >>> handler = rnet.log.LogHandler(arm)
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
            self._log._publish(_level_of(record.levelno), self.format(record), record.pathname, record.lineno)
        except ClosedError:
            pass
        except Exception:
            self.handleError(record)


def _level_of(level: int) -> str:
    """The level for a number of ``logging``, which may lie between its named levels."""
    for number, name in (
        (logging.CRITICAL, "fatal"),
        (logging.ERROR, "error"),
        (logging.WARNING, "warning"),
        (logging.INFO, "info"),
    ):
        if level >= number:
            return name
    return "debug"
