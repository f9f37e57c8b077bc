"""Recording from Python, with the program ``rnet record``.

The recorder is a separate process, so it does not wait for the interpreter lock. If this process ends for any reason,
the recorder completes the file.
"""

from __future__ import annotations

import json
import logging
import math
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from . import programs
from .errors import ClosedError, RecordFailedError, WaitTimeoutError
from .event_loop import run_in_thread

_LOGGER = logging.getLogger("rnet.record")


@dataclass(frozen=True)
class RecordingReport:
    """Progress or result of a recording.

    ``files`` are the existing files, the current one last. ``missing`` is the number of messages that are not in them,
    and ``losses`` gives the number for each topic, node and cause. Both count the ``followed`` publishers. ``unheard``
    gives, for each topic, node and reason, the number of publishers that the recorder found but could not follow, or
    not to their end. ``seconds`` is the duration.
    """

    seconds: float
    messages: int
    missing: int
    losses: dict[tuple[str, str, str], int]
    followed: int
    unheard: dict[tuple[str, str, str], int]
    files: list[Path]
    file_bytes: int
    disk_is_full: bool


def record(
    file: str | os.PathLike[str],
    *topics: str,
    exclude: Iterable[str] = (),
    types: Iterable[str] = (),
    nodes: Iterable[str] = (),
    hosts: Iterable[str] = (),
    compress: Literal["zstd", "lz4", "none"] = "zstd",
    raw: bool = False,
    ros2: bool = False,
    state: bool = True,
    duration: float | None = None,
    split_size: int | None = None,
    split_time: float | None = None,
    max_disk: int | None = None,
    while_topic: str | None = None,
    domain: str | None = None,
    dir: str | os.PathLike[str] | None = None,
    group: str | None = None,
) -> Recording:
    """Records topics, state and parameters into an MCAP file, as ``rnet record`` does, without slowing publishers.

    Everything is recorded, unless ``topics``, ``types``, ``nodes`` or ``hosts`` are given; topics and nodes may be
    patterns, in which ``*`` matches one part of a name and ``**`` any number. ``duration`` and ``split_time`` are in s,
    ``split_size`` and ``max_disk`` in bytes. With ``ros2`` the file is for ROS 2, and messages without a ROS 2
    counterpart are omitted and counted. ``domain``, ``dir`` and ``group`` are those of :class:`Node`.

    Returns when it is recording: messages that followed publishers send from then on are in the file, or counted as
    missing. It ends with :meth:`Recording.stop`, at the end of a ``with`` block, after ``duration``, and with this
    process.

    >>> with rnet.record("arm.mcap", "/arm/**") as recording:
    ...     move_the_arm()
    >>> print(recording.report.messages, recording.report.missing)

    Raises :class:`RecordFailedError`: the file already exists or cannot be created, a pattern is invalid, or the program
    ``rnet`` is not installed.
    """
    program = programs.find()
    if program is None:
        raise RecordFailedError(programs.MISSING)
    command = [program, "--json"]
    for option, value in (("--domain", domain), ("--dir", dir), ("--group", group)):
        command += [f"{option}={os.fspath(value)}"] if value is not None else []
    command += ["record", f"--output={os.fspath(file)}", f"--compress={compress}", f"--parent={os.getpid()}"]
    for option, values in (("--exclude", exclude), ("--type", types), ("--node", nodes), ("--host", hosts)):
        command += [f"{option}={value}" for value in values]
    given = {
        "--for": duration,
        "--split-size": split_size,
        "--split-time": split_time,
        "--max-disk": max_disk,
        "--while": while_topic,
    }
    command += [f"{option}={value}" for option, value in given.items() if value is not None]
    command += ["--raw"] if raw else []
    command += ["--ros2"] if ros2 else []
    command += [] if state else ["--no-state"]
    return Recording([*command, "--", *topics], os.fspath(file))


class Recording:
    """A recording started by :func:`record`. Messages of the recorder go to the logger ``rnet.record``."""

    def __init__(self, command: list[str], file: str) -> None:
        self._owner = os.getpid()
        self._what = f"the recording {file}"
        self._was_entered = False
        self._changed = threading.Condition()
        self._report: RecordingReport | None = None
        self._is_over = False
        self._messages: list[str] = []
        try:
            # A separate session, so that Ctrl-C reaches only this process.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise RecordFailedError(f"cannot start {command[0]}: {error}") from error
        assert self._process.stdout is not None and self._process.stderr is not None
        self._errors = threading.Thread(target=self._read_errors, args=(self._process.stderr,), daemon=True)
        self._errors.start()
        threading.Thread(target=self._read_reports, args=(self._process.stdout,), daemon=True).start()
        try:
            self._wait_until(lambda: self._report is not None or self._is_over, None)
        except BaseException:
            self._process.send_signal(signal.SIGINT)
            raise
        if self._report is None:
            raise RecordFailedError(" ".join(self._messages) or "the recorder exited before it started to record")

    @property
    def report(self) -> RecordingReport:
        """Progress as of the last second; after the end, the result."""
        with self._changed:
            assert self._report is not None
            return self._report

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        with self._changed:
            return self._is_over

    def wait(self, *, timeout: float | None = None) -> RecordingReport:
        """Waits until the recording has ended, at most ``timeout`` s, and returns the result.

        Raises :class:`WaitTimeoutError`, after which the recording continues; :class:`RecordFailedError` if the recorder failed.
        """
        if not self._wait_until(lambda: self._is_over, timeout):
            raise WaitTimeoutError(f"the recording has not ended after {timeout} s")
        if self._process.returncode not in (0, 130):
            raise RecordFailedError(" ".join(self._messages) or f"the recorder exited with {self._process.returncode}")
        return self.report

    def stop(self, *, timeout: float | None = None) -> RecordingReport:
        """Completes the file with all messages sent before, and returns the result, as :meth:`wait`."""
        with self._changed:
            if not self._is_over and os.getpid() == self._owner:
                self._process.send_signal(signal.SIGINT)
        return self.wait(timeout=timeout)

    def __enter__(self) -> Recording:
        if self._was_entered:
            why = "was already used in a with block, which ends it; start another one with rnet.record"
            raise ClosedError(f"{self._what} {why}", what=self._what)
        self._was_entered = True
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Recording:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        await run_in_thread(self.stop)

    def __repr__(self) -> str:
        report = self.report
        of = f"{report.messages} messages, {report.missing} missing of {report.followed} publishers followed"
        return f"Recording({of}, {sum(report.unheard.values())} not received)"

    def _read_reports(self, lines: IO[str]) -> None:
        with lines:
            for line in lines:
                report = _report(json.loads(line))
                with self._changed:
                    self._report = report
                    self._changed.notify_all()
        self._errors.join()
        # Reaped under the lock: a signal sent under it cannot reach another process with the same id.
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        with self._changed:
            self._process.wait()
            self._is_over = True
            self._changed.notify_all()

    def _read_errors(self, lines: IO[str]) -> None:
        with lines:
            self._read_error_lines(lines)

    def _read_error_lines(self, lines: IO[str]) -> None:
        for line in lines:
            try:
                said = json.loads(line)["error"]["message"]
            except ValueError:
                said = line.rstrip("\n").removeprefix("rnet: ")
            with self._changed:
                self._messages.append(said)
                is_begun = self._report is not None
            if is_begun:
                _LOGGER.warning("%s", said)

    def _wait_until(self, holds: Callable[[], bool], timeout: float | None) -> bool:
        if os.getpid() != self._owner:
            raise ClosedError("the recording belongs to the process that started it, not to this forked child")
        with self._changed:
            return self._changed.wait_for(holds, None if timeout == math.inf else timeout)


def _report(said: dict[str, Any]) -> RecordingReport:
    losses = {(loss["topic"], loss["node"], loss["cause"]): loss["count"] for loss in said["losses"]}
    unheard = {(one["topic"], one["node"], one["why"]): one["count"] for one in said["unheard"]}
    files = [Path(file) for file in [*said["ended"], said["file"]] if file is not None]
    return RecordingReport(
        seconds=said["seconds"],
        messages=said["messages"],
        missing=said["missing"],
        losses=losses,
        followed=said["followed"],
        unheard=unheard,
        files=files,
        file_bytes=said["file_bytes"],
        disk_is_full=said["disk_is_full"],
    )
