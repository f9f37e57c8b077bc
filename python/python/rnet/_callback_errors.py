"""The text that the native module reports for an exception of a callback."""

from __future__ import annotations

import traceback


def describe(error: BaseException) -> tuple[str, str, int]:
    """The exception with its traceback, and the file and the line that raised it.

    The exception comes first: a line of the log is cut at its end.
    """
    frames = traceback.extract_tb(error.__traceback__)
    file, line = (frames[-1].filename, frames[-1].lineno or 0) if frames else ("", 0)
    said = "".join(traceback.format_exception_only(error)).strip()
    trace = "".join(traceback.format_tb(error.__traceback__)).rstrip()
    return (f"{said}\nTraceback (most recent call last):\n{trace}" if trace else said), file, line
