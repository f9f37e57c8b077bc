"""Communication between a node's process and run.py through pipes, because the system under test must not
carry its own verdict.

run.py writes one command per line to stdin; the node writes one JSON report per line to stdout. When stdin is
closed, the node exits, so that no node is left behind when run.py dies.
"""

import json
import os
import sys
import threading
import time

import rnet

# Maximum time that a reliable subscriber that hangs, such as a logger, blocks a sender, once.
STALL_S = 0.05
# Time after which a node that was told to exit is terminated by its own process.
STOP_TIMEOUT_S = 3.0


class Process:
    """The node's end of the pipes. `quiet`: stop sending, but continue to receive. `stopped`: exit."""

    def __init__(self):
        self.quiet = threading.Event()
        self.stopped = threading.Event()
        self._begin = 0.0
        self.report("ready")

    def _listen(self):
        # Not through sys.stdin: a thread that reads it while the interpreter exits prevents a clean exit.
        while commands := os.read(0, 4096):
            if b"quiet" in commands.split():
                self.quiet.set()
        self.stopped.set()
        self.quiet.set()
        time.sleep(STOP_TIMEOUT_S)
        os._exit(3)

    def report(self, event, **content):
        """Sends a report to run.py."""
        try:
            print(json.dumps({"event": event, **content}), flush=True)
        except BrokenPipeError:
            pass  # run.py is gone, and stdin is closed too

    def wait_to_join(self):
        """Waits for the command to join the domain; the join time is measured from here."""
        if not os.read(0, 4096):
            sys.exit(0)
        self._begin = time.perf_counter()

    def joined(self):
        """Call when the first peer was found. Starts listening only now, because a node should join like a
        program without other threads.
        """
        self.report("joined", join_ms=(time.perf_counter() - self._begin) * 1e3)
        threading.Thread(target=self._listen, name="commands", daemon=True).start()

    def finish(self, drain=None, **sent):
        """Reports how many messages the node itself has counted as sent, by topic ("/" written "__"), and
        waits for the exit. `drain` is called meanwhile to continue to receive; callbacks continue by
        themselves.
        """
        self.report("quiet", sent={"/" + topic.replace("__", "/"): count for topic, count in sent.items()})
        if drain:
            drain()
        self.stopped.wait()


def newest(subscriber, timeout_s):
    """The newest unread message, or None after the timeout or if its sender has died."""
    try:
        return subscriber.latest(timeout=timeout_s)
    except (rnet.WaitTimeoutError, rnet.PeerLostError):
        return None


def next_one(subscriber, timeout_s):
    """The next message, or None after the timeout or if its sender has died."""
    try:
        return subscriber.recv(timeout=timeout_s)
    except (rnet.WaitTimeoutError, rnet.PeerLostError):
        return None
