"""Measures the cost of observing a robot: `python demo/watched.py`, on a quiet machine, after `make build`.

A robot of ten processes (`rnet bench topology`) runs unobserved and observed in turn, several times each, so
that both see the same machine. The observers are `rnet top`, `rnet dashboard` with one page that shows
figures and is scraped for metrics each second, and `rnet record`, all at once; or those named by --only,
including `blackbox`. Prints for each topic the p99 of its latency, as median (minimum to maximum) of the
runs, and the ratio of the medians. The exit code is 0 if the geometric mean of the ratios is within the
target: the p99 of a single topic differs by more from run to run.
"""

import argparse
import base64
import contextlib
import fcntl
import http.client
import json
import math
import os
import pathlib
import pty
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = 1.1
# Prometheus scrapes less often.
METRICS_EVERY_S = 1.0
APPEARS_WITHIN_S = 30.0
TOGETHER = ("top", "dashboard", "record")


class Watchers:
    """The programs that observe a running robot."""

    def __init__(self, rnet, names):
        self.rnet, self.names = rnet, names

    @contextlib.contextmanager
    def of(self, place, domain, folder):
        """Runs all of them in this domain until the end of the block; yields those that exited too early."""
        where = ["--dir", str(place), "--domain", domain]
        ended = []
        with contextlib.ExitStack() as ends:
            if "top" in self.names:
                ends.enter_context(self._on_terminal([self.rnet, "top", *where], ended))
            if "dashboard" in self.names:
                command = [self.rnet, "dashboard", "--port", "0", *where]
                server = ends.enter_context(self._runs(command, ended, stderr=subprocess.PIPE, text=True))
                port = int(server.stderr.readline().rstrip().rstrip("/").rpartition(":")[2])
                ends.enter_context(_page(port))
                ends.enter_context(_scrapes(port))
            if "record" in self.names:
                file = str(folder / f"{time.monotonic_ns()}.mcap")
                ends.enter_context(self._runs([self.rnet, "record", "-o", file, *where], ended))
            if "blackbox" in self.names:
                command = [self.rnet, "blackbox", "run", "-o", str(folder), *where]
                ends.enter_context(self._runs(command, ended))
            yield ended

    @contextlib.contextmanager
    def _runs(self, command, ended, **streams):
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **streams}
        process = subprocess.Popen(command, **streams)
        try:
            yield process
        finally:
            if process.poll() is not None:
                ended.append(f"{command[1]} exited with {process.returncode}")
            process.terminate()
            process.wait()
            if process.stderr:
                process.stderr.close()

    @contextlib.contextmanager
    def _on_terminal(self, command, ended):
        outer, inner = pty.openpty()
        # A terminal of 80 × 24: without a size, nothing is drawn.
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        # The output has to be read.
        reader = threading.Thread(target=_drain, args=(outer,), daemon=True)
        reader.start()
        try:
            with self._runs(command, ended, stdin=inner, stdout=inner, stderr=inner):
                os.close(inner)
                yield
        finally:
            reader.join()
            os.close(outer)


@contextlib.contextmanager
def _page(port):
    """A page of the dashboard that shows figures, like an open browser page."""
    said = b'{"id": 1, "op": "sub", "what": "figures", "interval_ms": 500}'
    mask = os.urandom(4)
    frame = bytes([0x81, 0x80 | len(said)]) + mask + bytes(c ^ mask[at % 4] for at, c in enumerate(said))
    key = base64.b64encode(os.urandom(16)).decode()
    ask = (
        f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(ask.encode())
        received = b""
        while b"\r\n\r\n" not in received:
            received += connection.recv(4096) or sys.exit("the dashboard closed the connection of its page")
        if b" 101 " not in received.partition(b"\r\n")[0]:
            sys.exit(f"the dashboard does not serve a page: {received!r}")
        connection.sendall(frame)
        reader = threading.Thread(target=_drain, args=(connection.fileno(),), daemon=True)
        reader.start()
        try:
            yield
        finally:
            connection.shutdown(socket.SHUT_RDWR)
            reader.join()


@contextlib.contextmanager
def _scrapes(port):
    """Requests metrics, as Prometheus does."""
    over = threading.Event()
    failed = []

    def ask():
        while not over.wait(METRICS_EVERY_S):
            server = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            server.request("GET", "/metrics")
            answer = server.getresponse()
            if answer.status != 200 or b"rnet_" not in answer.read():
                failed.append(answer.status)
            server.close()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if failed:
        sys.exit(f"/metrics answered with {failed[0]}, without metrics")


def _drain(terminal):
    with contextlib.suppress(OSError):
        while os.read(terminal, 65536):
            pass


def domain_of(base, robot):
    """The directory and the name of the robot's domain, once it exists."""
    end = time.monotonic() + APPEARS_WITHIN_S
    while time.monotonic() < end and robot.poll() is None:
        for path in base.glob(f"robot-net-bench-{robot.pid}-*/rnet-*-*"):
            return path.parent, path.name.split("-", 2)[2]
        time.sleep(0.01)
    raise SystemExit(f"the robot did not start: {robot.communicate()[1]}")


def run(rnet, base, seconds, watchers=None, folder=None):
    """One run; p99 in µs by topic."""
    command = [rnet, "bench", "topology", "--repeats", "1", "--seconds", str(seconds), "--json", "--dir", str(base)]
    robot = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ended = []
    if watchers is None:
        said, why = robot.communicate()
    else:
        with watchers.of(*domain_of(base, robot), folder) as ended:
            said, why = robot.communicate()
    if robot.returncode != 0:
        raise SystemExit(f"the robot exited with {robot.returncode}: {why}")
    # The robot is gone before the observers are told to exit; none of them must exit because of that.
    if ended:
        raise SystemExit("; ".join(ended))
    result = json.loads(said)
    topics = result.get("result", result)["topics"]
    return {t["topic"]: t["p99_latency_ns"]["median"] / 1e3 for t in topics if t["p99_latency_ns"]}


def spread(values):
    return f"{statistics.median(values):8.1f} ({min(values):.1f} to {max(values):.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="runs of each kind (default 9)")
    parser.add_argument("--seconds", type=float, default=5, help="length of a run (default 5)")
    names = (*TOGETHER, "blackbox")
    parser.add_argument("--only", nargs="+", choices=names, default=TOGETHER, help="watchers (default all but blackbox)")
    parser.add_argument("--rnet", default=str(ROOT / "target" / "release" / "rnet"), help="path of rnet")
    options = parser.parse_args()
    watchers = Watchers(options.rnet, options.only)
    print(f"watchers: {', '.join(watchers.names)}", file=sys.stderr)
    alone, watched = [], []
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="rnet-watched-") as base, tempfile.TemporaryDirectory() as folder:
        base, folder = pathlib.Path(base), pathlib.Path(folder)
        for n in range(options.rounds):
            # Alternately, in reversed order every second time, so that a drift affects both.
            kinds = [(alone, None), (watched, watchers)]
            for runs, who in kinds if n % 2 == 0 else reversed(kinds):
                runs.append(run(options.rnet, base, options.seconds, who, folder))
            print(f"round {n + 1} of {options.rounds}", file=sys.stderr)
    print(f"{'p99 in us':24} {'unobserved':>30} {'watched':>30} {'ratio':>6}")
    ratios = []
    for topic in sorted(alone[0]):
        before, now = [r[topic] for r in alone], [r[topic] for r in watched]
        ratios.append(statistics.median(now) / statistics.median(before))
        print(f"{topic:24} {spread(before):>30} {spread(now):>30} {ratios[-1]:6.2f}")
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"geometric mean of the ratios: {mean:.3f}, target {TARGET}; the worst: {max(ratios):.2f}")
    return 0 if mean <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
