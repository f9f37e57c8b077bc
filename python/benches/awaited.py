"""How fast tasks of asyncio receive.

    python python/benches/awaited.py [--messages N] [--rounds N]

Messages of 8 bytes, read as bytes. In each round, one after the other:

- there: `await subscriber.recv_async()` in a loop, of messages that are all there already;
- iterated: `async for message in subscriber`, of the same;
- queue: `await queue.get()` of an asyncio.Queue, of as many bytes objects, to compare with;
- process: `async for` while another process sends, reliably: whichever side is slower;
- round trip: each message is sent once the one before was received by a task, so that every
  await waits;
- changes: `await watch.recv_async()` in a loop, of one write each that is made just before.

Medians over the rounds, with the slowest and the fastest.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable

import rnet

#: Longer than anything here takes.
LIMIT_S = 60.0

SENDER = """
import sys
import rnet
publisher = rnet.Node("sender").publisher("/process", reliable=True)
publisher.wait_for_subscribers(1, timeout=60)
for _ in range(int(sys.argv[1])):
    publisher.send(b"8 bytes.")
sys.stdin.read()
"""


class Bench:
    """One round after the other."""

    def __init__(self, node: rnet.Node, count: int) -> None:
        self.count = count
        room = 1 << (64 * count).bit_length()
        self.publisher = node.publisher("/there", reliable=True, log_len_bytes=room)
        self.subscriber = node.subscriber("/there", bytes, reliable=True)
        self.other = node.subscriber("/process", bytes, reliable=True)
        self.state = node.state
        self.watch = self.state.watch("/bench")
        self.publisher.wait_for_subscribers(1, timeout=LIMIT_S)
        self.subscriber.wait_for_publishers(1, timeout=LIMIT_S)

    async def there(self) -> float:
        self._fill()
        recv = self.subscriber.recv_async
        began = time.perf_counter()
        for _ in range(self.count):
            await recv()
        return (time.perf_counter() - began) / self.count

    async def iterated(self) -> float:
        self._fill()
        left = self.count
        began = time.perf_counter()
        async for _ in self.subscriber:
            left -= 1
            if not left:
                break
        return (time.perf_counter() - began) / self.count

    async def queue(self) -> float:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        for _ in range(self.count):
            queue.put_nowait(b"8 bytes.")
        began = time.perf_counter()
        for _ in range(self.count):
            await queue.get()
        return (time.perf_counter() - began) / self.count

    async def process(self) -> float:
        command = [sys.executable, "-c", SENDER, str(self.count)]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as sender:
            # The clock starts with the first message, which is not counted.
            await self.other.recv_async()
            left = self.count - 1
            began = time.perf_counter()
            async for _ in self.other:
                left -= 1
                if not left:
                    break
            took = time.perf_counter() - began
            await asyncio.to_thread(sender.communicate)
        return took / self.count

    async def round_trip(self) -> float:
        count = self.count // 10

        async def read() -> None:
            for _ in range(count):
                await self.subscriber.recv_async()
                got.set()

        got = asyncio.Event()
        reader = asyncio.create_task(read())
        await asyncio.sleep(0)
        began = time.perf_counter()
        for _ in range(count):
            got.clear()
            self.publisher.send(b"8 bytes.")
            await got.wait()
        took = time.perf_counter() - began
        await reader
        return took / count

    async def changes(self) -> float:
        count = self.count // 10
        began = time.perf_counter()
        for number in range(count):
            self.state.set("/bench/key", number)
            await self.watch.recv_async()
        return (time.perf_counter() - began) / count

    def _fill(self) -> None:
        for _ in range(self.count):
            self.publisher.send(b"8 bytes.")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, default=50_000, help="of each kind in a round")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    base = tempfile.mkdtemp(prefix="rnet-awaited-", dir="/dev/shm")
    os.environ.update(RNET_DIR=base, RNET_DOMAIN="awaited", RNET_STATE_DIR=f"{base}/keep")
    took: dict[str, list[float]] = {}
    try:
        with rnet.Node("receiver") as node:
            bench = Bench(node, given.messages)
            kinds: list[Callable[[], Awaitable[float]]] = [
                bench.there,
                bench.iterated,
                bench.queue,
                bench.process,
                bench.round_trip,
                bench.changes,
            ]

            async def rounds() -> None:
                for number in range(given.rounds + 1):
                    for kind in kinds:
                        one = await kind()
                        if number:  # The first one is to warm up.
                            took.setdefault(kind.__name__, []).append(one)

            asyncio.run(rounds())
            lost = sum(bench.subscriber.lost.values()) + sum(bench.other.lost.values())
            if lost:
                sys.exit(f"{lost} messages lost")
    finally:
        shutil.rmtree(base)
    print(f"8 bytes, {given.rounds} rounds of {given.messages} messages")
    print("            messages/s: median (slowest to fastest)")
    for name, times in took.items():
        rates = sorted(1 / one for one in times)
        middle = statistics.median(rates)
        print(f"{name:>10}  {middle:12,.0f}  ({rates[0]:,.0f} to {rates[-1]:,.0f})")


if __name__ == "__main__":
    main()
