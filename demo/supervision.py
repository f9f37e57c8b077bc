"""The processes of the demo: `rnet launch` starts them, and named pipes connect them with run.py.

A node's stdin and stdout are two pipes in a folder (talk.sh), so that a restarted node gets those of its
predecessor. Only this process keeps the writing end of a stdin open: when it is closed, the node exits, even
if run.py was killed.
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

END_S = 5.0  # time for nodes to exit when told to
POLL_S = 0.05  # how often to read the table of the launch
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class DemoFailed(Exception):
    """The demo cannot continue; the text is the reason."""


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
        """Registers its process. A new process is measured from its start."""
        if pid != self.pid:
            self.pid, self.started = pid, self.started + 1
            self._cpu_start = (0.0, time.monotonic())

    def begin_ns(self):
        """Start time of its process, CLOCK_MONOTONIC; accurate to 10 ms."""
        since_boot_ns = int(self._stat()[19]) * 1_000_000_000 // _TICKS_PER_S
        return since_boot_ns - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + time.monotonic_ns()

    def send_command(self, command):
        """Sends a command. The table reports a node that died before."""
        os.write(self._commands, command.encode() + b"\n")

    def close_pipe(self):
        """Closes its stdin, which makes it exit."""
        os.close(self._commands)

    def kill(self):
        """Sends SIGKILL."""
        self._crew.expected.add(self.name)
        os.kill(self.pid, signal.SIGKILL)

    def measure_from_now(self):
        """Starts the measurement of CPU time."""
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
        """(CPU time in s since measure_from_now, seconds since then, resident memory in kB), kept after its
        exit.
        """
        try:
            status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
            rss_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
            cpu_s, since = self._cpu_start
            self._usage = (self._cpu_s() - cpu_s, time.monotonic() - since, rss_kb)
        except (OSError, StopIteration):
            pass  # exited: the last measurement stays
        return self._usage

    def log_tail(self):
        """The last lines of its log, indented, or an empty text."""
        logs = [path.read_text(errors="replace") for path in self._crew.folder.glob(f"launch/*/{self.name}.log")]
        return "".join(f"\n    {line}" for line in "".join(logs).splitlines()[-12:])


class NodeProcesses:
    """All nodes. A context: stops all processes at its end."""

    def __init__(self, folder, file, env):
        self.folder, self.file, self.talk = folder, file, folder / "talk"
        self.env = {**env, **self.variables()}
        self.reports = queue.SimpleQueue()
        self.expected = set()  # nodes that were killed, and will be restarted
        self._launches = []  # (launch, its nodes)
        self._checked_s = 0.0

    def variables(self):
        """Additional environment variables of the nodes."""
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
        """(child, report), or None at the time `until` (time.monotonic()); DemoFailed if a node exited
        unexpectedly.
        """
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
        # A second Ctrl-C must not leave processes behind; the exit takes at most END_S.
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
    """A named pipe, open in both directions, so that opening does not block, and an end is not closed too
    early.
    """
    os.mkfifo(path)
    return os.open(path, os.O_RDWR | os.O_CLOEXEC)
