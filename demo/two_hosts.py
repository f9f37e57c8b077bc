"""The robot with two computers: sensors and actuators on one host, estimation and control on the other.

The nodes are those of session.py, unchanged: only their environment defines how the hosts are connected.
Instead of killing the controller, the cable between the hosts is cut and reconnected.
"""

import json
import os
import pathlib
import shutil
import time

import crossing
import hosts
import judge
import session
from session import SETTLE_S, Demo

MOTORS, CONTROL = "motors", "control"
CUT_S = 2.0
STATUS_S = 5.0
# A torque that is 20 ms late counts as lost, and more processes are between it and its state than on one
# host: on a slow machine the safe hold takes over between two of them, and most windows settle. Of the others,
# this share must be closed.
MIN_CLOSED_SHARE = 0.25
# A watcher on each host keeps its counts.
WATCHERS = {MOTORS: "watcher", CONTROL: "watcher2"}
NODES = {**session.NODES, "watcher2": "Rust"}
ON_CONTROL = ("controller", "estimator", "operator", "logger", "watcher2")


def host_of(node):
    return CONTROL if node in ON_CONTROL else MOTORS


def missing():
    """Why hosts are unavailable, or None."""
    return hosts.missing() or (None if _link().exists() else f"{_link()} does not exist: run `make build-link`")


def _link():
    return pathlib.Path(os.environ.get("RNET_LINK") or session.target() / "rnet-link")


def cable(domain):
    """The two hosts, connected."""
    return hosts.Cable(domain, (MOTORS, CONTROL), _link())


class TwoHosts(Demo):
    """A run on two hosts."""

    nodes = NODES
    shown = WATCHERS[CONTROL]

    def __init__(self, crew, seconds, cable):
        super().__init__(crew, seconds)
        self.cable = cable
        self.host = {host.name: host for host in cable.hosts}
        self.record = judge.OutageRecord(
            "the cable was cut", "the cable was reconnected", judge.HOLD_DEADLINE_MS, MIN_CLOSED_SHARE, False
        )
        self.books = {}  # {host: its watcher's newest}
        self.status = {}  # {host: the final status of its link}

    def _launch(self):
        # Each sender exists for the whole run: only the link is lost and returns.
        settings = {**self._settings(), "hosts": 2, "lives": "one-life"}
        for name, host in self.host.items():
            nodes = [node for node in self.nodes if host_of(node) == name]
            environment = self.cable.environment(host)
            self.children |= self.crew.launch(nodes, settings, environment, host=name, within=host.command())

    def _wait_for_match(self):
        for host, watcher in WATCHERS.items():
            nodes = [name for name in self.nodes if host_of(name) == host and name != "watcher2"]
            matched = lambda books: session.all_matched(crossing.local(books), nodes)  # noqa: E731
            self._books(matched, session.JOIN_S, "connect to all of its peers", watcher)

    def _read_counts(self):
        for host, watcher in WATCHERS.items():
            self.books[host] = self._books(lambda books: True, session.JOIN_S, "read the domain", watcher)
        return crossing.merged(self.books)

    def _outage(self):
        """Cuts the cable so that the outage is in the middle, and reconnects it."""
        down_s = min(CUT_S, 0.3 * self.seconds)
        self._continue_until_closed(self.record.begin_ns * 1e-9 + (self.seconds - down_s) / 2)
        self.cable.cut()
        self.record.killed_ns = time.monotonic_ns()
        self.table.print_line(f"{self._elapsed():5.1f} s  the cable is cut")
        self._continue_until(self.record.killed_ns * 1e-9 + down_s)
        self.table.print_line(f"{self._elapsed():5.1f} s  the cable is reconnected")
        self.record.restarted_ns = time.monotonic_ns()
        self.cable.heal()
        return (self.record.restarted_ns - self.record.killed_ns) * 1e-9

    def _settle(self):
        until = time.monotonic() + SETTLE_S
        self._read_counts()
        while not crossing.is_settled(self.books) and time.monotonic() < until:
            self._continue_until(time.monotonic() + session.ASK_S)
            self._read_counts()
        for name, host in self.host.items():
            self.status[name] = self._link_status(host)
        return crossing.merged(self.books)

    def _link_status(self, host):
        """The status of a host's link, a second after the sending stopped."""
        rnet = str(session.target() / "rnet") if (session.target() / "rnet").exists() else shutil.which("rnet")
        environment = self.cable.environment(host)
        first, until = None, time.monotonic() + STATUS_S
        while True:
            status = json.loads(host.run(rnet, "link", "status", "--json", env=environment))
            first = first or status["timestamp"]
            if status["timestamp"] != first or time.monotonic() > until:
                return status
            self._continue_until(time.monotonic() + session.ASK_S)

    def check(self, evidence):
        sent = {host: {} for host in self.books}
        for name, count in evidence.sent.items():
            sent[host_of(name)][name] = count
        return list(crossing.check(self.books, sent, evidence.tally, host_of("logger")))

    def more(self, _evidence):
        nodes = {host: [name for name in self.nodes if host_of(name) == host] for host in self.books}
        return {"hosts": crossing.summary(self.books, self.status, nodes)}
