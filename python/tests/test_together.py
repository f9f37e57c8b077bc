"""Combinations of features: many subscribers of every kind at once, some stopped or killed."""

from __future__ import annotations

import json
import random
import signal
import struct
import threading
import time

import pytest
import rnet
from conftest import LIMIT_S

END = struct.pack("<q", -1)

READER = """
import json, struct, sys, threading, time
import rnet

kind = sys.argv[1]
node = rnet.Node(sys.argv[2])
ended = threading.Event()
seen, errors = [], []

def take(message):
    (number,) = struct.unpack_from("<q", message)
    if number < 0:
        ended.set()
    else:
        seen.append(number)

options = {"best": {}, "all": {"keep_all": True}, "reliable": {"reliable": True}, "latest": {}}
if kind == "callback":
    topic = node.subscriber("/t", bytes, on=take)
else:
    topic = node.subscriber("/t", bytes, **options[kind])
print("up", flush=True)
while not ended.is_set():
    try:
        if kind == "callback":
            ended.wait(0.1)
        else:
            take(topic.latest(timeout=1) if kind == "latest" else topic.recv(timeout=1))
    except rnet.WaitTimeoutError:
        pass
    except rnet.RnetError as error:
        errors.append(type(error).__name__)
stats = topic.stats()
print(json.dumps({
    "ordered": all(a < b for a, b in zip(seen, seen[1:])),
    "accounted": sum(s.received + s.skipped for s in stats) + sum(topic.lost.values()),
    "errors": errors,
}), flush=True)
"""


@pytest.mark.parametrize("seed", range(3))
def test_what_is_sent_is_received_skipped_or_lost_at_each_of_many_subscribers(node, program, seed):
    """Small and large messages in turn; readers are stopped, resumed and killed at random."""
    dice = random.Random(seed)
    kinds = ["best", "all", "reliable", "latest", "callback"]
    readers = [program(READER, kind, f"{kind}{turn}") for turn in range(3) for kind in kinds]
    for reader in readers:
        assert reader.stdout.readline() == "up\n"
    topic = node().publisher("/t", reliable=True, on_full=rnet.Detach(0.2), log_len_bytes=1 << 20)
    topic.wait_for_subscribers(len(readers), timeout=LIMIT_S)
    stopped, killed, large = set(), set(), bytes(100_000)
    for number in range(40_000):
        body = struct.pack("<q", number)
        topic.send(body + (large if number % 37 == 0 else b"x" * dice.randrange(200)))
        if dice.random() < 0.001:
            reader = dice.choice(readers)
            if reader in killed:
                continue
            if reader in stopped:
                reader.send_signal(signal.SIGCONT)
                stopped.remove(reader)
            elif dice.random() < 0.1:
                reader.kill()
                killed.add(reader)
            else:
                reader.send_signal(signal.SIGSTOP)
                stopped.add(reader)
    for reader in stopped:
        reader.send_signal(signal.SIGCONT)
    living = [reader for reader in readers if reader not in killed]
    ends = 0
    while any(reader.poll() is None for reader in living):
        # Repeated: a detached reader receives only messages that are sent after it has subscribed again.
        topic.send(END)
        ends += 1
        time.sleep(0.02)  # sleep: the sending period
    for reader in living:
        said = json.loads(reader.stdout.readline())
        assert said["ordered"], reader.args
        assert 40_000 <= said["accounted"] <= 40_000 + ends, (reader.args, said)
        assert set(said["errors"]) <= {"DetachedError"}


WATCHER = """
import json, sys, threading
import rnet

state = rnet.Node(sys.argv[1]).state
watches = [state.watch("/k") for _ in range(3)]
seen = [{} for _ in watches]

def follow(watch, values):
    for change in watch:
        if change.value is None:
            values.pop(change.key, None)
        else:
            values[change.key] = change.value
        if change.key == "/k/end":
            return

threads = [threading.Thread(target=follow, args=pair) for pair in zip(watches, seen)]
[thread.start() for thread in threads]
print("up", flush=True)
[thread.join() for thread in threads]
view = {key: state.get(key) for key in state.keys("/k")}
print(json.dumps([values == view for values in seen]), flush=True)
"""


def test_watches_that_were_stopped_end_with_what_a_reader_sees(node, program):
    """Sets, deletions and times to live, far more than the journal holds."""
    watchers = [program(WATCHER, f"watcher{number}") for number in range(6)]
    for watcher in watchers:
        assert watcher.stdout.readline() == "up\n"
    for watcher in watchers[::2]:
        watcher.send_signal(signal.SIGSTOP)
    state, dice = node().state, random.Random(5)
    for number in range(120_000):
        key, choice = f"/k/{dice.randrange(300)}", dice.random()
        if choice < 0.6:
            state.set(key, number)
        elif choice < 0.8:
            state.delete(key)
        else:
            state.set(key, number, ttl=0.01 + 0.2 * dice.random())
    for watcher in watchers[::2]:
        watcher.send_signal(signal.SIGCONT)
    time.sleep(0.3)  # sleep: the last times to live expire
    state.set("/k/end", 1)
    for watcher in watchers:
        assert json.loads(watcher.stdout.readline()) == [True] * 3


JOINER = """
import json, struct, sys
import rnet

topic = rnet.Node(sys.argv[1]).subscriber("/t", bytes, reliable=True, transient_local=True)
numbers = [struct.unpack_from("<q", topic.recv())[0] for _ in range(150)]
print(json.dumps([all(b == a + 1 for a, b in zip(numbers, numbers[1:])), sum(topic.lost.values())]), flush=True)
"""


def test_many_late_joiners_at_once_get_the_past_and_all_that_follows(node, program):
    topic = node().publisher("/t", reliable=True, transient_local=20)
    over = threading.Event()

    def send() -> None:
        number = 0
        while not over.wait(0.0005):
            topic.send(struct.pack("<q", number) + bytes(20_000 if number % 3 == 0 else 0))
            number += 1

    sender = threading.Thread(target=send)
    sender.start()
    try:
        joiners = [program(JOINER, f"joiner{number}") for number in range(40)]
        for joiner in joiners:
            assert json.loads(joiner.stdout.readline()) == [True, 0]
    finally:
        over.set()
        sender.join()
