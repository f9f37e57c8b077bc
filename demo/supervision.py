"""The processes of the demo: start, command, hear, kill, measure, and leave none behind.

Each child has a session of its own, so that Ctrl-C reaches run.py alone, which then ends the children in order. Their
stdin is a pipe whose end they take as the command to end: that holds also when run.py itself is killed.
"""

import json
import os
import pathlib
import queue
import signal
import subprocess
import threading
import time

END_S = 5.0  # children have this long to end when told to
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class DemoFailed(Exception):
    """The demo cannot go on; the text says why."""


class Child:
    """One process of a node. Its reports go to the crew's queue, its stderr to a log file."""

    def __init__(self, crew, name, command, env):
        self.name, self.expected_to_end = name, False
        self.log_path = crew.folder / f"{name}.log"
        self._crew, self._usage, self._cpu_start = crew, (0.0, 0), (0.0, 0.0)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                command,
                cwd=crew.cwd,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self.measure_from_now()
        self._reader = threading.Thread(target=self._listen, name=f"hears {name}", daemon=True)
        self._reader.start()

    def _listen(self):
        for line in self.process.stdout:
            try:
                report = json.loads(line)
            except ValueError:
                report = {"event": "noise", "text": line.decode(errors="replace")}
            self._crew.reports.put((self, report))
        self.process.wait()
        self._crew.reports.put((self, {"event": "ended"}))

    def tell(self, command):
        """Sends a command. One that does not reach a dead child is told by its "ended" report."""
        try:
            self.process.stdin.write(command.encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            pass

    def kill(self):
        """SIGKILL, at once."""
        self.expected_to_end = True
        self.process.send_signal(signal.SIGKILL)

    def measure_from_now(self):
        """CPU time counts from here."""
        self._cpu_start = (self._cpu_s(), time.monotonic())

    def _cpu_s(self):
        try:
            # The name in parentheses may contain anything; the fields after it are fixed.
            fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
        except (OSError, IndexError):
            return self._usage[0]

    def usage(self):
        """(CPU time in s since measure_from_now, seconds since then, resident memory in kB), kept after its end."""
        try:
            status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
            rss_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
            cpu_s, since = self._cpu_start
            self._usage = (self._cpu_s() - cpu_s, time.monotonic() - since, rss_kb)
        except (OSError, StopIteration):
            pass  # ended: what was measured last stays
        return self._usage

    def last_words(self):
        """The end of its log, indented, or an empty text."""
        lines = self.log_path.read_text(errors="replace").splitlines()[-12:]
        return "".join(f"\n    {line}" for line in lines)


class Crew:
    """All children. A context: at its end no process is left."""

    def __init__(self, folder, cwd, env):
        self.folder, self.cwd, self.env = folder, cwd, env
        self.reports = queue.SimpleQueue()
        self.children = []

    def start(self, name, command, env=None):
        child = Child(self, name, command, env or self.env)
        self.children.append(child)
        return child

    def next_report(self, until):
        """(child, report), or None at the time `until` (time.monotonic()); DemoFailed if a child ended unasked."""
        try:
            child, report = self.reports.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            return None
        if report["event"] == "ended" and not child.expected_to_end:
            code = child.process.returncode
            how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
            raise DemoFailed(f"{child.name} {how}; {child.log_path} ends with:{child.last_words() or ' nothing'}")
        return child, report

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # An impatient second Ctrl-C must not leave processes behind; it takes END_S at the most.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for child in self.children:
            child.expected_to_end = True
            try:
                child.process.stdin.close()
            except OSError:
                pass
        deadline = time.monotonic() + END_S
        for child in self.children:
            try:
                child.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
            # The whole group: a child of a child, too.
            try:
                os.killpg(child.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.process.wait()
            child.process.stdout.close()
