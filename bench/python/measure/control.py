"""The talk with `compare`: orders on standard input, events on standard output, a line each."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Callable

STOP = {"stop": True}


class Stop:
    """The stop signal of a worker."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._callbacks: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    def is_set(self) -> bool:
        """Whether the stop was requested."""
        return self._event.is_set()

    def wait(self) -> None:
        """Waits for the stop request."""
        self._event.wait()

    def on(self, callback: Callable[[], object]) -> None:
        """Calls `callback` at the stop request, on another thread; at once if already requested."""
        with self._lock:
            if not self._event.is_set():
                self._callbacks.append(callback)
                return
        callback()

    def set(self) -> None:
        """Requests the stop."""
        with self._lock:
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()


class Orders:
    """Orders arriving on standard input; the end of the input is an order to stop."""

    def __init__(self) -> None:
        self.spec = json.loads(sys.stdin.readline())
        self._lines: queue.SimpleQueue[dict] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="orders", daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            self._lines.put(json.loads(line))
        self._lines.put(STOP)

    def next(self, timeout_s: float | None = None) -> dict | None:
        """The next order, or None after the time."""
        try:
            return self._lines.get(timeout=timeout_s)
        except queue.Empty:
            return None


class Events:
    """Standard output for events alone: output of libraries goes to standard error."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._lock = threading.Lock()

    def tell(self, event: str, **fields: object) -> None:
        """Writes one event."""
        line = json.dumps({"event": event, **fields})
        with self._lock:
            self._out.write(line + "\n")
            self._out.flush()
