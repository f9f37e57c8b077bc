"""The talk between a node's process and run.py, by pipes, because what is under test must not carry its own verdict.

run.py writes commands, a line each, to stdin; the node writes reports, a JSON object each, to stdout. stdin's end means
that the node shall end: so none is left behind when run.py dies.
"""

import json
import os
import sys
import threading
import time

import rnet

# A reliable subscriber that hangs, such as a logger, may hold a sender up for this long, once.
STALL_S = 0.05
# A node that has not ended this long after it was told to is ended by its own process.
STOP_TIMEOUT_S = 3.0


class Process:
    """The node's end of the pipes. `quiet`: send no more, but go on receiving. `stopped`: end."""

    def __init__(self):
        self.quiet = threading.Event()
        self.stopped = threading.Event()
        self._begin = 0.0
        self.report("ready")

    def _listen(self):
        # Not by sys.stdin: a thread that reads it at the interpreter's end makes a clean end impossible.
        while commands := os.read(0, 4096):
            if b"quiet" in commands.split():
                self.quiet.set()
        self.stopped.set()
        self.quiet.set()
        time.sleep(STOP_TIMEOUT_S)
        os._exit(3)

    def report(self, event, **content):
        """Tells run.py something."""
        try:
            print(json.dumps({"event": event, **content}), flush=True)
        except BrokenPipeError:
            pass  # run.py is gone, and then stdin has ended too

    def wait_to_join(self):
        """Waits for the command to join the domain; the time it takes counts from here."""
        if not os.read(0, 4096):
            sys.exit(0)
        self._begin = time.perf_counter()

    def joined(self):
        """Call when the first peer was met. Only now it begins to listen: a node joins as a program does that has no
        other threads yet."""
        self.report("joined", join_ms=(time.perf_counter() - self._begin) * 1e3)
        threading.Thread(target=self._listen, name="commands", daemon=True).start()

    def finish(self, drain=None, **sent):
        """Says how many messages the node itself has counted as sent, by topic ("/" written "__"), and waits for
        the end; `drain` is called to go on receiving until then. Callbacks go on by themselves."""
        self.report("quiet", sent={"/" + topic.replace("__", "/"): count for topic, count in sent.items()})
        if drain:
            drain()
        self.stopped.wait()


def newest(subscriber, timeout_s):
    """The newest message that was not received yet, or None if there is none in time or its sender has died."""
    try:
        return subscriber.latest(timeout=timeout_s)
    except (rnet.WaitTimeoutError, rnet.PeerLostError):
        return None


def next_one(subscriber, timeout_s):
    """The next message, or None if there is none in time or its sender has died."""
    try:
        return subscriber.recv(timeout=timeout_s)
    except (rnet.WaitTimeoutError, rnet.PeerLostError):
        return None
