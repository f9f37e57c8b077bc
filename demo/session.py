"""One run of the robot: its nodes, their reports, and the three acts. run.py prints the result."""

import os
import pathlib
import sys
import time

import accounting
import judge
import summary as summaries
import tables
from supervision import DemoFailed

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "target" / "demo"
START_S = 60.0  # a cold start reads MuJoCo from disk
JOIN_S = 15.0
SETTLE_S = 5.0  # for the last messages to arrive
CLOSE_S = 20.0  # for the loop to close on a slow machine
STOP_S = 20.0  # for the robot to be held after the stop, and driven after the release
UNCHANGED_NS = 1_000_000_000  # after this time, motors that were already held count as stopped by the order
ASK_S = 0.05


# The nodes with their languages, in the order of joining: each finds a peer that it receives from, so that
# its join time can be measured. robot.toml defines how they are started.
NODES = {
    "simulation": "Python",
    "controller": "Python",
    "estimator": "Python",
    "force": "Rust",
    "camera": "Python",
    "battery": "Python",
    "safety": "C++",
    "operator": "Python",
    "logger": "Rust",
    "watcher": "Rust",
}


def target():
    """The build folder of `make demo`."""
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve() / "debug"


class Demo:
    """One run."""

    nodes = NODES
    shown = "watcher"  # whose table is shown

    def __init__(self, crew, seconds):
        self.crew, self.seconds = crew, seconds
        self.children = {}
        self.latest_reports = {}  # node: {event: its newest report}
        self.join_ms = {}
        self.rejoin_ms = None  # of the second controller
        self.record = judge.OutageRecord()
        self.stops = []
        self.ordered = {}  # "stop" and "go": ms from the order to the motors
        self.table = tables.LiveTable()
        self.rows = None

    def run(self):
        """Runs until the nodes' work ends; returns the evidence for summary.py."""
        begin = time.monotonic()
        self._start_all()
        self.table.print_line(
            f"{len(self.nodes)} processes in domain {self.crew.env['RNET_DOMAIN']}, all joined "
            f"{time.monotonic() - begin:.1f} s after the start"
        )
        books_before = self._read_counts()
        for child in self.children.values():
            child.measure_from_now()
        self.record.begin_ns = time.monotonic_ns()
        down_s = self._outage()
        # As long after the outage as before it.
        before_s = (self.record.killed_ns - self.record.begin_ns) * 1e-9
        after_s = self.record.restarted_ns * 1e-9 + before_s
        self._continue_until_closed(max(after_s, self.record.begin_ns * 1e-9 + self.seconds))
        books_end = self._read_counts()
        self.record.end_ns = time.monotonic_ns()
        usage = {name: child.usage() for name, child in self.children.items()}
        # A robot that has already failed is not stopped, but reported.
        if not self.record.failures():
            self._stop_by_authority()
        return summaries.Evidence(down_s, books_before, books_end, *self._read_final_counts(), usage)

    # --- the three acts -------------------------------------------------------------------------------------

    def _start_all(self):
        self._launch()
        for name in self.nodes:
            self._wait_for(name, "ready", START_S, "start")
        for name in self.nodes:
            self._join(name)
        self._wait_for_match()

    def _wait_for_match(self):
        self._books(lambda books: all_matched(books, self.nodes), JOIN_S, "connect to all of its peers")

    def _read_counts(self):
        """The watcher's current counts."""
        return self._books(lambda books: True, JOIN_S, "read the domain")

    def _outage(self):
        """Kills the controller in the middle of the run, and waits for the launcher to restart it."""
        down_s = min(3.0, 0.3 * self.seconds)
        self._continue_until_closed(self.record.begin_ns * 1e-9 + (self.seconds - down_s) / 2)
        self.table.print_line(f"{self._elapsed():5.1f} s  the controller is killed (SIGKILL)")
        controller, first_join_ms = self.children["controller"], self.join_ms["controller"]
        self.record.killed_ns = time.monotonic_ns()
        controller.kill()
        self.latest_reports["controller"] = {}
        until = time.monotonic() + START_S
        while controller.started < 2:
            if time.monotonic() >= until:
                raise DemoFailed(f"the launcher did not restart the controller within {START_S:.0f} s")
            self._continue_until(time.monotonic() + ASK_S)
        self.record.restarted_ns = controller.begin_ns()
        self.table.print_line(f"{self._elapsed():5.1f} s  the launcher has restarted the controller")
        self._join("controller")
        self.rejoin_ms, self.join_ms["controller"] = self.join_ms["controller"], first_join_ms
        return (self.record.restarted_ns - self.record.killed_ns) * 1e-9

    def _stop_by_authority(self):
        """Makes the safety monitor take authority over the motors, until the robot does not move, and release
        it.
        """
        asked_ns = self._command_and_wait("stop", by_controller=False)
        until = time.monotonic() + STOP_S
        while not any(v["at_ns"] > asked_ns and v["state"] == judge.HELD for v in self.record.verdicts):
            if not self._handle_next_report(until):
                raise DemoFailed(f"the robot did not stand still within {STOP_S:.0f} s of the stop")
        self._command_and_wait("go", by_controller=True)

    def _command_and_wait(self, word, *, by_controller):
        """Sends the order to the safety monitor, and waits until the motors react; returns the time of the
        order.
        """
        asked_ns = time.monotonic_ns()
        self.children["safety"].send_command(word)
        until = time.monotonic() + STOP_S
        while (obeyed_ns := self._effect_ns(asked_ns, by_controller)) is None:
            if not self._handle_next_report(until):
                raise DemoFailed(f"the motors did not react to the order to {word} within {STOP_S:.0f} s")
        self.ordered[word] = (obeyed_ns - asked_ns) * 1e-6
        return asked_ns

    def _effect_ns(self, asked_ns, by_controller):
        """When the motors executed the order; None if they have not."""
        for at_ns, driven in self.record.changes:
            if at_ns > asked_ns and driven == by_controller:
                return at_ns
        # If the controller was late, the safe hold already held the motors, and a stop changes nothing.
        is_so = self.record.changes[-1:] and self.record.changes[-1][1] == by_controller
        return asked_ns if is_so and time.monotonic_ns() - asked_ns > UNCHANGED_NS else None

    def _read_final_counts(self):
        """Stops the sending, waits until all sent messages have arrived, and collects all counts."""
        # The safety monitor first, so that it does not report the end as a failure.
        for name in sorted(self.nodes, key=lambda name: name != "safety"):
            self.children[name].send_command("quiet")
            if name == "safety":
                self._wait_for(name, "quiet", SETTLE_S, "stop sending")
        sent = {name: self._wait_for(name, "quiet", SETTLE_S, "stop sending")["sent"] for name in self.nodes}
        books = self._settle()
        tally = self._ask("logger", "tally", SETTLE_S)["topics"]
        return books, sent, tally

    def _settle(self):
        return self._books(accounting.is_settled, SETTLE_S, None)

    def check(self, evidence):
        """Disagreements of the message counts, as text."""
        return accounting.check(evidence.books, evidence.sent, evidence.tally)

    def more(self, _evidence):
        """Additional fields of the summary."""
        return {}

    # --- talking with the nodes -----------------------------------------------------------------------------

    def _launch(self):
        self.children = self.crew.launch(self.nodes, self._settings())

    def _settings(self):
        """The variables of robot.toml."""
        return {"python": sys.executable, "bin": target(), "messages": OUT / "messages.jsonl"}

    def _join(self, name):
        self._wait_for(name, "ready", START_S, "start")
        self.children[name].send_command("join")
        self.join_ms[name] = self._wait_for(name, "joined", JOIN_S, "join")["join_ms"]

    def _wait_for(self, name, event, timeout_s, to_do):
        until = time.monotonic() + timeout_s
        while event not in self.latest_reports.setdefault(name, {}):
            if not self._handle_next_report(until):
                words = self.children[name].log_tail()
                raise DemoFailed(f"{name} did not {to_do} within {timeout_s:.0f} s{words and ': ' + words}")
        return self.latest_reports[name][event]

    def _ask(self, name, question, timeout_s):
        self.latest_reports[name].pop(question, None)
        self.children[name].send_command(question)
        return self._wait_for(name, question, timeout_s, f"answer '{question}'")

    def _books(self, good, timeout_s, to_do, watcher="watcher"):
        """The watcher's counts, once they are `good`. Fails after the timeout, or returns the last ones if
        `to_do` is None.
        """
        until = time.monotonic() + timeout_s
        while True:
            books = self._ask(watcher, "books", timeout_s)
            problem = good(books)
            if problem is True:
                return books
            if time.monotonic() >= until:
                if to_do is None:
                    return books
                raise DemoFailed(f"{problem} did not {to_do} within {timeout_s:.0f} s")
            self._continue_until(time.monotonic() + ASK_S)

    def _continue_until(self, until):
        while self._handle_next_report(until):
            pass

    def _continue_until_closed(self, until):
        """Continues at least until then, and longer if the loop has not closed yet."""
        self._continue_until(until)
        record = self.record
        while not (record.has_closed() or record.has_ended()) and self._handle_next_report(until + CLOSE_S):
            pass

    def _handle_next_report(self, until):
        """Handles one report; returns False after the timeout."""
        received = self.crew.next_report(until)
        if received is None:
            return False
        child, report = received
        self.latest_reports.setdefault(child.name, {})[report["event"]] = report
        match report["event"]:
            case "table" if child.name == self.shown:
                self._show(report["rows"])
            case "verdict":
                self.record.clock.append((report["at_ns"], report["time_ns"]))
                self.record.verdicts.append(report)
            case "driven":
                self.record.clock.append((report["at_ns"], report["time_ns"]))
                self.record.changes.append((report["at_ns"], report["by_controller"]))
            case "stop" if child.name == "watcher":
                self.stops.append(report)
                verb = "raises an urgent stop" if report["active"] else "releases the stop"
                self.table.print_line(f"{self._elapsed():5.1f} s  the safety monitor {verb}: {report['reason']}")
            case "noise":
                self.table.print_line(f"{child.name}: {report['text'].rstrip()}")
        return True

    def _show(self, rows):
        if self.record.begin_ns is None or self.record.end_ns is not None:
            return
        state = self.record.verdicts[-1]["state"] if self.record.verdicts else "-"
        self.table.show(f"{self._elapsed():5.1f} s of {self.seconds:.0f} s   robot: {state}", rows)

    def _elapsed(self):
        return (time.monotonic_ns() - self.record.begin_ns) * 1e-9 if self.record.begin_ns else 0.0


def all_matched(books, nodes):
    """True if all endpoints are matched, or else a description of one that is not."""
    for name in nodes:
        if f"/{name}" not in books["nodes"]:
            return name
    for publisher in books["publishers"]:
        if not publisher["gone"] and not publisher["readers"]:
            return f"{publisher['node']} (on {publisher['topic']})"
    for subscription in books["subscriptions"]:
        if not subscription["gone"] and (subscription["unserved"] or not subscription["publishers"]):
            return f"{subscription['node']} (on {subscription['topic']})"
    return True
