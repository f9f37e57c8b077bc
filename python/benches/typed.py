"""How fast Python receives typed messages, against what the protobuf runtime itself allows.

    make bench-typed        or: python python/benches/typed.py [--messages N] [--rounds N]

The message is an Imu as a driver fills it. In each round, one after the other in one process:

- runtime: `Imu.FromString(data)` in a loop, of the same bytes;
- recv: `subscriber.recv()` in a loop, of messages that are all there already;
- iterated: `for message in subscriber`, of the same;
- process: `recv` in a loop while another process sends, reliably: whichever side is slower.

Medians over the rounds, with the slowest and the fastest. Ratios are of the same round.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice

import rnet
from rnet.msgs import Imu

#: Longer than anything here takes.
LIMIT_S = 60.0

SENDER = """
import sys
import rnet
from rnet.msgs import Imu
message = Imu.FromString(bytes.fromhex(sys.argv[1]))
publisher = rnet.Node("sender").publisher("/process", Imu, reliable=True)
publisher.wait_for_subscribers(1, timeout=60)
for _ in range(int(sys.argv[2])):
    publisher.send(message)
sys.stdin.read()
"""


def filled() -> Imu:
    message = Imu(
        frame_id="imu_link",
        orientation={"x": 0.1, "y": 0.2, "z": 0.3, "w": 0.9},
        angular_velocity={"x": 0.01, "y": 0.02, "z": 0.03},
        linear_acceleration={"x": 0.1, "y": 0.2, "z": 9.81},
    )
    message.timestamp.FromNanoseconds(1_700_000_000_123_456_789)
    for covariance in (
        message.orientation_covariance,
        message.angular_velocity_covariance,
        message.linear_acceleration_covariance,
    ):
        covariance.extend([0.01, 0.0, 0.0, 0.0, 0.01, 0.0, 0.0, 0.0, 0.01])
    return message


def seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


class Bench:
    """One round after the other."""

    def __init__(self, node: rnet.Node, count: int) -> None:
        self.count = count
        self.message = filled()
        self.data = self.message.SerializeToString()
        # Room for all of a round, each with its head.
        room = 1 << (2 * count * len(self.data)).bit_length()
        self.publisher = node.publisher("/imu", Imu, log_len_bytes=room)
        self.subscriber = node.subscriber("/imu", Imu)
        self.other = node.subscriber("/process", Imu, reliable=True)
        self.publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        self.subscriber.wait_for_publishers(1, timeout=LIMIT_S)

    def runtime(self) -> float:
        decode, data = Imu.FromString, self.data

        def work() -> None:
            for _ in range(self.count):
                decode(data)

        return seconds(work)

    def recv(self) -> float:
        self._fill()
        recv = self.subscriber.recv

        def work() -> None:
            for _ in range(self.count):
                recv()

        return seconds(work)

    def iterated(self) -> float:
        self._fill()

        def work() -> None:
            for _ in islice(self.subscriber, self.count):
                pass

        return seconds(work)

    def process(self) -> float:
        command = [sys.executable, "-c", SENDER, self.data.hex(), str(self.count)]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as sender:
            # The clock starts with the first message, which is not counted.
            self.other.recv(timeout=LIMIT_S)
            recv = self.other.recv

            def work() -> None:
                for _ in range(self.count - 1):
                    recv(timeout=LIMIT_S)

            took = seconds(work)
            sender.communicate()
        return took

    def _fill(self) -> None:
        for _ in range(self.count):
            self.publisher.send(self.message)

    def check(self) -> None:
        """What was measured has to have happened."""
        for subscriber in (self.subscriber, self.other):
            lost = sum(subscriber.lost.values())
            malformed = sum(stats.malformed for stats in subscriber.stats())
            if lost or malformed:
                sys.exit(f"{subscriber.topic}: {lost} messages lost, {malformed} malformed")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, default=50_000, help="of each kind in a round")
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    base = tempfile.mkdtemp(prefix="rnet-typed-", dir="/dev/shm")
    os.environ.update(RNET_DIR=base, RNET_DOMAIN="typed")
    try:
        with rnet.Node("receiver") as node:
            bench = Bench(node, given.messages)
            kinds = {k: getattr(bench, k) for k in ("runtime", "recv", "iterated", "process")}
            took: dict[str, list[float]] = {kind: [] for kind in kinds}
            for number in range(given.rounds + 1):
                for kind, work in kinds.items():
                    one = work()
                    if number:  # The first one is to warm up.
                        took[kind].append(one)
            bench.check()
    finally:
        shutil.rmtree(base)
    print(f"Imu, {len(bench.data)} bytes, {given.rounds} rounds of {given.messages} messages")
    print("            messages/s: median (slowest to fastest)   time / runtime's")
    for kind, times in took.items():
        rates = sorted(given.messages / one for one in times)
        ratios = [one / own for one, own in zip(times, took["runtime"], strict=True)]
        middle, ratio = statistics.median(rates), statistics.median(ratios)
        print(f"{kind:>10}  {middle:12,.0f}  ({rates[0]:,.0f} to {rates[-1]:,.0f})  {ratio:16.2f}")


if __name__ == "__main__":
    main()
