"""What the documentation says of shared memory: mappings, sizes, and a removed directory."""

from __future__ import annotations

import json
import os
import shutil
import time

import numpy as np
from conftest import LIMIT_S
from test_memory import address_of, mapped_file

LARGEST_INLINE = 4096

READER = f"""
import json, rnet
subscriber = rnet.Node("reader").subscriber("/t", keep_all=True)
subscriber.wait_for_publishers(1, timeout={LIMIT_S})
print("up", flush=True)
samples = [subscriber.recv(timeout={LIMIT_S}) for _ in range(2)]
print(json.dumps(open("/proc/self/maps").read().splitlines()), flush=True)
"""


def test_a_reader_cannot_write_to_the_log_and_the_messages_of_a_publisher(node, program, domain):
    publisher = node("sender").publisher("/t")
    reader = program(READER)
    assert reader.stdout.readline() == "up\n"
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    publisher.send(b"small")
    publisher.send(bytes(100_000))
    mapped = [line.split() for line in json.loads(reader.stdout.readline())]
    # The files p<n> (log) and p<n>.<chunk> (large messages) of the sender's folder.
    of_sender = [line for line in mapped if line[-1].startswith(f"{domain}/nodes/sender@")]
    rights = {line[-1].rsplit("/", 1)[1]: line[1] for line in of_sender}
    assert {"p0", "p0.0"} <= set(rights)
    assert {right for name, right in rights.items() if name.startswith("p")} == {"r--s"}


def test_a_message_is_read_in_place_if_it_is_longer_than_4_kib(pair, domain):
    publisher, subscriber = pair()
    for length in (LARGEST_INLINE, LARGEST_INLINE + 1):
        publisher.send(bytes(length))
        view = np.frombuffer(subscriber.recv(timeout=LIMIT_S), np.uint8)
        in_place = mapped_file(address_of(view)).startswith(domain)
        assert in_place == (length > LARGEST_INLINE)


def test_a_removed_domain_directory_is_restored_within_two_seconds(node, domain):
    node("one")
    durations = []
    for _ in range(3):
        os.rename(domain, f"{domain}.gone")
        shutil.rmtree(f"{domain}.gone")
        begun = time.monotonic()
        while not os.path.exists(f"{domain}/VERSION"):
            assert time.monotonic() - begun < LIMIT_S
            time.sleep(0.01)  # sleep: between two checks of a condition
        durations.append(time.monotonic() - begun)
    # The others may be late on a busy machine.
    assert min(durations) < 2, durations


def test_a_key_with_a_value_of_22_bytes_takes_about_190_bytes(node, domain):
    state = node("one").state
    count = 20_000

    def used() -> int:
        return os.stat(f"{domain}/state").st_blocks * 512

    state["/first"] = "x" * 22
    before = used()
    for number in range(count):
        state[f"/key/{number:05}"] = "x" * 22
    assert 150 < (used() - before) / count < 230
