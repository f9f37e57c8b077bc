"""The processes of the demo: `rnet launch` starts them, and what they say and are told goes by pipes with names.

A node's stdin and stdout are two pipes in a folder (talk.sh), so that a node that is started again has those of the one
before. This process alone keeps the writing end of a stdin open: its end is the nodes' too, also when run.py is killed.
"""

import contextlib
import json
import os
import pathlib
import queue
import shutil
import signal
import threading
import time

import rnet

END_S = 5.0  # nodes have this long to end when told to
POLL_S = 0.05  # how often to look at the table of the launch
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class DemoFailed(Exception):
    """The demo cannot go on; the text says why."""


class Child:
    """A node. Its reports go to the crew's queue."""

    def __init__(self, crew, name):
        self.name, self.pid, self.started = name, None, 0
        self._crew, self._usage, self._cpu_start = crew, (0.0, 0.0, 0), (0.0, 0.0)
        self._commands, reports = (_pipe(crew.talk / f"{name}.{end}") for end in ("commands", "reports"))
        threading.Thread(target=self._listen, args=(reports,), name=f"hears {name}", daemon=True).start()

    def _listen(self, reports):
        with os.fdopen(reports, "rb") as lines:
            for line in lines:
                try:
                    report = json.loads(line)
                except ValueError:
                    report = {"event": "noise", "text": line.decode(errors="replace")}
                self._crew.reports.put((self, report))

    def set_pid(self, pid):
        """Takes note of its process. A new one is measured from its start."""
        if pid != self.pid:
            self.pid, self.started = pid, self.started + 1
            self._cpu_start = (0.0, time.monotonic())

    def begin_ns(self):
        """When its process was started, as CLOCK_MONOTONIC tells; to 10 ms."""
        since_boot_ns = int(self._stat()[19]) * 1_000_000_000 // _TICKS_PER_S
        return since_boot_ns - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + time.monotonic_ns()

    def tell(self, command):
        """Sends a command. One that does not reach a dead node is told of by the table."""
        os.write(self._commands, command.encode() + b"\n")

    def close_pipe(self):
        """Ends its stdin, which ends it."""
        os.close(self._commands)

    def kill(self):
        """SIGKILL, at once."""
        self._crew.expected.add(self.name)
        os.kill(self.pid, signal.SIGKILL)

    def measure_from_now(self):
        """CPU time counts from here."""
        self._cpu_start = (self._cpu_s(), time.monotonic())

    def _stat(self):
        # The name in parentheses may contain anything; the fields after it are fixed.
        return pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()

    def _cpu_s(self):
        try:
            fields = self._stat()
            return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
        except (OSError, IndexError):
            return self._usage[0]

    def usage(self):
        """(CPU time in s since measure_from_now, seconds since then, resident memory in kB), kept after its end."""
        try:
            status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
            rss_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
            cpu_s, since = self._cpu_start
            self._usage = (self._cpu_s() - cpu_s, time.monotonic() - since, rss_kb)
        except (OSError, StopIteration):
            pass  # ended: what was measured last stays
        return self._usage

    def log_tail(self):
        """The end of its log, indented, or an empty text."""
        logs = [path.read_text(errors="replace") for path in self._crew.folder.glob(f"launch/*/{self.name}.log")]
        return "".join(f"\n    {line}" for line in "".join(logs).splitlines()[-12:])


class NodeProcesses:
    """All nodes. A context: at its end no process is left."""

    def __init__(self, folder, file, env):
        self.folder, self.file, self.talk = folder, file, folder / "talk"
        self.env = {**env, **self.variables()}
        self.reports = queue.SimpleQueue()
        self.expected = set()  # nodes that were killed, and are started again
        self._launches = []  # (launch, its nodes)
        self._checked_s = 0.0

    def variables(self):
        """What the nodes' environment has besides."""
        return {"RNET_STATE_DIR": str(self.folder), "DEMO_TALK": str(self.talk)}

    def launch(self, names, settings, env=None, **more):
        """Launches the nodes of the file that have these names; {name: child}."""
        children = {name: Child(self, name) for name in names}
        try:
            launch = rnet.launch(self.file, set=settings, env={**(env or self.env), **self.variables()}, **more)
        except rnet.errors.LaunchFailedError as failure:
            raise DemoFailed(str(failure)) from failure
        self._launches.append((launch, children))
        self._check_nodes()
        return children

    def next_report(self, until):
        """(child, report), or None at the time `until` (time.monotonic()); DemoFailed if a node ended unasked."""
        while True:
            now = time.monotonic()
            if now >= self._checked_s + POLL_S:
                self._check_nodes()
            try:
                return self.reports.get(timeout=max(0.0, min(until, self._checked_s + POLL_S) - now))
            except queue.Empty:
                if time.monotonic() >= until:
                    return None

    def _check_nodes(self):
        self._checked_s = time.monotonic()
        for launch, children in self._launches:
            table = launch.nodes
            for name, child in children.items():
                node = table[f"/{name}"]
                if node.pid is not None:
                    child.set_pid(node.pid)
                elif name not in self.expected:
                    words = child.log_tail() or " nothing"
                    raise DemoFailed(f"{name} exited: {node.detail}; its log ends with:{words}")
            if launch.exit_code is not None:
                raise DemoFailed(f"rnet launch exited with code {launch.exit_code}")

    def __enter__(self):
        shutil.rmtree(self.talk, ignore_errors=True)
        shutil.rmtree(self.folder / "launch", ignore_errors=True)
        self.talk.mkdir()
        return self

    def __exit__(self, *_):
        # An impatient second Ctrl-C must not leave processes behind; it takes END_S at the most.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        deadline = time.monotonic() + END_S
        for launch, children in self._launches:
            for child in children.values():
                child.close_pipe()
        for launch, _ in self._launches:
            with contextlib.suppress(rnet.WaitTimeoutError):
                launch.wait(timeout=max(0.0, deadline - time.monotonic()))
            launch.stop()
        shutil.rmtree(self.talk)


def _pipe(path):
    """A pipe with a name, open for both directions: so nobody waits for the other end, and none ends too early."""
    os.mkfifo(path)
    return os.open(path, os.O_RDWR | os.O_CLOEXEC)
