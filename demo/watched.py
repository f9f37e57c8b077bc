"""What it costs a robot to be watched: `python demo/watched.py`, on a quiet machine, after `make build`.

A robot of ten processes (`rnet bench topology`) runs unobserved and with all watchers in turn, some times each, in one
go: so both meet the same machine. Watchers that this `rnet` does not have are left out, and named. Prints for each topic
the p99 of its latency, as median (minimum to maximum) of the runs, and the ratio of the medians.
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import pty
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = 1.1
# Prometheus looks more seldom.
METRICS_EVERY_S = 1.0
APPEARS_WITHIN_S = 30.0


class Watchers:
    """The programs that look on while a robot runs."""

    def __init__(self, rnet):
        self.rnet = rnet
        said = subprocess.run([rnet, "--help"], check=True, capture_output=True, text=True).stdout
        has = {line.split()[0] for line in said.splitlines() if line.startswith("  ") and line.split()}
        self.names = [name for name in ("top", "dashboard", "record", "metrics") if name in has]
        self.missing = [name for name in ("top", "dashboard", "record", "metrics") if name not in has]

    @contextlib.contextmanager
    def of(self, place, domain, folder):
        """All of them, on this domain, until the end of the block; gives what has ended too early."""
        where = ["--dir", str(place), "--domain", domain]
        ended = []
        with contextlib.ExitStack() as ends:
            if "top" in self.names:
                ends.enter_context(self._on_terminal([self.rnet, "top", *where], ended))
            if "dashboard" in self.names:
                ends.enter_context(self._runs([self.rnet, "dashboard", "--port", "0", *where], ended))
            if "record" in self.names:
                file = str(folder / f"{time.monotonic_ns()}.mcap")
                ends.enter_context(self._runs([self.rnet, "record", "-o", file, *where], ended))
            if "metrics" in self.names:
                ends.enter_context(self._again_and_again([self.rnet, "metrics", *where]))
            yield ended

    @contextlib.contextmanager
    def _runs(self, command, ended, **streams):
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **streams}
        process = subprocess.Popen(command, **streams)
        try:
            yield
        finally:
            if process.poll() is not None:
                ended.append(f"{command[1]} ended with {process.returncode}")
            process.terminate()
            process.wait()

    @contextlib.contextmanager
    def _on_terminal(self, command, ended):
        outer, inner = pty.openpty()
        # Somebody reads what it draws.
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
    def _again_and_again(self, command):
        over = threading.Event()

        def ask():
            while not over.wait(METRICS_EVERY_S):
                subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _drain(terminal):
    with contextlib.suppress(OSError):
        while os.read(terminal, 65536):
            pass


def domain_of(base, robot):
    """The directory and the name of the robot's domain, once it is there."""
    end = time.monotonic() + APPEARS_WITHIN_S
    while time.monotonic() < end and robot.poll() is None:
        for path in base.glob(f"robot-net-bench-{robot.pid}-*/rnet-*-*"):
            return path.parent, path.name.split("-", 2)[2]
        time.sleep(0.01)
    raise SystemExit(f"the robot has not begun: {robot.communicate()[1]}")


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
        raise SystemExit(f"the robot ended with {robot.returncode}: {why}")
    # The robot is gone before they are told to end, which none of them takes for an end of its own.
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
    parser.add_argument("--rnet", default=str(ROOT / "target" / "release" / "rnet"), help="the program")
    options = parser.parse_args()
    watchers = Watchers(options.rnet)
    print(f"watchers: {', '.join(watchers.names)}", file=sys.stderr)
    if watchers.missing:
        print(f"not in this rnet: {', '.join(watchers.missing)}", file=sys.stderr)
    alone, watched = [], []
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="rnet-watched-") as base, tempfile.TemporaryDirectory() as folder:
        base, folder = pathlib.Path(base), pathlib.Path(folder)
        for n in range(options.rounds):
            # In turn, and the other way round each second time: what drifts is in both.
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
