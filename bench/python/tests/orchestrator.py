"""Runs two workers against each other, as `compare` does, and stops them."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2]
WORKER = BENCH / "python" / "worker.py"
ENVIRONMENTS = {"py-ecal": BENCH / ".venv-ecal" / "bin" / "python"}
STARTED_S = 20.0


def python_of(system: str) -> Path:
    """The Python that has the system's library."""
    return ENVIRONMENTS.get(system, Path(sys.executable))


def find_program(name: str) -> str | None:
    """A server's program."""
    places = [os.environ.get("PATH", ""), str(BENCH / ".tools" / "bin")]
    return shutil.which(name, path=os.pathsep.join(places))


def free_port() -> int:
    """A free TCP port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def ended(process: subprocess.Popen) -> Iterator[subprocess.Popen]:
    """Ends a process that was started."""
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


@contextlib.contextmanager
def server(broker: str, program: str, directory: Path) -> Iterator[int]:
    """A server on a free port."""
    port = free_port()
    if broker == "redis":
        words = f"--bind 127.0.0.1 --port {port} --dir {directory} --appendonly no"
        words += " --client-output-buffer-limit pubsub 0 0 0"
        command = [program, *words.split(), "--save", ""]
    else:
        config = directory / "nats.conf"
        config.write_text("max_payload: 8MB\nmax_pending: 1GB\nwrite_deadline: '60s'\n")
        command = [program, "-a", "127.0.0.1", "-p", str(port), "-c", str(config)]
    with (directory / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    with ended(process):
        deadline = time.monotonic() + STARTED_S
        while True:
            with contextlib.suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            assert process.poll() is None, f"{program} ended: see {directory}/server.log"
            assert time.monotonic() < deadline, f"{program} does not listen"
            time.sleep(0.01)  # sleep: a port has no condition to wait on
        yield port


class Worker:
    """One worker process."""

    def __init__(self, process: subprocess.Popen, spec: dict) -> None:
        self.process = process
        self._events: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        self.order(spec)

    def _read(self) -> None:
        for line in self.process.stdout:
            self._events.put(line)
        self._events.put("")

    def order(self, order: dict) -> None:
        """Writes a line."""
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def event(self, kind: str, timeout_s: float) -> dict:
        """Waits for an event, which must be of this kind."""
        try:
            line = self._events.get(timeout=timeout_s)
        except queue.Empty:
            raise AssertionError(f"no {kind!r} within {timeout_s} s") from None
        assert line, f"the worker ended, with {self.process.wait()}, before {kind!r}"
        event = json.loads(line)
        assert event["event"] == kind, event
        return event

    def stop(self, timeout_s: float = 20.0) -> None:
        """Ends it as `compare` does."""
        self.order({"stop": True})
        assert self.process.wait(timeout_s) == 0


@contextlib.contextmanager
def worker(spec: dict) -> Iterator[Worker]:
    """A worker with its specification."""
    command = [str(python_of(spec["system"])), str(WORKER)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=spec["net"]["dir"]
    )
    with ended(process):
        yield Worker(process, spec)


def carry(system: str, net: dict, topic: dict, loads: list[dict], timeout_s: float) -> list[tuple]:
    """Carries the loads from one worker to another; returns the sent and received messages of each."""
    common = {"system": system, "net": net, "phases": len(loads)}
    publishes = [{"topic": topic, "loads": loads}]
    subscribes = [{"topic": topic, "expects": [{"len": load["len"]} for load in loads]}]
    roles = [
        {"role": "peer", "publishes": publishes, "subscribes": []},
        {"role": "peer", "publishes": [], "subscribes": subscribes},
    ]
    with worker({**common, "role": roles[0]}) as sender:
        with worker({**common, "role": roles[1]}) as receiver:
            workers = [sender, receiver]
            for each in workers:
                each.event("ready", STARTED_S)
            results = []
            for phase in range(len(loads)):
                for each in workers:
                    each.order({"go": phase, "rates_hz": [None]})
                done = [each.event("done", timeout_s) for each in workers]
                assert [event["phase"] for event in done] == [phase, phase]
                results.append((done[0]["sent"][0], done[1]["received"][0]))
            for each in workers:
                each.stop()
    return results
