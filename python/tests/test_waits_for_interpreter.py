"""A callback whose event has ended or expired by the time it gets the GIL does not run."""

from __future__ import annotations

import mmap
import os
import sys
import textwrap
import time

import rnet
from conftest import LIMIT_S

OTHER = textwrap.dedent(
    """
    import mmap, sys
    import rnet

    file = open(sys.argv[1], "r+b")
    shared = mmap.mmap(file.fileno(), 0)
    node = rnet.Node("other")
    client, goals = node.client("/serve"), node.action_client("/act")
    messages = node.publisher("/topic", lifespan=0.5)
    any_messages = node.publisher("/any/topic", lifespan=0.5)
    for publisher in (messages, any_messages):
        publisher.wait_for_subscribers(1, timeout=60)
    client.call(b"first", timeout=60)
    goals.send(b"first", timeout=60).result(timeout=60)
    print("ready", flush=True)
    sys.stdin.readline()
    while not shared[0]:
        pass
    messages.send(b"expired")
    any_messages.send(b"expired")
    goals.send(b"cancelled", timeout=60).cancel()
    try:
        client.call(b"timed out", timeout=0.1)
    except rnet.WaitTimeoutError:
        shared[1] = 1
    client.call(b"last", timeout=60)
    goals.send(b"last", timeout=60).result(timeout=60)
    messages.send(b"last")
    any_messages.send(b"last")
    sys.stdin.readline()
    """
)


def test_what_is_over_when_the_interpreter_is_free_does_not_begin(node, program, tmp_path):
    called, done, got, any_got = [], [], [], []
    home = node()

    def act(goal):
        done.append(goal)
        return goal

    def serve(request):
        called.append(request)
        return request

    home.service("/serve", None, None, serve)
    home.action("/act", None, None, None, act, policy="queue", queue=8)
    subscriber = home.subscriber("/topic", on=lambda sample: got.append(bytes(sample)), keep_all=True)
    home.subscribe_any("/any/**", lambda message: any_got.append(bytes(message.sample)), keep_all=True)
    said = tmp_path / "said"
    said.write_bytes(bytes(mmap.PAGESIZE))
    with open(said, "r+b") as file, mmap.mmap(file.fileno(), 0) as shared:
        other = program(OTHER, os.fspath(said))
        assert other.stdout.readline() == "ready\n"
        interval = sys.getswitchinterval()
        # No other thread gets the GIL before this one waits.
        sys.setswitchinterval(1000)
        try:
            other.stdin.write("\n")
            other.stdin.flush()
            shared[0] = 1
            while not shared[1]:
                pass
            # The server threads receive the cancels, and the messages become old.
            end = time.monotonic() + 1
            while time.monotonic() < end:
                pass
        finally:
            sys.setswitchinterval(interval)
        limit = time.monotonic() + LIMIT_S
        while not (got and any_got and done[-1] == b"last"):
            assert time.monotonic() < limit
            time.sleep(0.001)  # sleep: between two checks of a condition
    assert (called, done) == ([b"first", b"last"], [b"first", b"last"])
    assert (got, any_got) == ([b"last"], [b"last"])
    assert [stats.expired for stats in subscriber.stats()] == [1]
    assert home.callback_errors == 0
