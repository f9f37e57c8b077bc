"""Launching a robot from Python, with the program ``rnet launch``.

:func:`launch` starts the program ``rnet``, which the package contains, follows its table of nodes, and stops it. It runs
in its own session, so that Ctrl-C reaches only this process. It dies with this process, like a killed launcher: the
nodes continue, and the next launch takes them over.
"""

from __future__ import annotations

import atexit
import json
import logging
import math
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import programs
from .errors import ClosedError, LaunchFailedError, WaitTimeoutError
from .event_loop import run_in_thread

__all__ = ["Launch", "LaunchedNode", "launch"]

_LOGGER = logging.getLogger("rnet.launch")


@dataclass(frozen=True)
class LaunchedNode:
    """A node of a launch.

    ``state`` is ``waiting``, ``running``, ``backoff``, ``ended``, ``given-up``, ``stopped`` or ``stopping``. ``pid`` is
    its process while it runs, ``restarts`` the number of its restarts, and ``detail`` how it exited.
    """

    name: str
    state: str
    is_ready: bool
    pid: int | None
    restarts: int
    detail: str


def launch(
    file: str | os.PathLike[str] | None = None,
    *,
    host: str | None = None,
    set: Mapping[str, object] | None = None,
    reload: bool = False,
    domain: str | None = None,
    dir: str | os.PathLike[str] | None = None,
    group: str | None = None,
    env: Mapping[str, str] | None = None,
    within: Sequence[str] = (),
) -> Launch:
    """Starts the nodes of a ``robot.toml`` and keeps them running, as ``rnet launch`` does.

    ``file`` is ``RNET_CONFIG`` or ``robot.toml`` by default. ``host`` starts the nodes of that host, ``set`` overrides
    variables of the file, ``reload`` follows changes of the file. ``domain``, ``dir`` and ``group`` are those of
    :class:`Node`. ``env`` is the environment of the launcher and the nodes, by default that of this process. ``within``
    is a command prefix of the launcher, such as ``nsenter`` or ``chrt`` with arguments; that program must replace
    itself with the launcher (exec).

    Returns when all nodes that do not depend on others have been started. They are stopped by :meth:`Launch.stop`, at
    the end of a ``with`` block, and when the interpreter exits. If the interpreter is killed, they continue, and the
    next launch of the file takes them over.

    >>> with rnet.launch("robot.toml") as robot:
    ...     robot.wait_ready(timeout=10)
    ...     robot.wait()

    Raises :class:`LaunchFailedError` for an error in the file, with file, line, key and the expected value; if the file is
    already launched; and if the program ``rnet`` is not installed.
    """
    for name, value in (env or {}).items():
        if not (isinstance(name, str) and isinstance(value, str)):
            raise TypeError(f"env of a launch: {name!r} is {value!r}; names and values must be str")
    command = [*within, _program()]
    for option, given in (("--domain", domain), ("--dir", dir), ("--group", group)):
        command += [f"{option}={os.fspath(given)}"] if given is not None else []
    command += ["--json", "launch", "--watch", f"--parent={os.getpid()}"]
    command += ["--reload"] if reload else []
    command += [f"--host={host}"] if host is not None else []
    command += [f"--set={name}={_text(value)}" for name, value in (set or {}).items()]
    return Launch([*command, "--", os.fspath(file)] if file is not None else command, env)


class Launch:
    """A robot started by :func:`launch`. Messages of the launcher go to the logger ``rnet.launch``."""

    def __init__(self, command: list[str], env: Mapping[str, str] | None) -> None:
        self._owner = os.getpid()
        self._changed = threading.Condition()
        self._process: subprocess.Popen[str] | None = None
        self._nodes: dict[str, LaunchedNode] | None = None
        self._messages: list[str] = []
        self._exit_code: int | None = None
        self._failure: Exception | None = None
        self._stop_sent = False
        threading.Thread(target=self._run_launcher, args=(command, env), name="rnet launch", daemon=True).start()
        try:
            self._wait_until(lambda: self._nodes is not None or self._exit_code is not None, None)
        except BaseException:
            self._send_stop()
            raise
        if self._nodes is None:
            raise self._failed("nothing was launched") from self._failure
        atexit.register(self._at_exit)

    @property
    def nodes(self) -> dict[str, LaunchedNode]:
        """The nodes by name, in the order of their start, with their current or final state."""
        with self._changed:
            return dict(self._nodes or {})

    @property
    def exit_code(self) -> int | None:
        """0 if all nodes exited successfully, 1 if one was given up or never started, 130 if the launch was stopped;
        None while it runs."""
        with self._changed:
            return self._exit_code

    def wait_ready(self, *, timeout: float | None = None) -> None:
        """Waits until every node is ready, at most ``timeout`` s.

        Raises :class:`LaunchFailedError` if a node is given up or the launch ends first, :class:`WaitTimeoutError` with the nodes
        that are not ready.
        """

        def lost() -> list[LaunchedNode]:
            return [node for node in (self._nodes or {}).values() if node.state == "given-up"]

        def missing() -> list[str]:
            return [node.name for node in (self._nodes or {}).values() if not node.is_ready]

        def is_over() -> bool:
            return bool(lost()) or not missing() or self._exit_code is not None

        if not self._wait_until(is_over, timeout):
            names = ", ".join(missing())
            raise WaitTimeoutError(f"{names}: not ready after {timeout} s; `rnet node logs` shows a node's output")
        if lost():
            raise LaunchFailedError("; ".join(f"{node.name} is given up: {node.detail}" for node in lost()))
        if missing():
            raise self._failed(f"{', '.join(missing())}: never ready")

    def wait(self, *, timeout: float | None = None) -> int:
        """Waits until the launch has ended, at most ``timeout`` s, and returns its :attr:`exit_code`.

        Raises :class:`WaitTimeoutError`; the nodes continue.
        """
        if not self._wait_until(lambda: self._exit_code is not None, timeout):
            raise WaitTimeoutError(f"the launch has not ended after {timeout} s")
        assert self._exit_code is not None
        return self._exit_code

    def stop(self, *, timeout: float | None = None) -> int:
        """Stops the nodes, first those that no other depends on, and returns the :attr:`exit_code`.

        Each node has its ``interrupt_timeout_s`` and ``stop_timeout_s`` before it is killed. Raises :class:`WaitTimeoutError`
        after ``timeout`` s; stopping then continues. Does nothing if the launch has ended.
        """
        self._check_owner()
        self._send_stop()
        return self.wait(timeout=timeout)

    def __enter__(self) -> Launch:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Launch:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        await run_in_thread(self.stop)

    def __repr__(self) -> str:
        return f"Launch({', '.join(f'{node.name}: {node.state}' for node in self.nodes.values())})"

    def _send_stop(self) -> None:
        """Stops the launcher, once: at a second signal it would exit at once, and the nodes would continue."""
        with self._changed:
            if self._process is not None and self._exit_code is None and not self._stop_sent:
                self._process.send_signal(signal.SIGTERM)
            self._stop_sent = True

    def _run_launcher(self, command: list[str], env: Mapping[str, str] | None) -> None:
        """Runs the launcher in this thread, which outlives it: for the kernel, the parent is the thread."""
        try:
            process = subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        # Every exception: otherwise a thread that waits for the launch would wait forever.
        except Exception as error:
            with self._changed:
                if not isinstance(error, OSError):
                    self._messages.append(f"{error} (in {command})")
                self._failure, self._exit_code = error, 1
                self._changed.notify_all()
            return
        with self._changed:
            self._process = process
            if self._stop_sent:
                process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        for line in process.stdout:
            self._handle_line(line.rstrip("\n"))
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with self._changed:
            # Reaped only here: a signal sent under this lock cannot reach another process with the same id.
            self._exit_code = process.wait()
            self._changed.notify_all()

    def _handle_line(self, line: str) -> None:
        """Handles a line of the launcher: a table, the final error, or a text message."""
        try:
            document = json.loads(line)
        except ValueError:
            document = None
        if not (isinstance(document, dict) and document.keys() & {"nodes", "error"}):
            document = {"error": {"message": line.removeprefix("rnet: ")}}
        with self._changed:
            rows = document.get("nodes")
            if rows is not None:
                self._nodes = {row["node"]: _row(row) for row in rows}
                self._messages.clear()
                self._changed.notify_all()
                return
            self._messages.append(document["error"]["message"])
            is_begun = self._nodes is not None
        if is_begun:
            _LOGGER.warning("%s", document["error"]["message"])

    def _wait_until(self, holds: Callable[[], bool], timeout: float | None) -> bool:
        self._check_owner()
        with self._changed:
            return self._changed.wait_for(holds, None if timeout == math.inf else timeout)

    def _failed(self, otherwise: str) -> LaunchFailedError:
        with self._changed:
            return LaunchFailedError(" ".join(self._messages) or str(self._failure or otherwise))

    def _check_owner(self) -> None:
        if os.getpid() != self._owner:
            raise ClosedError("the launch belongs to the process that started it, not to this forked child")

    def _at_exit(self) -> None:
        if os.getpid() == self._owner and self._exit_code is None:
            self.stop()


def _row(row: dict[str, Any]) -> LaunchedNode:
    return LaunchedNode(row["node"], row["state"], row["is_ready"], row["pid"], row["restarts"], row["detail"])


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _program() -> str:
    found = programs.find()
    if found is None:
        raise LaunchFailedError(programs.MISSING)
    return found
